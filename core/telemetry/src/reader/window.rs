//! Counts between two readings.

use super::Counters;
use crate::Event;
use std::time::Duration;

/// Counts over a period of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub elapsed: Duration,
    pub counted: Counters,
}

/// How operations were split, as fractions of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub batched: f64,
    pub single: f64,
    pub scalar: f64,
    pub bypassed: f64,
}

impl Window {
    /// A count of this window as a rate.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Operations that an engine could have done, however they ended; or streams, if the page counts streams.
    pub fn operations(&self) -> u64 {
        self.counted.operations()
    }

    /// Whether the counts are those of a compression library.
    pub fn is_of_streams(&self) -> bool {
        const OF_STREAMS: [Event; 6] = [
            Event::DeflateStreams,
            Event::DeflateBytesIn,
            Event::DeflateBytesOut,
            Event::InflateStreams,
            Event::InflateBytesIn,
            Event::InflateBytesOut,
        ];
        OF_STREAMS.into_iter().any(|event| self.counted[event] > 0)
    }

    /// How operations were split, if there were any.
    pub fn share(&self) -> Option<Share> {
        let all = self.operations();
        let total = self.counted.total();
        let part = |count: u64| count as f64 / all as f64;
        (all > 0).then(|| Share {
            batched: part(total.batched),
            single: part(total.single),
            scalar: part(total.scalar),
            bypassed: part(self.counted.bypassed()),
        })
    }

    /// CPUs freed by the accelerator, by the writer's estimate.
    pub fn cores_saved(&self) -> f64 {
        self.per_second(self.counted.saved_ns()) / 1e9
    }

    /// CPUs busy with batches.
    pub fn cores_batching(&self) -> f64 {
        self.per_second(self.counted.total().batch_ns) / 1e9
    }

    pub fn event_rate(&self, event: Event) -> f64 {
        self.per_second(self.counted[event])
    }
}

impl Counters {
    /// Operations that were queued and those that never were; a page counts either operations or streams.
    pub fn operations(&self) -> u64 {
        match self[Event::DeflateStreams].saturating_add(self[Event::InflateStreams]) {
            0 => self.total().queued().saturating_add(self.bypassed()),
            streams => streams,
        }
    }

    /// CPU time saved, by whatever means.
    pub fn saved_ns(&self) -> u64 {
        let of_streams = self[Event::DeflateSavedNs].saturating_add(self[Event::InflateSavedNs]);
        self.total().saved_ns.saturating_add(of_streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Reason};

    fn window(counted: Counters) -> Window {
        Window { elapsed: Duration::from_secs(2), counted }
    }

    #[test]
    fn shares_are_parts_of_all_operations() {
        let mut counted = Counters::default();
        counted[Algorithm::Rsa2048Sign].batched = 40;
        counted[Algorithm::P384Sign].single = 20;
        counted[Algorithm::P256Sign].scalar = 30;
        counted[Reason::Alone] = 30;
        counted[Reason::NotPolled] = 10;
        let window = window(counted);
        assert_eq!(window.operations(), 100);
        assert_eq!(window.share(), Some(Share { batched: 0.4, single: 0.2, scalar: 0.3, bypassed: 0.1 }));
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
