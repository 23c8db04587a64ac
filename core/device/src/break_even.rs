//! The size from which a device is worth using: measured on this machine, and again and again while it runs.
//!
//! Sizes are classed by their binary logarithm. A side that has not been measured yet is tried; afterwards the cheaper
//! one is chosen, and once in a while the other, so that a device that has become slower (or faster) is noticed.

use hasten_guard::cost::{Mean, Retry};

/// Sizes up to 2 GiB; queue depths, too.
const CLASSES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Software,
    Device,
}

/// The cost of both sides, in nanoseconds of whatever the caller chooses to measure.
#[derive(Debug)]
pub struct BreakEven {
    classes: [Class; CLASSES],
}

#[derive(Debug)]
struct Class {
    cost: [Mean; 2],
    retry: Retry,
}

impl BreakEven {
    pub const fn new() -> Self {
        Self { classes: [const { Class { cost: [const { Mean::new() }; 2], retry: Retry::new() } }; CLASSES] }
    }

    /// Records what `amount` cost on one side.
    pub fn record(&self, side: Side, amount: usize, ns: u64) {
        self.class(amount).cost[side as usize].sample(ns);
    }

    /// The side that `amount` should go to now.
    pub fn choose(&self, amount: usize) -> Side {
        let class = self.class(amount);
        match (class.cost(Side::Software), class.cost(Side::Device)) {
            (0, _) => Side::Software,
            (_, 0) => Side::Device,
            (software, device) => {
                if (device < software) != class.retry.is_due() {
                    Side::Device
                } else {
                    Side::Software
                }
            }
        }
    }

    /// The smallest class from which the device is cheaper wherever both sides are known.
    pub fn from(&self) -> Option<usize> {
        let known = |class: &&Class| class.cost(Side::Software) > 0 && class.cost(Side::Device) > 0;
        let mut from = None;
        for (power, class) in self.classes.iter().enumerate().filter(|(_, class)| known(class)) {
            let is_cheaper = class.cost(Side::Device) < class.cost(Side::Software);
            from = if is_cheaper { from.or(Some(1 << power)) } else { None };
        }
        from
    }

    fn class(&self, amount: usize) -> &Class {
        &self.classes[(amount.max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

impl Default for BreakEven {
    fn default() -> Self {
        Self::new()
    }
}

impl Class {
    fn cost(&self, side: Side) -> u64 {
        self.cost[side as usize].ns()
    }
}

#[cfg(test)]
mod tests {
    use super::{BreakEven, Side};
    use proptest::prelude::*;

    /// Learns two linear costs from the choices alone.
    fn learn(device_fixed: u64, device: u64, software: u64, rounds: usize) -> BreakEven {
        let costs = BreakEven::new();
        for round in 0..rounds {
            let amount = 1_usize << (round % 24);
            let side = costs.choose(amount);
            let ns = match side {
                Side::Software => amount as u64 * software / 8,
                Side::Device => device_fixed + amount as u64 * device / 8,
            };
            costs.record(side, amount, ns);
        }
        costs
    }

    #[test]
    fn finds_the_size_from_which_the_device_is_cheaper() {
        // 10 µs and a quarter of a nanosecond for each byte, against one.
        let costs = learn(10_000, 2, 8, 24 * 10);
        assert_eq!(costs.from(), Some(16 << 10));
        assert_eq!(learn(10_000, 8, 8, 24 * 10).from(), None);
    }

    #[test]
    fn notices_that_a_device_has_become_slow() {
        let costs = learn(0, 2, 8, 24 * 10);
        let size = 1 << 20;
        for _ in 0..200 {
            let side = costs.choose(size);
            costs.record(side, size, if side == Side::Device { 9_000_000 } else { 1_000_000 });
        }
        let device = (0..64).filter(|_| costs.choose(size) == Side::Device).count();
        assert_eq!(device, 1);
    }

    proptest! {
        #[test]
        fn chooses_the_cheaper_side_nearly_always(software in 1..1_000_000_u64, device in 1..1_000_000_u64, amount: usize) {
            prop_assume!(software != device);
            let costs = BreakEven::new();
            costs.record(Side::Software, amount, software);
            costs.record(Side::Device, amount, device);
            let chosen = (0..128).filter(|_| costs.choose(amount) == Side::Device).count();
            prop_assert_eq!(chosen, if device < software { 126 } else { 2 });
        }

        #[test]
        fn any_measurement_is_taken(samples in prop::collection::vec((any::<bool>(), any::<usize>(), any::<u64>()), 0..64)) {
            let costs = BreakEven::new();
            for (device, amount, ns) in samples {
                costs.record(if device { Side::Device } else { Side::Software }, amount, ns);
                costs.choose(amount);
            }
            costs.from();
        }
    }
}
