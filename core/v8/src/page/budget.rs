//! How much of each trace the page may hold.

use crate::event::Kind;
use crate::profile::{ActivitySlice, Profile};
use crate::summary::{IsolateSummary, Slice, Summary};

/// Heaps with charts, of all traces together.
const HEAPS: usize = 16;
/// Pauses in charts, of all heaps together.
const PAUSES: usize = 12_000;
const SLICES: usize = 2_400;
const CPU_SLICES: usize = 960;

/// Each heap's share.
#[derive(Debug)]
pub(super) struct Budget {
    heaps: usize,
    pauses: usize,
    slices: usize,
    cpu_slices: usize,
}

impl Budget {
    pub(super) fn new(traces: &[Summary]) -> Self {
        let heaps = (HEAPS / traces.len().max(1)).max(1);
        let shown = traces.iter().map(|trace| trace.isolates.len().min(heaps)).sum::<usize>().max(1);
        Self { heaps, pauses: PAUSES / shown, slices: SLICES / shown, cpu_slices: CPU_SLICES / shown }
    }

    /// The heaps with the most time in pauses.
    pub(super) fn heaps<'a>(&self, trace: &'a Summary) -> &'a [IsolateSummary] {
        &trace.isolates[..trace.isolates.len().min(self.heaps)]
    }

    /// In order of time, and whether they are complete: if there are too many, the longest of each kind in each of
    /// many equal stretches of time.
    pub(super) fn pauses(&self, heap: &IsolateSummary) -> (Vec<(f64, Kind, f64)>, bool) {
        let all = &heap.timeline.pauses;
        let mut kept = if all.len() <= self.pauses { all.clone() } else { longest(all, self.pauses / 3) };
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        (kept, heap.timeline.is_complete && all.len() <= self.pauses)
    }

    pub(super) fn cpu_slices(&self, profile: &Profile) -> Vec<ActivitySlice> {
        active(&profile.timeline.slices, self.cpu_slices)
    }

    pub(super) fn slices(&self, heap: &IsolateSummary) -> Vec<Slice> {
        merged(&heap.timeline.slices, self.slices)
    }
}

fn longest(pauses: &[(f64, Kind, f64)], stretches: usize) -> Vec<(f64, Kind, f64)> {
    let stretches = stretches.max(1);
    let times = || pauses.iter().map(|pause| pause.0);
    let (from, to) = (times().fold(f64::MAX, f64::min), times().fold(f64::MIN, f64::max));
    let stretch = ((to - from) / stretches as f64).max(f64::MIN_POSITIVE);
    let mut best = std::collections::BTreeMap::new();
    for pause in pauses {
        let at = (((pause.0 - from) / stretch) as usize).min(stretches - 1);
        let longest = best.entry((at, pause.1)).or_insert(*pause);
        if pause.2 > longest.2 {
            *longest = *pause;
        }
    }
    best.into_values().collect()
}

/// At most `limit` slices, made by merging neighbours.
pub(super) fn merged(slices: &[Slice], limit: usize) -> Vec<Slice> {
    let by = slices.len().div_ceil(limit.max(1)).max(1);
    slices.chunks(by).map(|chunk| chunk.iter().copied().reduce(join).unwrap_or_default()).collect()
}

/// The same for CPU time.
pub(super) fn active(slices: &[ActivitySlice], limit: usize) -> Vec<ActivitySlice> {
    let by = slices.len().div_ceil(limit.max(1)).max(1);
    let together = |chunk: &[ActivitySlice]| {
        chunk.iter().cloned().reduce(|mut sum, next| {
            sum.to_ms = next.to_ms;
            sum.self_ms.iter_mut().zip(next.self_ms).for_each(|(sum, ms)| *sum += ms);
            sum.other_ms += next.other_ms;
            sum.program_ms += next.program_ms;
            sum.collector_ms += next.collector_ms;
            sum.idle_ms += next.idle_ms;
            sum
        })
    };
    slices.chunks(by).filter_map(together).collect()
}

fn join(first: Slice, second: Slice) -> Slice {
    let used = |slice: &Slice| slice.collections > 0;
    Slice {
        from_ms: first.from_ms,
        to_ms: second.to_ms,
        allocated: first.allocated + second.allocated,
        promoted: first.promoted + second.promoted,
        pause_ms: first.pause_ms + second.pause_ms,
        collections: first.collections + second.collections,
        // A slice without a collection knows nothing about the heap.
        used_min: match (used(&first), used(&second)) {
            (true, true) => first.used_min.min(second.used_min),
            (false, _) => second.used_min,
            (true, false) => first.used_min,
        },
        used_max: first.used_max.max(second.used_max),
        committed_max: first.committed_max.max(second.committed_max),
        external_max: first.external_max.max(second.external_max),
        spaces: second.spaces.or(first.spaces),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pauses_of_each_kind_survive_thinning() {
        let pauses: Vec<_> = (0..1000)
            .map(|at| {
                let kind = if at % 100 == 7 { Kind::MarkCompact } else { Kind::Scavenge };
                (f64::from(at), kind, f64::from(at * 7919 % 1000))
            })
            .collect();
        let kept = longest(&pauses, 10);
        assert!(kept.len() <= 20, "{}", kept.len());
        for kind in [Kind::Scavenge, Kind::MarkCompact] {
            let most = |of: &[(f64, Kind, f64)]| {
                of.iter().filter(|pause| pause.1 == kind).map(|pause| pause.2).fold(0.0, f64::max)
            };
            assert_eq!(most(&kept), most(&pauses));
        }
    }

    #[test]
    fn slices_join_without_losing_bytes_or_inventing_an_empty_heap() {
        let slice = |at: u32, used: u64| Slice {
            from_ms: f64::from(at),
            to_ms: f64::from(at + 1),
            collections: u64::from(used > 0),
            allocated: 10,
            pause_ms: 0.5,
            used_min: used,
            used_max: used * 2,
            ..Slice::default()
        };
        let slices: Vec<_> =
            [5, 0, 3, 0, 0, 0, 9].into_iter().zip(0..).map(|(used, at)| slice(at, used)).collect();
        let joined = merged(&slices, 2);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].used_min, joined[0].used_max, joined[0].to_ms), (3, 10, 4.0));
        assert_eq!((joined[1].used_min, joined[1].used_max, joined[1].allocated), (9, 18, 30));
        assert_eq!(merged(&slices, 100).len(), 7);
    }
}
