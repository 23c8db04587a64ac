//! Which rows there are, and how long they take.

use std::time::Duration;

use hasten_evidence::stop::StopRule;

use super::case::{Engine, GzipCase, LibraryCase, ServerCase};
use crate::pace::Pace;
use crate::server::ServerKind;

/// What is compared at which levels and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Empty to omit the library part.
    pub engines: Vec<Engine>,
    pub library_levels: Vec<u8>,
    /// Bodies that nginx sends, in bytes; empty to omit the server part.
    pub sizes: Vec<usize>,
    pub server_levels: Vec<u8>,
}

impl Matrix {
    #[must_use]
    pub fn quick() -> Self {
        Self {
            engines: Engine::COMPARED.to_vec(),
            library_levels: vec![1, 6, 9],
            sizes: vec![10 << 10, 100 << 10],
            server_levels: vec![1, 6],
        }
    }

    #[must_use]
    pub fn full() -> Self {
        Self {
            library_levels: (1..=9).collect(),
            sizes: vec![1 << 10, 10 << 10, 100 << 10, 1 << 20],
            server_levels: vec![1, 5, 6, 9],
            ..Self::quick()
        }
    }

    /// Rows that share processes are adjacent.
    #[must_use]
    pub fn cases(&self) -> Vec<GzipCase> {
        let mut cases = Vec::new();
        // The level at which most data that is ever decompressed was compressed.
        let usual = self.library_levels.iter().find(|&&level| level == 6);
        let inflate_level = usual.or(self.library_levels.first()).copied().unwrap_or_default();
        for &engine in &self.engines {
            for &level in &self.library_levels {
                for work in engine.works(level, inflate_level) {
                    cases.push(GzipCase::Library(LibraryCase { engine, work, level }));
                }
            }
        }
        for &size in &self.sizes {
            for &level in &self.server_levels {
                cases.push(GzipCase::Server(ServerCase { server: ServerKind::Nginx, size, level }));
            }
        }
        cases
    }
}

/// How long a row of each part takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paces {
    pub library: Pace,
    pub server: Pace,
}

impl Paces {
    #[must_use]
    pub fn quick() -> Self {
        let library = Pace {
            warm_up: Duration::ZERO,
            round: Duration::from_millis(40),
            rule: StopRule { min_pairs: 6, max_pairs: 10, uncertainty: 0.01 },
            limit: Duration::from_secs(4),
        };
        Self { library, server: Pace::quick() }
    }

    #[must_use]
    pub fn full() -> Self {
        let library = Pace {
            warm_up: Duration::ZERO,
            round: Duration::from_millis(150),
            rule: StopRule { min_pairs: 8, max_pairs: 20, uncertainty: 0.005 },
            limit: Duration::from_secs(20),
        };
        Self { library, server: Pace::full() }
    }

    pub(super) fn of(&self, case: &GzipCase) -> &Pace {
        match case {
            GzipCase::Library(_) => &self.library,
            GzipCase::Server(_) => &self.server,
        }
    }

    /// The approximate time for a row.
    pub(super) fn estimate(&self, case: &GzipCase) -> Duration {
        match case {
            GzipCase::Server(_) => self.server.estimate(),
            GzipCase::Library(case) => {
                // The original's time at this level for some four megabytes, in milliseconds.
                const PASS: [u32; 10] = [10, 45, 50, 65, 75, 100, 140, 160, 250, 300];
                let Pace { round, rule, .. } = self.library;
                let pass = Duration::from_millis(PASS[usize::from(case.level.min(9))].into());
                let rounds = u32::try_from(rule.min_pairs + 2).unwrap_or(u32::MAX);
                (round.max(pass) + round.max(pass / 2)) * rounds
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gzip::case::LibraryWork;

    #[test]
    fn quick_covers_what_it_must_in_three_minutes() {
        let cases = Matrix::quick().cases();
        for level in [1, 6, 9] {
            for engine in Engine::COMPARED {
                let case = LibraryCase { engine, work: LibraryWork::Deflate, level };
                let expected = engine != Engine::Isal || level <= 3;
                assert_eq!(cases.contains(&GzipCase::Library(case)), expected, "{case:?}");
            }
        }
        let paces = Paces::quick();
        let time: Duration = cases.iter().map(|case| paces.estimate(case)).sum();
        assert!(time < Duration::from_secs(180), "{time:?}");
    }

    #[test]
    fn full_has_every_level_and_size() {
        let cases = Matrix::full().cases();
        let servers = cases.iter().filter(|case| matches!(case, GzipCase::Server(_))).count();
        assert_eq!(servers, 4 * 4);
        // Nine levels of four engines, three of ISA-L, nine in pieces, two that inflate.
        assert_eq!(cases.len() - servers, 9 * 4 + 3 + 9 + 2);
    }
}
