//! What a stream costs by a device and by software, learned while the process runs.

use hasten_guard::cost::{Mean, Retry};

/// Sizes from 1 KiB to 512 KiB, by powers of two.
const SIZES: usize = 10;

/// zlib's levels.
const LEVELS: usize = 10;

/// For one input.
#[derive(Debug)]
pub(super) struct Costs {
    device: [Mean; SIZES],
    software: [[Mean; SIZES]; LEVELS],
    retry: [Retry; SIZES],
}

impl Costs {
    pub(super) const fn new() -> Self {
        Self {
            device: [const { Mean::new() }; SIZES],
            software: [const { [const { Mean::new() }; SIZES] }; LEVELS],
            retry: [const { Retry::new() }; SIZES],
        }
    }

    /// Whether the device is the cheaper side, as far as is known. An unknown cost is found out by trying.
    pub(super) fn pays(&self, level: u8, length: usize) -> bool {
        let software = self.of_software(level, length);
        // Software first: it needs no start.
        software.is_known()
            && (self.device[size(length)].ns() < software.ns() || self.retry[size(length)].is_due())
    }

    /// How much less the device took than software does for such an input; 0 while that is unknown.
    pub(super) fn saved(&self, level: u8, length: usize, cpu_ns: u64) -> u64 {
        self.of_software(level, length).ns().saturating_sub(cpu_ns)
    }

    pub(super) fn device(&self, length: usize, cpu_ns: u64) {
        self.device[size(length)].sample(cpu_ns);
    }

    pub(super) fn software(&self, level: u8, length: usize, cpu_ns: u64) {
        self.of_software(level, length).sample(cpu_ns);
    }

    fn of_software(&self, level: u8, length: usize) -> &Mean {
        &self.software[usize::from(level.min(9))][size(length)]
    }
}

fn size(length: usize) -> usize {
    ((length >> 10).max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_one_is_asked_for_each_size() {
        let costs = Costs::new();
        assert!(!costs.pays(6, 4 << 10), "software goes first");
        for length in [4 << 10, 128 << 10] {
            costs.software(6, length, length as u64 * 25);
            assert!(costs.pays(6, length), "what is not known is tried");
            // A fixed cost and a little for each byte.
            costs.device(length, 200_000 + length as u64);
        }
        assert!(!costs.pays(6, 4 << 10));
        assert!(costs.pays(6, 128 << 10));
        assert!(!costs.pays(1, 128 << 10), "another level");
    }

    #[test]
    fn a_device_that_has_become_cheaper_is_found_out() {
        let costs = Costs::new();
        costs.software(6, 2000, 40_000);
        costs.device(2000, 90_000);
        let tries = (0..Retry::EVERY * 40).filter(|_| {
            let pays = costs.pays(6, 2000);
            if pays {
                costs.device(2000, 10_000);
            }
            pays
        });
        assert!(tries.count() as u32 > Retry::EVERY * 10);
        costs.device(2000, 900_000);
        assert!(!costs.pays(6, 2000));
    }

    #[test]
    fn sizes_are_powers_of_two() {
        for (length, expected) in [(0, 0), (1024, 0), (2047, 0), (2048, 1), (512 << 10, 9), (usize::MAX, 9)] {
            assert_eq!(size(length), expected, "{length}");
        }
    }
}
