//! Owned counters: sums and differences of slots.

use crate::{Algorithm, Engine, Event, LANES, Reason};
use std::ops::{AddAssign, Index, IndexMut};

/// The counts of one writer, or of several together. Indexed by [`Algorithm`], [`Reason`],
/// [`Event`] and [`Engine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    algorithms: [AlgorithmCounters; Algorithm::COUNT],
    bypassed: [u64; Reason::COUNT],
    events: [u64; Event::COUNT],
    engines: [EngineCounters; Engine::COUNT],
}

/// One engine's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    pub ok: u64,
    /// Operations whose result was wrong or missing; each was redone elsewhere.
    pub failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// How long the engine was busy.
    pub busy_ns: u64,
    /// How often its breaker opened.
    pub opened: u64,
}

/// One algorithm's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlgorithmCounters {
    /// Operations that went through a batch.
    pub batched: u64,
    /// Operations that an engine did at once, outside a batch.
    pub single: u64,
    /// Queued operations for which the original function ran after all.
    pub scalar: u64,
    /// Batched operations redone by the original function.
    pub failed: u64,
    /// Batches run.
    pub batches: u64,
    /// CPU time of these batches.
    pub batch_ns: u64,
    /// CPU time saved by batches and single operations, by the writer's estimate.
    pub saved_ns: u64,
    /// Batches by number of lanes filled; index 0 is one lane.
    pub lanes: [u64; LANES],
}

impl Counters {
    /// All algorithms together.
    pub fn total(&self) -> AlgorithmCounters {
        let mut total = AlgorithmCounters::default();
        self.algorithms.iter().for_each(|one| total += *one);
        total
    }

    /// Operations that took the original path without having been queued.
    pub fn bypassed(&self) -> u64 {
        Reason::ALL
            .iter()
            .filter(|reason| !reason.was_queued())
            .fold(0, |sum, r| self[*r].saturating_add(sum))
    }

    /// The counts added after `earlier`, an older copy of the same counters.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = self.clone();
        for (new, old) in delta.algorithms.iter_mut().zip(&earlier.algorithms) {
            *new = new.since(old);
        }
        subtract(&mut delta.bypassed, &earlier.bypassed);
        subtract(&mut delta.events, &earlier.events);
        for (new, old) in delta.engines.iter_mut().zip(&earlier.engines) {
            *new = new.since(old);
        }
        delta
    }
}

impl AlgorithmCounters {
    /// Operations that were queued, or done at once, however they ended.
    pub fn queued(&self) -> u64 {
        self.batched.saturating_add(self.single).saturating_add(self.scalar)
    }

    /// Mean number of lanes filled, if there was any batch.
    pub fn average_lanes(&self) -> Option<f64> {
        (self.batches > 0).then(|| self.batched as f64 / self.batches as f64)
    }

    fn since(&self, earlier: &Self) -> Self {
        let mut lanes = self.lanes;
        subtract(&mut lanes, &earlier.lanes);
        Self {
            batched: self.batched.saturating_sub(earlier.batched),
            single: self.single.saturating_sub(earlier.single),
            scalar: self.scalar.saturating_sub(earlier.scalar),
            failed: self.failed.saturating_sub(earlier.failed),
            batches: self.batches.saturating_sub(earlier.batches),
            batch_ns: self.batch_ns.saturating_sub(earlier.batch_ns),
            saved_ns: self.saved_ns.saturating_sub(earlier.saved_ns),
            lanes,
        }
    }
}

impl EngineCounters {
    /// All operations it was given.
    pub fn operations(&self) -> u64 {
        self.ok.saturating_add(self.failed)
    }

    fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    fn with(&self, other: &Self, operation: fn(u64, u64) -> u64) -> Self {
        Self {
            ok: operation(self.ok, other.ok),
            failed: operation(self.failed, other.failed),
            bytes_in: operation(self.bytes_in, other.bytes_in),
            bytes_out: operation(self.bytes_out, other.bytes_out),
            busy_ns: operation(self.busy_ns, other.busy_ns),
            opened: operation(self.opened, other.opened),
        }
    }
}

// Saturating throughout, because a corrupt page may hold any number.

fn subtract(from: &mut [u64], what: &[u64]) {
    for (value, less) in from.iter_mut().zip(what) {
        *value = value.saturating_sub(*less);
    }
}

fn accumulate(into: &mut [u64], what: &[u64]) {
    for (value, more) in into.iter_mut().zip(what) {
        *value = value.saturating_add(*more);
    }
}

impl AddAssign for AlgorithmCounters {
    fn add_assign(&mut self, other: Self) {
        self.batched = self.batched.saturating_add(other.batched);
        self.single = self.single.saturating_add(other.single);
        self.scalar = self.scalar.saturating_add(other.scalar);
        self.failed = self.failed.saturating_add(other.failed);
        self.batches = self.batches.saturating_add(other.batches);
        self.batch_ns = self.batch_ns.saturating_add(other.batch_ns);
        self.saved_ns = self.saved_ns.saturating_add(other.saved_ns);
        accumulate(&mut self.lanes, &other.lanes);
    }
}

impl AddAssign for EngineCounters {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(&other, u64::saturating_add);
    }
}

impl AddAssign<&Self> for Counters {
    fn add_assign(&mut self, other: &Self) {
        for (sum, one) in self.algorithms.iter_mut().zip(&other.algorithms) {
            *sum += *one;
        }
        accumulate(&mut self.bypassed, &other.bypassed);
        accumulate(&mut self.events, &other.events);
        for (sum, one) in self.engines.iter_mut().zip(&other.engines) {
            *sum += *one;
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            algorithms: [AlgorithmCounters::default(); Algorithm::COUNT],
            bypassed: [0; Reason::COUNT],
            events: [0; Event::COUNT],
            engines: [EngineCounters::default(); Engine::COUNT],
        }
    }
}

macro_rules! index {
    ($($Name:ty => $field:ident: $Output:ty),+) => { $(
        impl Index<$Name> for Counters {
            type Output = $Output;
            fn index(&self, name: $Name) -> &$Output {
                &self.$field[name.index()]
            }
        }

        impl IndexMut<$Name> for Counters {
            fn index_mut(&mut self, name: $Name) -> &mut $Output {
                &mut self.$field[name.index()]
            }
        }
    )+ };
}

index!(
    Algorithm => algorithms: AlgorithmCounters,
    Reason => bypassed: u64,
    Event => events: u64,
    Engine => engines: EngineCounters
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_and_add_assign_are_inverse() {
        let mut before = Counters::default();
        before[Algorithm::P256Sign].batched = 8;
        before[Reason::Alone] = 3;
        let mut delta = Counters::default();
        delta[Algorithm::P256Sign].batched = 5;
        delta[Algorithm::P256Sign].lanes[4] = 1;
        delta[Event::Resumed] = 5;
        delta[Engine::Isal] = EngineCounters { ok: 3, failed: 1, bytes_in: 9, ..Default::default() };
        let mut after = before.clone();
        after += &delta;
        assert_eq!(after[Algorithm::P256Sign].batched, 13);
        assert_eq!(after.since(&before), delta);
    }

    #[test]
    fn counters_that_go_backwards_or_overflow_saturate() {
        let mut full = Counters::default();
        for algorithm in Algorithm::ALL {
            full[algorithm].batched = u64::MAX;
            full[algorithm].scalar = 1;
        }
        full[Engine::Qpl].ok = u64::MAX;
        full[Engine::Qpl].failed = 1;
        assert_eq!(full[Engine::Qpl].operations(), u64::MAX);
        assert_eq!(full.total().batched, u64::MAX);
        assert_eq!(full.total().queued(), u64::MAX);
        assert_eq!(Counters::default().since(&full), Counters::default());
    }

    #[test]
    fn bypassed_leaves_out_what_scalar_counts_already() {
        let mut counters = Counters::default();
        counters[Reason::Alone] = 5;
        counters[Reason::BelowBreakEven] = 7;
        counters[Reason::UnsupportedKey] = 11;
        counters[Reason::NoIfma] = 13;
        assert_eq!(counters.bypassed(), 24);
    }

    #[test]
    fn average_lanes_needs_a_batch() {
        let mut counters = AlgorithmCounters::default();
        assert_eq!(counters.average_lanes(), None);
        (counters.batched, counters.batches) = (13, 2);
        assert_eq!(counters.average_lanes(), Some(6.5));
    }
}
