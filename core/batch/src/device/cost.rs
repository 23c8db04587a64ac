//! What an operation done by a device costs the calling thread, by how many are in progress at once.

use hasten_crypto::{Algorithm, LANES, RsaSize};
use hasten_guard::cost::{Mean, Retry};

/// For one operation of each size, with one to eight of them in progress.
#[derive(Debug)]
pub(super) struct Costs {
    learned: [[Mean; LANES]; RsaSize::ALL.len()],
    /// The cost of the start-up question with the known answer, until something better is known.
    asked: Mean,
    retry: Retry,
}

impl Costs {
    pub(super) const fn new() -> Self {
        Self {
            learned: [const { [const { Mean::new() }; LANES] }; RsaSize::ALL.len()],
            asked: Mean::new(),
            retry: Retry::new(),
        }
    }

    /// Whether the device is cheaper at this depth, as far as is known. Unknown costs are tried.
    pub(super) fn pays(&self, algorithm: Algorithm, depth: usize, software_ns: u64) -> bool {
        self.is_cheaper(algorithm, depth, software_ns) || self.retry.is_due()
    }

    /// The same, without occasional retries.
    pub(super) fn is_cheaper(&self, algorithm: Algorithm, depth: usize, software_ns: u64) -> bool {
        self.of(algorithm, depth) < software_ns
    }

    pub(super) fn of(&self, algorithm: Algorithm, depth: usize) -> u64 {
        let learned = self.mean(algorithm, depth);
        if learned.is_known() { learned.ns() } else { self.asked.ns() }
    }

    pub(super) fn took(&self, algorithm: Algorithm, depth: usize, cpu_ns: u64) {
        self.mean(algorithm, depth).sample(cpu_ns);
    }

    pub(super) fn question_took(&self, cpu_ns: u64) {
        self.asked.set(cpu_ns);
    }

    fn mean(&self, algorithm: Algorithm, depth: usize) -> &Mean {
        let size = RsaSize::ALL.iter().position(|size| size.sign() == algorithm).unwrap_or_default();
        &self.learned[size][depth.clamp(1, LANES) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSA: Algorithm = Algorithm::Rsa2048Sign;

    /// A single operation costs 235 µs in software, one of eight 132.
    #[test]
    fn the_depth_decides() {
        let costs = Costs::new();
        assert!(costs.pays(RSA, 1, 235_000), "what is not known is tried");
        costs.question_took(300_000);
        assert!(!costs.pays(RSA, 1, 235_000), "the question was too dear");
        for _ in 0..40 {
            costs.took(RSA, 1, 150_000);
            costs.took(RSA, 8, 140_000);
        }
        assert!(costs.is_cheaper(RSA, 1, 235_000));
        assert!(!costs.is_cheaper(RSA, 8, 132_000));
        assert!(!costs.is_cheaper(RSA, 100, 132_000), "deeper than eight is as eight");
        assert!(!costs.is_cheaper(Algorithm::Rsa4096Sign, 1, 235_000), "another size");
    }

    #[test]
    fn a_device_that_has_become_cheaper_is_found_out() {
        let costs = Costs::new();
        costs.took(RSA, 1, 900_000);
        let tries = (0..Retry::EVERY * 60).filter(|_| {
            let pays = costs.pays(RSA, 1, 235_000);
            if pays {
                costs.took(RSA, 1, 20_000);
            }
            pays
        });
        assert!(tries.count() as u32 > Retry::EVERY * 10);
        (0..40).for_each(|_| costs.took(RSA, 1, 900_000));
        assert!(!costs.is_cheaper(RSA, 1, 235_000));
    }
}
