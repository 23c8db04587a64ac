//! What was allocated and what happened to it, as far as the source records it or the heap's size shows it.

use std::collections::VecDeque;

use crate::event::{Collection, Kind};
use crate::summary::YoungSummary;

/// How many scavenges after a full collection are remembered for what they show about the semi-space.
const EMPTY: usize = 64;

/// Sums over everything after the first collection: what that one examined is older than the trace.
#[derive(Default)]
pub(super) struct Nursery {
    flow: Flow,
    /// The time for which the allocation is known.
    told_ms: f64,
    /// The heap's growth over scavenges whose preceding allocation is known.
    growth: i64,
    allocated_for_scavenges: u64,
    /// Of scavenges that record it.
    examined: u64,
    kept: u64,
    /// What the last collection left in the young generation, if recorded.
    copied: Option<u64>,
    scavenges: u64,
    /// The number of scavenges that record what they promoted.
    measured: u64,
    semi_space: SemiSpace,
}

/// What one collection adds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flow {
    pub allocated: u64,
    pub promoted: u64,
}

impl Nursery {
    /// `since` is the end of the previous collection, and `used` what was in use after it.
    pub(super) fn push(&mut self, collection: &Collection, since: Option<f64>, used: Option<u64>) -> Flow {
        let young = collection.young.unwrap_or_default();
        let copied = std::mem::replace(&mut self.copied, young.copied);
        let grown = collection.used_before.zip(used).map(|(before, used)| before.saturating_sub(used));
        self.semi_space.push(collection, grown);
        let (Some(since), Some(allocated)) = (since, young.allocated.or(grown)) else {
            return Flow::default();
        };
        self.told_ms += (collection.at_ms - since).max(0.0);
        let mut flow = Flow { allocated, promoted: young.promoted.unwrap_or(0) };
        self.flow.add(flow);
        if collection.kind != Kind::MarkCompact {
            let growth =
                collection.used_after.zip(used).map_or(0, |(after, used)| after as i64 - used as i64);
            self.scavenges += 1;
            self.measured += u64::from(young.promoted.is_some());
            self.growth = self.growth.saturating_add(growth);
            self.allocated_for_scavenges = self.allocated_for_scavenges.saturating_add(allocated);
            let examined = young.examined.or_else(|| Some(allocated.saturating_add(copied?)));
            self.survivors(examined, young.copied, young.promoted);
            flow.promoted = young.promoted.unwrap_or(growth.max(0).unsigned_abs());
        }
        flow
    }

    fn survivors(&mut self, examined: Option<u64>, copied: Option<u64>, promoted: Option<u64>) {
        let (Some(examined), Some(copied), Some(promoted)) = (examined, copied, promoted) else { return };
        self.examined = self.examined.saturating_add(examined);
        self.kept = self.kept.saturating_add(copied.saturating_add(promoted).min(examined));
        self.semi_space.examined = self.semi_space.examined.max(examined);
    }

    /// `limit` is the largest size that V8 may choose, if known.
    pub(super) fn finish(&self, limit: Option<u64>) -> YoungSummary {
        let is_measured = self.measured > 0 && self.measured == self.scavenges;
        let grown = u64::try_from(self.growth).unwrap_or(0);
        let Flow { allocated, promoted } = self.flow;
        let promoted = if is_measured { promoted } else { grown };
        let survival = match is_measured {
            true => share(self.kept, self.examined),
            // Promoted objects had been copied once, and were examined twice.
            false => share(grown.saturating_mul(2), self.allocated_for_scavenges.saturating_add(grown)),
        };
        let is_told = self.scavenges > 0 && self.told_ms > 0.0;
        let concluded = self.semi_space.concluded();
        let rate = |bytes: u64| is_told.then(|| bytes as f64 / (self.told_ms / 1e3));
        YoungSummary {
            allocated_bytes: is_told.then_some(allocated),
            allocation_rate: rate(allocated),
            promoted_bytes: is_told.then_some(promoted),
            promotion_rate: rate(promoted),
            survival,
            semi_space: self
                .semi_space
                .capacity
                .or_else(|| concluded.map(|size| size.min(limit.unwrap_or(size)))),
            is_measured,
            is_semi_space_measured: self.semi_space.capacity.is_some(),
        }
    }
}

impl Flow {
    fn add(&mut self, other: Flow) {
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.promoted = self.promoted.saturating_add(other.promoted);
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64).clamp(0.0, 1.0))
}

/// The size of a semi-space, recorded or inferred.
#[derive(Default)]
struct SemiSpace {
    capacity: Option<u64>,
    /// The most that any scavenge examined, and freed.
    examined: u64,
    freed: u64,
    is_empty: bool,
    /// The allocation before scavenges that began with an empty semi-space.
    fillings: VecDeque<u64>,
}

impl SemiSpace {
    fn push(&mut self, collection: &Collection, grown: Option<u64>) {
        self.capacity = self.capacity.max(collection.young.and_then(|young| young.capacity));
        let was_empty = std::mem::replace(&mut self.is_empty, collection.kind == Kind::MarkCompact);
        if self.is_empty {
            return;
        }
        let freed = collection
            .used_before
            .zip(collection.used_after)
            .map(|(before, after)| before.saturating_sub(after));
        self.freed = self.freed.max(freed.unwrap_or(0));
        if let Some(filling) = grown.filter(|_| was_empty) {
            if self.fillings.len() == EMPTY {
                self.fillings.pop_front();
            }
            self.fillings.push_back(filling);
        }
    }

    /// Sizes are powers of two. A scavenge examines less than one; if that is not recorded, what it freed is less
    /// than one, and a full collection leaves a semi-space empty: the allocation until the next scavenge nearly fills
    /// it, if it was born young. Semi-spaces grow at the beginning, so the later scavenges count.
    fn concluded(&self) -> Option<u64> {
        /// Other contributions: rounding, and objects outside the semi-space.
        const BESIDE: u64 = 50;
        /// Hardly any scavenge keeps more than two thirds; allocation beyond that was born old.
        const KEPT: u64 = 3;
        let mut later: Vec<u64> = self.fillings.iter().skip(self.fillings.len() / 2).copied().collect();
        later.sort_unstable();
        let filling = later.get(later.len() / 2).copied().unwrap_or(0);
        let most = match self.examined {
            0 => filling.min(self.freed.saturating_mul(KEPT)).max(self.freed),
            examined => examined,
        };
        (most > 0).then(|| (most - most / BESIDE).checked_next_power_of_two()).flatten()
    }
}
