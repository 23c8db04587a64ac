//! The part of a trace that the model needs, in bounded memory: add every collection of one heap, in order of time.

use std::collections::VecDeque;

use crate::event::{Collection, Kind};

/// Collections kept from the beginning of a trace, the only place where the young generation is seen to grow.
const FIRST: usize = 1024;

/// Collections kept from its end; those in between only count in the totals.
const LAST: usize = 16 * 1024;

/// The collections of one heap. Its size is bounded by some 1.5 MB; a short trace takes little.
#[derive(Clone, Debug, Default)]
pub struct ModelInput {
    first: Vec<Sample>,
    last: VecDeque<Sample>,
    totals: Totals,
    first_ms: Option<f64>,
    last_ms: f64,
    /// How long nothing was observed between the two, and since the last collection.
    unseen_ms: f64,
    gap_ms: f64,
    /// Samples seen for `first` and `last`, kept or not.
    samples: u64,
    /// The previous collection had no heap size, or is unknown.
    is_gap: bool,
}

/// One collection as the model sees it; bytes and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub kind: Kind,
    pub at_ms: f64,
    pub pause_ms: f64,
    pub used_before: u64,
    pub used_after: u64,
    pub allocated: Option<u64>,
    pub copied: Option<u64>,
    pub promoted: Option<u64>,
    /// One semi-space.
    pub capacity: Option<u64>,
    /// Young objects after the collection, and objects in the spaces that a scavenge promotes into.
    pub young_after: Option<u64>,
    /// Collections before it are only counted, because their heap size is unknown, or are themselves unknown.
    pub is_behind_gap: bool,
}

/// Totals of all collections, including those not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub scavenges: u64,
    pub scavenge_pause_ms: f64,
    pub fulls: u64,
    pub full_pause_ms: f64,
}

impl ModelInput {
    /// Includes those without a heap size, which the model cannot use.
    pub(crate) fn scavenges(&self) -> u64 {
        self.totals.scavenges
    }

    pub fn push(&mut self, collection: &Collection) {
        let Collection { at_ms, pause_ms, .. } = *collection;
        self.first_ms.get_or_insert(at_ms - pause_ms);
        self.last_ms = at_ms;
        self.unseen_ms += std::mem::take(&mut self.gap_ms);
        match collection.kind {
            Kind::MarkCompact => {
                self.totals.fulls += 1;
                self.totals.full_pause_ms += pause_ms;
            }
            Kind::Scavenge | Kind::MinorMarkSweep => {
                self.totals.scavenges += 1;
                self.totals.scavenge_pause_ms += pause_ms;
            }
        }
        let Some(mut sample) = Sample::of(collection) else {
            self.is_gap = true;
            return;
        };
        sample.is_behind_gap = std::mem::take(&mut self.is_gap);
        self.samples += 1;
        if self.first.len() < FIRST {
            self.first.push(sample);
            return;
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(sample);
    }

    /// Nothing was observed for this long.
    pub fn gap(&mut self, unseen_ms: f64) {
        self.gap_ms += unseen_ms;
        self.is_gap = true;
    }

    /// From the beginning of the first pause to the end of the last one, without unobserved time.
    pub(crate) fn wall_ms(&self) -> f64 {
        (self.last_ms - self.first_ms.unwrap_or(self.last_ms) - self.unseen_ms).max(0.0)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// The samples kept, in order of time; a new part begins wherever something is missing.
    pub(crate) fn parts(&self) -> Vec<Vec<Sample>> {
        let is_whole = (self.first.len() + self.last.len()) as u64 == self.samples;
        let mut parts: Vec<Vec<Sample>> = Vec::new();
        for (n, sample) in self.first.iter().chain(&self.last).enumerate() {
            match parts.last_mut() {
                Some(part) if !sample.is_behind_gap && (is_whole || n != self.first.len()) => {
                    part.push(*sample);
                }
                _ => parts.push(vec![*sample]),
            }
        }
        parts
    }
}

impl<'a> FromIterator<&'a Collection> for ModelInput {
    fn from_iter<I: IntoIterator<Item = &'a Collection>>(collections: I) -> Self {
        let mut input = ModelInput::default();
        for collection in collections {
            input.push(collection);
        }
        input
    }
}

impl Sample {
    /// `None` if the heap size is unknown.
    fn of(collection: &Collection) -> Option<Sample> {
        let young = collection.young.unwrap_or_default();
        Some(Sample {
            kind: collection.kind,
            at_ms: collection.at_ms,
            pause_ms: collection.pause_ms,
            used_before: collection.used_before?,
            used_after: collection.used_after?,
            allocated: young.allocated,
            copied: young.copied,
            promoted: young.promoted,
            capacity: young.capacity,
            young_after: collection.spaces.map(|spaces| spaces.new + spaces.new_large),
            is_behind_gap: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Isolate, Reason};

    fn collection(at_ms: f64) -> Collection {
        Collection {
            isolate: Isolate { pid: 1, address: 0 },
            at_ms,
            kind: Kind::Scavenge,
            pause_ms: 1.0,
            steps_ms: 0.0,
            used_before: Some(3 << 20),
            used_after: Some(2 << 20),
            committed_before: 4 << 20,
            committed_after: 4 << 20,
            external_after: None,
            reason: Reason(Arc::from("allocation failure")),
            last_resort: false,
            young: None,
            spaces: None,
        }
    }

    #[test]
    fn a_long_trace_keeps_its_two_ends_and_its_totals() {
        let count = FIRST + LAST + 500;
        let collections: Vec<_> = (1..=count).map(|n| collection(n as f64 * 10.0)).collect();
        let input: ModelInput = collections.iter().collect();
        assert_eq!(input.totals().scavenges, count as u64);
        assert_eq!(input.totals().scavenge_pause_ms, count as f64);
        assert_eq!(input.wall_ms(), count as f64 * 10.0 - 9.0);
        let parts = input.parts();
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [FIRST, LAST]);
        assert_eq!(parts[1].last().map(|sample| sample.at_ms), Some(count as f64 * 10.0));
    }

    #[test]
    fn a_short_trace_is_one_part() {
        let collections: Vec<_> = (1..=FIRST + 2).map(|n| collection(n as f64)).collect();
        let input: ModelInput = collections.iter().collect();
        assert_eq!(input.parts().iter().map(Vec::len).collect::<Vec<_>>(), [FIRST + 2]);
        assert_eq!(ModelInput::default().wall_ms(), 0.0);
    }

    #[test]
    fn collections_without_a_heap_count_and_part_the_others() {
        let mut collections: Vec<_> = (1..=6).map(|n| collection(f64::from(n))).collect();
        collections[2].used_before = None;
        collections[3].used_after = None;
        let input: ModelInput = collections.iter().collect();
        assert_eq!(input.totals().scavenges, 6);
        assert_eq!(input.parts().iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn gaps_part_collections_and_take_no_time() {
        let mut input = ModelInput::default();
        for n in 1..=6 {
            if n == 4 {
                input.gap(20.0);
            }
            input.push(&collection(f64::from(n) * 10.0));
        }
        input.gap(100.0);
        assert_eq!(input.parts().iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(input.wall_ms(), 51.0 - 20.0);
    }
}
