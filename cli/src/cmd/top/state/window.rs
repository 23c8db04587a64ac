//! What happened between two samples.

use std::time::Duration;

use hasten_telemetry::{Counters, Event};

use super::{Direction, Traffic};

/// Counts over a stretch of time.
#[derive(Clone, Debug)]
pub(in crate::cmd::top) struct Window {
    pub(in crate::cmd::top) elapsed: Duration,
    pub(in crate::cmd::top) counted: Counters,
}

/// Which way operations went, as parts of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cmd::top) struct Share {
    pub(in crate::cmd::top) batched: f64,
    pub(in crate::cmd::top) scalar: f64,
    pub(in crate::cmd::top) bypassed: f64,
}

impl Window {
    /// A count of this window as a rate.
    pub(in crate::cmd::top) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Operations that could have been batched, however they ended; streams, where it is streams that are counted.
    pub(in crate::cmd::top) fn operations(&self) -> u64 {
        operations(&self.counted)
    }

    /// Whether what is counted here is the work of a compression library.
    pub(in crate::cmd::top) fn is_of_streams(&self) -> bool {
        Direction::ALL.into_iter().any(|direction| !direction.of(&self.counted).is_empty())
    }

    /// How operations were split, if there was any.
    pub(in crate::cmd::top) fn share(&self) -> Option<Share> {
        let all = self.operations();
        let total = self.counted.total();
        let part = |count: u64| count as f64 / all as f64;
        (all > 0).then(|| Share {
            batched: part(total.batched),
            scalar: part(total.scalar),
            bypassed: part(self.counted.bypassed()),
        })
    }

    /// CPUs that were free because of what the accelerator does, as the writer estimates it.
    pub(in crate::cmd::top) fn cores_saved(&self) -> f64 {
        self.per_second(saved_ns(&self.counted)) / 1e9
    }

    /// CPUs that were busy with batches.
    pub(in crate::cmd::top) fn cores_batching(&self) -> f64 {
        self.per_second(self.counted.total().batch_ns) / 1e9
    }

    pub(in crate::cmd::top) fn event_rate(&self, event: Event) -> f64 {
        self.per_second(self.counted[event])
    }
}

/// Queued operations and those that never were; a page counts either operations or streams.
pub(in crate::cmd::top) fn operations(counters: &Counters) -> u64 {
    match sum(counters, |traffic| traffic.streams) {
        0 => counters.total().queued().saturating_add(counters.bypassed()),
        streams => streams,
    }
}

/// CPU time saved, whatever it was saved on.
pub(in crate::cmd::top) fn saved_ns(counters: &Counters) -> u64 {
    counters.total().saved_ns.saturating_add(sum(counters, |traffic| traffic.saved_ns))
}

/// Over both directions.
fn sum(counters: &Counters, of: fn(&Traffic) -> u64) -> u64 {
    Direction::ALL.iter().fold(0, |sum, direction| of(&direction.of(counters)).saturating_add(sum))
}

#[cfg(test)]
mod tests {
    use hasten_telemetry::{Algorithm, Reason};

    use super::*;

    fn window(counted: Counters) -> Window {
        Window { elapsed: Duration::from_secs(2), counted }
    }

    #[test]
    fn shares_are_parts_of_all_operations() {
        let mut counted = Counters::default();
        counted[Algorithm::Rsa2048Sign].batched = 60;
        counted[Algorithm::P256Sign].scalar = 30;
        counted[Reason::Alone] = 30;
        counted[Reason::NotPolled] = 10;
        let window = window(counted);
        assert_eq!(window.operations(), 100);
        assert_eq!(window.share(), Some(Share { batched: 0.6, scalar: 0.3, bypassed: 0.1 }));
        assert_eq!(window.per_second(100), 50.0);
    }

    #[test]
    fn without_operations_there_is_no_share() {
        assert_eq!(window(Counters::default()).share(), None);
    }

    #[test]
    fn saved_time_over_time_is_cores() {
        let mut counted = Counters::default();
        counted[Algorithm::P384Derive].saved_ns = 3_000_000_000;
        counted[Algorithm::P384Derive].batch_ns = 500_000_000;
        let window = window(counted);
        assert_eq!((window.cores_saved(), window.cores_batching()), (1.5, 0.25));
    }

    #[test]
    fn no_time_is_no_division_by_zero() {
        let window = Window { elapsed: Duration::ZERO, counted: Counters::default() };
        assert_eq!(window.per_second(0), 0.0);
    }
}
