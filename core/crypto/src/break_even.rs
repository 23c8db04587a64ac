//! Which way to run an operation is the cheapest: by the host library, by the engine for single operations, or in a batch.

mod overrides;

use hasten_guard::cost::Estimate;
use hasten_names::{Algorithm, LANES};

pub use self::overrides::{Overrides, OverridesError};

/// The costs of every algorithm, by each way to run it, learnt from samples on the running server.
///
/// A batch costs the same with one lane in use as with eight, so one figure is enough. One instance per thread.
#[derive(Clone, Debug)]
pub struct BreakEven {
    costs: [Cost; Algorithm::COUNT],
    overrides: Overrides,
}

/// How an operation is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the host library.
    Original,
    /// By an engine for single operations: [`Single`](crate::Single), or [`rsa_alone`](crate::LaneEngine::rsa_alone).
    Single,
    /// In a batch.
    Batch,
}

impl Way {
    const ALL: [Self; 3] = [Self::Original, Self::Single, Self::Batch];
}

impl BreakEven {
    /// The result of [`lanes`](Self::lanes) for an algorithm that gains nothing even from a full batch.
    pub const NEVER: usize = hasten_names::NEVER;

    /// Starts from the shipped figures. `has_single` says for which operations there is an engine for single ones.
    pub fn new(overrides: Overrides, has_single: impl Fn(Algorithm) -> bool) -> Self {
        let costs = Algorithm::ALL.map(|algorithm| Cost::shipped(algorithm, has_single(algorithm)));
        Self { costs, overrides }
    }

    /// The smallest group worth a batch: 1 to 8, or [`NEVER`](Self::NEVER).
    pub fn lanes(&self, algorithm: Algorithm) -> usize {
        let due = self.overrides.get(algorithm);
        due.unwrap_or_else(|| self.costs[algorithm.index()].lanes_with_trial())
    }

    /// The cheaper way to run an operation alone.
    pub fn alone(&self, algorithm: Algorithm) -> Way {
        self.costs[algorithm.index()].alone_with_trial()
    }

    /// Learns from one operation, or from one batch, however many of its lanes were in use.
    pub fn sample(&mut self, algorithm: Algorithm, way: Way, ns: u64) {
        self.costs[algorithm.index()].sample(way, ns);
    }

    /// The cost of an operation, or of a batch; `u64::MAX` where no engine does this operation alone.
    pub fn ns(&self, algorithm: Algorithm, way: Way) -> u64 {
        self.costs[algorithm.index()].ns(way)
    }

    /// The cost of an operation that is not in a batch.
    pub fn alone_ns(&self, algorithm: Algorithm) -> u64 {
        self.costs[algorithm.index()].alone_ns()
    }

    /// The CPU time saved by running `operations` this way, as against the host library; zero if it cost more.
    pub fn saved_ns(&self, algorithm: Algorithm, way: Way, operations: usize) -> u64 {
        let cost = &self.costs[algorithm.index()];
        let original = cost.ns(Way::Original).saturating_mul(operations as u64);
        original.saturating_sub(cost.ns(way))
    }
}

impl Default for BreakEven {
    fn default() -> Self {
        Self::new(Overrides::default(), |_| false)
    }
}

#[derive(Clone, Copy, Debug)]
struct Cost {
    original: Estimate,
    /// Absent where no engine does this operation alone.
    single: Option<Estimate>,
    batch: Estimate,
    /// Samples of other ways since the last of this one.
    since: [u32; Way::ALL.len()],
}

impl Cost {
    /// After this many samples of other ways, a way that would not be taken gets a chance to correct its figure: too
    /// rarely to cost anything, often enough that a wrong figure does not last.
    const TRIAL: u32 = 1024;

    /// Medians of `examples/measure.rs` on Zen 4 with OpenSSL 3.0, in µs.
    fn shipped(algorithm: Algorithm, has_single: bool) -> Self {
        let (original, single, batch) = match algorithm {
            Algorithm::Rsa2048Sign => (235, 206, 1057),
            Algorithm::Rsa3072Sign => (1777, 642, 8000),
            Algorithm::Rsa4096Sign => (4028, 1332, 10600),
            Algorithm::P256Sign => (22, 14, 40),
            Algorithm::P384Sign => (772, 70, 115),
            Algorithm::X25519Keygen => (40, 8, 39),
            Algorithm::P256Keygen => (26, 11, 39),
            Algorithm::P384Keygen => (755, 65, 110),
            Algorithm::X25519Derive => (35, 24, 48),
            Algorithm::P256Derive => (95, 46, 118),
            Algorithm::P384Derive => (1234, 142, 370),
        };
        let estimate = |us: u64| Estimate::new(us * 1000);
        Self {
            original: estimate(original),
            single: has_single.then(|| estimate(single)),
            batch: estimate(batch),
            since: [0; Way::ALL.len()],
        }
    }

    fn sample(&mut self, way: Way, ns: u64) {
        for (other, since) in Way::ALL.into_iter().zip(&mut self.since) {
            *since = if other == way { 0 } else { since.saturating_add(1) };
        }
        match way {
            Way::Original => self.original.sample(ns),
            Way::Single => self.single.get_or_insert_with(|| Estimate::new(ns)).sample(ns),
            Way::Batch => self.batch.sample(ns),
        }
    }

    fn ns(&self, way: Way) -> u64 {
        match way {
            Way::Original => self.original.ns(),
            Way::Single => self.single.map_or(u64::MAX, |single| single.ns()),
            Way::Batch => self.batch.ns(),
        }
    }

    fn is_due(&self, way: Way) -> bool {
        self.since[way as usize] >= Self::TRIAL
    }

    fn alone_ns(&self) -> u64 {
        self.ns(self.alone())
    }

    fn alone(&self) -> Way {
        let single_wins = self.ns(Way::Single) < self.ns(Way::Original);
        if single_wins { Way::Single } else { Way::Original }
    }

    fn alone_with_trial(&self) -> Way {
        match self.alone() {
            Way::Single if self.is_due(Way::Original) => Way::Original,
            Way::Original if self.single.is_some() && self.is_due(Way::Single) => Way::Single,
            way => way,
        }
    }

    fn lanes_with_trial(&self) -> usize {
        let alone = self.alone();
        match self.lanes() {
            1 if self.is_due(alone) => 2,
            BreakEven::NEVER if self.is_due(Way::Batch) => LANES,
            lanes => lanes,
        }
    }

    /// The smallest n with n operations alone dearer than a batch.
    fn lanes(&self) -> usize {
        let whole = self.batch.ns() / self.alone_ns();
        usize::try_from(whole).map_or(BreakEven::NEVER, |whole| (whole + 1).min(BreakEven::NEVER))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RSA: Algorithm = Algorithm::Rsa2048Sign;

    fn feed(table: &mut BreakEven, original: u64, batch: u64, times: usize) {
        for _ in 0..times {
            table.sample(RSA, Way::Original, original);
            table.sample(RSA, Way::Batch, batch);
        }
    }

    #[test]
    fn shipped_figures_favour_batches_of_everything() {
        let table = BreakEven::default();
        for algorithm in Algorithm::ALL {
            assert!(table.lanes(algorithm) <= 5, "{algorithm}: {}", table.lanes(algorithm));
            assert!(table.saved_ns(algorithm, Way::Batch, LANES) > 0);
        }
        assert_eq!(table.lanes(Algorithm::P384Derive), 1);
        assert_eq!(table.lanes(Algorithm::P384Sign), 1);
        assert_eq!(table.lanes(Algorithm::P256Sign), 2, "one alone is signed by the host");
        assert_eq!(table.lanes(RSA), 5);
    }

    #[test]
    fn an_engine_for_one_moves_the_break_even() {
        let table = BreakEven::new(Overrides::default(), |algorithm| algorithm != RSA);
        for algorithm in Algorithm::ALL {
            assert_eq!(table.alone(algorithm) == Way::Single, algorithm != RSA, "{algorithm}");
            assert_eq!(BreakEven::default().alone(algorithm), Way::Original, "{algorithm}");
        }
        assert_eq!(
            table.lanes(Algorithm::Rsa3072Sign),
            BreakEven::NEVER,
            "eight alone cost less than a batch"
        );
        assert_eq!(table.lanes(Algorithm::Rsa4096Sign), LANES);
        assert_eq!(table.lanes(Algorithm::P256Sign), 3);
        assert_eq!(table.lanes(Algorithm::P384Sign), 2);
        assert_eq!(table.lanes(Algorithm::P384Derive), 3, "two alone cost less than a batch");
        let saved = table.saved_ns(Algorithm::P384Sign, Way::Single, 1);
        assert_eq!(saved, 702_000, "as against the host library");
    }

    /// A host library that is faster than the figures say, as OpenSSL 3.5 is with P-384.
    #[test]
    fn the_host_library_gets_a_trial_now_and_then() {
        const SIGN: Algorithm = Algorithm::P384Sign;
        let mut table = BreakEven::new(Overrides::default(), |_| true);
        let mut originals = 0;
        for _ in 0..100_000 {
            let way = table.alone(SIGN);
            originals += usize::from(way == Way::Original);
            table.sample(SIGN, way, if way == Way::Original { 50_000 } else { 70_000 });
        }
        assert!(originals > 50_000, "{originals}");
        let singles = 100_000 - originals;
        assert!(singles < 50_000 && table.alone_ns(SIGN).abs_diff(50_000) < 5_000);
    }

    #[test]
    fn samples_replace_the_shipped_figures() {
        let mut table = BreakEven::default();
        feed(&mut table, 100_000, 650_000, 40);
        assert!(table.ns(RSA, Way::Original).abs_diff(100_000) < 5_000);
        assert!(table.ns(RSA, Way::Batch).abs_diff(650_000) < 10_000);
        assert_eq!(table.lanes(RSA), 7);
        assert_eq!(table.saved_ns(RSA, Way::Batch, 1), 0, "a loss is not a saving");
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
        let before = (table.ns(RSA, Way::Original), table.ns(RSA, Way::Batch));
        for _ in 0..10 {
            feed(&mut table, 4_000_000, 5_000_000, 1);
            feed(&mut table, 200_000, 900_000, 2);
        }
        assert!(table.ns(RSA, Way::Original).abs_diff(before.0) < 1_000);
        assert!(table.ns(RSA, Way::Batch).abs_diff(before.1) < 1_000);
    }

    /// A slower clock or another host library, as opposed to an interruption.
    #[test]
    fn what_stays_dear_is_believed() {
        let mut table = BreakEven::default();
        feed(&mut table, 200_000, 900_000, 20);
        feed(&mut table, 2_000_000, 900_000, 40);
        assert!(table.ns(RSA, Way::Original).abs_diff(2_000_000) < 50_000);
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
                table.sample(RSA, Way::Batch, 900_000);
            } else {
                assert_eq!(table.lanes(RSA), BreakEven::NEVER);
                table.sample(RSA, Way::Original, 100_000);
            }
        }
        assert_eq!(trials, 10_000 / (Cost::TRIAL as usize + 1));

        // As with any sample, one good trial does not turn the table, but several do.
        feed(&mut table, 100_000, 100_000, 40);
        assert_eq!(table.lanes(RSA), 1 + 1);
        feed(&mut table, 100_000, 50_000, 40);
        (0..Cost::TRIAL).for_each(|_| table.sample(RSA, Way::Batch, 50_000));
        assert_eq!(table.lanes(RSA), 2, "the next single one runs alone");
        table.sample(RSA, Way::Original, 100_000);
        assert_eq!(table.lanes(RSA), 1);
    }

    #[test]
    fn overrides_hold_whatever_is_measured() {
        let mut table = BreakEven::new("rsa-2048-sign:3, p-256-sign:9".parse().unwrap(), |_| false);
        feed(&mut table, 1, 1_000_000_000, 2000);
        assert_eq!(table.lanes(RSA), 3);
        assert_eq!(table.lanes(Algorithm::P256Sign), BreakEven::NEVER);
        assert_eq!(table.lanes(Algorithm::P384Sign), 1);
    }

    proptest! {
        #[test]
        fn any_samples_leave_a_sensible_table(samples: Vec<(bool, u64)>) {
            let mut table = BreakEven::default();
            for (original, ns) in samples {
                if original {
                    table.sample(RSA, Way::Original, ns);
                } else {
                    table.sample(RSA, Way::Batch, ns);
                }
                prop_assert!((1..=BreakEven::NEVER).contains(&table.lanes(RSA)));
                prop_assert!(table.ns(RSA, Way::Original) > 0 && table.ns(RSA, Way::Batch) > 0);
            }
        }
    }
}
