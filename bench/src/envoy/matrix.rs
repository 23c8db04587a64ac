//! Which rows there are.

use super::case::{EnvoyCase, Work};
use crate::certificates::KeyKind;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    pub works: Vec<Work>,
    /// For rows with TLS.
    pub certs: Vec<KeyKind>,
    /// Of pages, in bytes.
    pub sizes: Vec<usize>,
    /// Of compression; `None` is Envoy's default.
    pub levels: Vec<Option<u8>>,
    pub concurrencies: Vec<usize>,
}

/// Enough for the worker always to have its next request ready.
const CONNECTIONS: usize = 16;
/// The page of a round trip, in bytes.
const PAGE: usize = 100 << 10;

impl Matrix {
    #[must_use]
    pub fn quick() -> Self {
        Self {
            works: Work::ALL.to_vec(),
            certs: vec![KeyKind::Rsa2048, KeyKind::P256],
            sizes: vec![PAGE],
            levels: vec![None, Some(1)],
            concurrencies: vec![64],
        }
    }

    #[must_use]
    pub fn full() -> Self {
        Self {
            works: Work::ALL.to_vec(),
            certs: vec![KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384],
            sizes: vec![10 << 10, PAGE, 1 << 20],
            levels: vec![None, Some(1), Some(3)],
            concurrencies: vec![1, 64, 256],
        }
    }

    /// Rows that share servers are adjacent.
    #[must_use]
    pub fn cases(&self) -> Vec<EnvoyCase> {
        let pages = |work, level| {
            let case = EnvoyCase { level, ..EnvoyCase::of(work, CONNECTIONS) };
            self.sizes.iter().map(move |size| EnvoyCase { size: Some(*size), ..case })
        };
        let connections = |work, cert, size| {
            let case =
                move |concurrency| EnvoyCase { cert: Some(cert), size, ..EnvoyCase::of(work, concurrency) };
            self.concurrencies.iter().copied().map(case)
        };
        let mut cases: Vec<_> = pages(Work::Plain, None).collect();
        let in_full = |case: EnvoyCase| EnvoyCase { full_window: true, ..case };
        for level in &self.levels {
            cases.extend(pages(Work::Gzip, *level));
            cases.extend(pages(Work::Gzip, *level).map(in_full));
        }
        cases.extend(pages(Work::Gunzip, None));
        cases.extend(self.certs.iter().flat_map(|cert| connections(Work::Handshake, *cert, None)));
        for cert in &self.certs {
            cases.extend(connections(Work::RoundTrip, *cert, Some(PAGE)));
            cases.extend(connections(Work::RoundTrip, *cert, Some(PAGE)).map(in_full));
        }
        cases.retain(|case| self.works.contains(&case.work));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_the_whole_are_there() {
        for (matrix, count) in [(Matrix::quick(), 1 + 4 + 1 + 2 + 4), (Matrix::full(), 3 + 18 + 3 + 9 + 18)] {
            let cases = matrix.cases();
            assert_eq!(cases.len(), count);
            for work in Work::ALL {
                assert!(cases.iter().any(|case| case.work == work), "{work}");
            }
        }
    }
}
