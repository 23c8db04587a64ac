//! What a stream costs by a device and by software, learned while the process runs.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sizes from 1 KiB to 512 KiB, by powers of two.
const SIZES: usize = 10;

/// zlib's levels.
const LEVELS: usize = 10;

/// Of so many inputs that software is cheaper for, one is sent to the device all the same: its cost may have changed.
const RETRY: u32 = 64;

/// Averages of CPU nanoseconds for one input; 0 is not known.
#[derive(Debug)]
pub(super) struct Costs {
    device: [AtomicU64; SIZES],
    software: [[AtomicU64; SIZES]; LEVELS],
    refused: [AtomicU32; SIZES],
}

impl Costs {
    pub(super) const fn new() -> Self {
        Self {
            device: [const { AtomicU64::new(0) }; SIZES],
            software: [const { [const { AtomicU64::new(0) }; SIZES] }; LEVELS],
            refused: [const { AtomicU32::new(0) }; SIZES],
        }
    }

    /// Whether the device is the cheaper one, as far as is known. What is not known is tried.
    pub(super) fn pays(&self, level: u8, length: usize) -> bool {
        let size = size(length);
        let device = self.device[size].load(Ordering::Relaxed);
        let software = self.software[usize::from(level.min(9))][size].load(Ordering::Relaxed);
        // Software first: it has no start to wait for.
        if software == 0 {
            return false;
        }
        if device < software {
            return true;
        }
        self.refused[size].fetch_add(1, Ordering::Relaxed) % RETRY == RETRY - 1
    }

    /// What the device's time is below software's for such an input; 0 while that is not known.
    pub(super) fn saved(&self, level: u8, length: usize, cpu_ns: u64) -> u64 {
        self.software[usize::from(level.min(9))][size(length)].load(Ordering::Relaxed).saturating_sub(cpu_ns)
    }

    pub(super) fn device(&self, length: usize, cpu_ns: u64) {
        learn(&self.device[size(length)], cpu_ns);
    }

    pub(super) fn software(&self, level: u8, length: usize, cpu_ns: u64) {
        learn(&self.software[usize::from(level.min(9))][size(length)], cpu_ns);
    }
}

/// The latest counts an eighth: a race loses one of many samples.
fn learn(average: &AtomicU64, cpu_ns: u64) {
    let before = average.load(Ordering::Relaxed);
    let now = if before == 0 { cpu_ns } else { before - before / 8 + cpu_ns / 8 };
    average.store(now.max(1), Ordering::Relaxed);
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
        let tries = (0..RETRY * 40).filter(|_| {
            let pays = costs.pays(6, 2000);
            if pays {
                costs.device(2000, 10_000);
            }
            pays
        });
        assert!(tries.count() as u32 > RETRY * 10);
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
