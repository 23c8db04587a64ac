//! When a batch is cheaper than running its operations one by one.

mod overrides;

use hasten_guard::cost::Estimate;
use hasten_names::{Algorithm, LANES};

pub use self::overrides::{Overrides, OverridesError};

/// The costs of every algorithm, alone and in a batch, learnt from samples on the running server.
///
/// A batch costs the same with one lane in use as with eight, so one figure each is enough. One instance per thread.
#[derive(Clone, Debug)]
pub struct BreakEven {
    costs: [Cost; Algorithm::COUNT],
    overrides: Overrides,
}

impl BreakEven {
    /// The result of [`lanes`](Self::lanes) for an algorithm that gains nothing even from a full batch.
    pub const NEVER: usize = hasten_names::NEVER;

    /// Starts from the shipped figures.
    pub fn new(overrides: Overrides) -> Self {
        Self { costs: Algorithm::ALL.map(Cost::shipped), overrides }
    }

    /// The smallest group worth a batch: 1 to 8, or [`NEVER`](Self::NEVER).
    pub fn lanes(&self, algorithm: Algorithm) -> usize {
        let cost = &self.costs[algorithm.index()];
        self.overrides.get(algorithm).unwrap_or_else(|| cost.lanes_with_trial())
    }

    /// Learns from one operation that the host library ran.
    pub fn scalar_sample(&mut self, algorithm: Algorithm, ns: u64) {
        let cost = &mut self.costs[algorithm.index()];
        cost.scalar.sample(ns);
        cost.since_batch = cost.since_batch.saturating_add(1);
        cost.since_scalar = 0;
    }

    /// Learns from one batch, however many of its lanes were in use.
    pub fn batch_sample(&mut self, algorithm: Algorithm, ns: u64) {
        let cost = &mut self.costs[algorithm.index()];
        cost.batch.sample(ns);
        cost.since_scalar = cost.since_scalar.saturating_add(1);
        cost.since_batch = 0;
    }

    pub fn scalar_ns(&self, algorithm: Algorithm) -> u64 {
        self.costs[algorithm.index()].scalar.ns()
    }

    pub fn batch_ns(&self, algorithm: Algorithm) -> u64 {
        self.costs[algorithm.index()].batch.ns()
    }

    /// The CPU time saved by a batch of `lanes` operations; zero if it cost more.
    pub fn saved_ns(&self, algorithm: Algorithm, lanes: usize) -> u64 {
        let alone = self.scalar_ns(algorithm).saturating_mul(lanes as u64);
        alone.saturating_sub(self.batch_ns(algorithm))
    }
}

impl Default for BreakEven {
    fn default() -> Self {
        Self::new(Overrides::default())
    }
}

#[derive(Clone, Copy, Debug)]
struct Cost {
    scalar: Estimate,
    batch: Estimate,
    since_scalar: u32,
    since_batch: u32,
}

impl Cost {
    /// After this many samples of one way and none of the other, the other gets a chance to correct its figure: too
    /// rarely to cost anything, often enough that a wrong figure does not last.
    const TRIAL: u32 = 1024;

    /// Medians of `examples/measure.rs` on Zen 4 with OpenSSL 3.0.
    fn shipped(algorithm: Algorithm) -> Self {
        let (scalar_us, batch_us) = match algorithm {
            Algorithm::Rsa2048Sign => (235, 1057),
            Algorithm::Rsa3072Sign => (1777, 8000),
            Algorithm::Rsa4096Sign => (4028, 10600),
            Algorithm::P256Sign => (22, 40),
            Algorithm::P384Sign => (772, 115),
            Algorithm::X25519Keygen => (40, 39),
            Algorithm::P256Keygen => (26, 39),
            Algorithm::P384Keygen => (755, 110),
            Algorithm::X25519Derive => (35, 48),
            Algorithm::P256Derive => (95, 118),
            Algorithm::P384Derive => (1234, 370),
        };
        let [scalar, batch] = [scalar_us, batch_us].map(|us| Estimate::new(us * 1000));
        Self { scalar, batch, since_scalar: 0, since_batch: 0 }
    }

    fn lanes_with_trial(&self) -> usize {
        match self.lanes() {
            1 if self.since_scalar >= Self::TRIAL => 2,
            BreakEven::NEVER if self.since_batch >= Self::TRIAL => LANES,
            lanes => lanes,
        }
    }

    /// The smallest n with n * scalar > batch.
    fn lanes(&self) -> usize {
        let whole = self.batch.ns() / self.scalar.ns();
        usize::try_from(whole).map_or(BreakEven::NEVER, |whole| (whole + 1).min(BreakEven::NEVER))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RSA: Algorithm = Algorithm::Rsa2048Sign;

    fn feed(table: &mut BreakEven, scalar: u64, batch: u64, times: usize) {
        for _ in 0..times {
            table.scalar_sample(RSA, scalar);
            table.batch_sample(RSA, batch);
        }
    }

    #[test]
    fn shipped_figures_favour_batches_of_everything() {
        let table = BreakEven::default();
        for algorithm in Algorithm::ALL {
            assert!(table.lanes(algorithm) <= 5, "{algorithm}: {}", table.lanes(algorithm));
            assert!(table.saved_ns(algorithm, LANES) > 0);
        }
        assert_eq!(table.lanes(Algorithm::P384Derive), 1);
        assert_eq!(table.lanes(Algorithm::P384Sign), 1);
        assert_eq!(table.lanes(Algorithm::P256Sign), 2, "one alone is signed by the host");
        assert_eq!(table.lanes(RSA), 5);
    }

    #[test]
    fn samples_replace_the_shipped_figures() {
        let mut table = BreakEven::default();
        feed(&mut table, 100_000, 650_000, 40);
        assert!(table.scalar_ns(RSA).abs_diff(100_000) < 5_000);
        assert!(table.batch_ns(RSA).abs_diff(650_000) < 10_000);
        assert_eq!(table.lanes(RSA), 7);
        assert_eq!(table.saved_ns(RSA, 1), 0, "a loss is not a saving");
        assert_eq!(table.lanes(Algorithm::X25519Derive), BreakEven::default().lanes(Algorithm::X25519Derive));
    }

    #[test]
    fn a_batch_that_cannot_win_is_never_due() {
        let mut table = BreakEven::default();
        feed(&mut table, 100_000, 810_000, 200);
        assert_eq!(table.lanes(RSA), BreakEven::NEVER, "eight alone cost less");
    }

    #[test]
    fn interrupted_samples_change_nothing() {
        let mut table = BreakEven::default();
        feed(&mut table, 200_000, 900_000, 200);
        let before = (table.scalar_ns(RSA), table.batch_ns(RSA));
        for _ in 0..10 {
            feed(&mut table, 4_000_000, 5_000_000, 1);
            feed(&mut table, 200_000, 900_000, 2);
        }
        assert!(table.scalar_ns(RSA).abs_diff(before.0) < 1_000);
        assert!(table.batch_ns(RSA).abs_diff(before.1) < 1_000);
    }

    /// A slower clock or another host library, as opposed to an interruption.
    #[test]
    fn what_stays_dear_is_believed() {
        let mut table = BreakEven::default();
        feed(&mut table, 200_000, 900_000, 20);
        feed(&mut table, 2_000_000, 900_000, 40);
        assert!(table.scalar_ns(RSA).abs_diff(2_000_000) < 50_000);
        assert_eq!(table.lanes(RSA), 1);
    }

    #[test]
    fn the_way_not_taken_gets_a_trial_now_and_then() {
        let mut table = BreakEven::default();
        feed(&mut table, 100_000, 900_000, 40);
        let mut trials = 0;
        for _ in 0..10_000 {
            if table.lanes(RSA) == LANES {
                trials += 1;
                table.batch_sample(RSA, 900_000);
            } else {
                assert_eq!(table.lanes(RSA), BreakEven::NEVER);
                table.scalar_sample(RSA, 100_000);
            }
        }
        assert_eq!(trials, 10_000 / (Cost::TRIAL as usize + 1));

        // As with any sample, one good trial does not turn the table, but several do.
        feed(&mut table, 100_000, 100_000, 40);
        assert_eq!(table.lanes(RSA), 1 + 1);
        feed(&mut table, 100_000, 50_000, 40);
        (0..Cost::TRIAL).for_each(|_| table.batch_sample(RSA, 50_000));
        assert_eq!(table.lanes(RSA), 2, "the next single one runs alone");
        table.scalar_sample(RSA, 100_000);
        assert_eq!(table.lanes(RSA), 1);
    }

    #[test]
    fn overrides_hold_whatever_is_measured() {
        let mut table = BreakEven::new("rsa-2048-sign:3, p-256-sign:9".parse().unwrap());
        feed(&mut table, 1, 1_000_000_000, 2000);
        assert_eq!(table.lanes(RSA), 3);
        assert_eq!(table.lanes(Algorithm::P256Sign), BreakEven::NEVER);
        assert_eq!(table.lanes(Algorithm::P384Sign), 1);
    }

    proptest! {
        #[test]
        fn any_samples_leave_a_sensible_table(samples: Vec<(bool, u64)>) {
            let mut table = BreakEven::default();
            for (scalar, ns) in samples {
                if scalar {
                    table.scalar_sample(RSA, ns);
                } else {
                    table.batch_sample(RSA, ns);
                }
                prop_assert!((1..=BreakEven::NEVER).contains(&table.lanes(RSA)));
                prop_assert!(table.scalar_ns(RSA) > 0 && table.batch_ns(RSA) > 0);
            }
        }
    }
}
