//! What was allocated and what became of it, as far as the source tells or the size of the heap shows.

use crate::event::{Collection, Kind};
use crate::summary::YoungSummary;

/// Sums over everything behind the first collection: what that one looked at is older than the trace.
#[derive(Default)]
pub(super) struct Nursery {
    allocated: u64,
    promoted: u64,
    /// By how much the heap grew over scavenges, each with what was allocated before it.
    growth: i64,
    allocated_for_scavenges: u64,
    /// Of scavenges that tell.
    examined: u64,
    kept: u64,
    /// What the last collection left in the young generation, where it tells.
    copied: Option<u64>,
    scavenges: u64,
    /// Scavenges that tell what they promoted.
    measured: u64,
    capacity: Option<u64>,
    largest_examined: u64,
    largest_freed: u64,
}

/// What one collection adds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flow {
    pub allocated: u64,
    pub promoted: u64,
}

impl Nursery {
    /// `used` is what was in use behind the collection before.
    pub(super) fn push(&mut self, collection: &Collection, used: Option<u64>) -> Flow {
        let young = collection.young.unwrap_or_default();
        self.capacity = self.capacity.max(young.capacity);
        let is_scavenge = collection.kind != Kind::MarkCompact;
        if is_scavenge {
            self.largest_freed =
                self.largest_freed.max(collection.used_before.saturating_sub(collection.used_after));
        }
        let copied = self.copied.take();
        self.copied = young.copied;
        let Some(used) = used else { return Flow::default() };
        let allocated = young.allocated.unwrap_or_else(|| collection.used_before.saturating_sub(used));
        let growth = collection.used_after as i64 - used as i64;
        let promoted = young.promoted.unwrap_or(0);
        self.allocated = self.allocated.saturating_add(allocated);
        self.promoted = self.promoted.saturating_add(promoted);
        if is_scavenge {
            self.scavenges += 1;
            self.measured += u64::from(young.promoted.is_some());
            self.growth = self.growth.saturating_add(growth);
            self.allocated_for_scavenges = self.allocated_for_scavenges.saturating_add(allocated);
            let examined = young.examined.or_else(|| Some(allocated.saturating_add(copied?)));
            self.survivors(examined, young.copied, young.promoted);
        }
        let concluded = if is_scavenge { growth.max(0).unsigned_abs() } else { 0 };
        Flow { allocated, promoted: young.promoted.unwrap_or(concluded) }
    }

    fn survivors(&mut self, examined: Option<u64>, copied: Option<u64>, promoted: Option<u64>) {
        let (Some(examined), Some(copied), Some(promoted)) = (examined, copied, promoted) else { return };
        self.examined = self.examined.saturating_add(examined);
        self.kept = self.kept.saturating_add(copied.saturating_add(promoted).min(examined));
        self.largest_examined = self.largest_examined.max(examined);
    }

    pub(super) fn finish(&self, wall_ms: f64) -> YoungSummary {
        let is_measured = self.measured > 0 && self.measured == self.scavenges;
        let grown = u64::try_from(self.growth).unwrap_or(0);
        let promoted = if is_measured { self.promoted } else { grown };
        let survival = match is_measured {
            true => share(self.kept, self.examined),
            // What was promoted had been copied once, and was looked at twice.
            false => share(grown.saturating_mul(2), self.allocated_for_scavenges.saturating_add(grown)),
        };
        let has_passed = self.scavenges > 0 && wall_ms > 0.0;
        let rate = |bytes: u64| has_passed.then(|| bytes as f64 / (wall_ms / 1e3));
        YoungSummary {
            allocated_bytes: has_passed.then_some(self.allocated),
            allocation_rate: rate(self.allocated),
            promoted_bytes: has_passed.then_some(promoted),
            promotion_rate: rate(promoted),
            survival,
            semi_space: self.capacity.or_else(|| self.concluded_semi_space()),
            is_measured,
            is_semi_space_measured: self.capacity.is_some(),
        }
    }

    /// A scavenge cannot look at more than a semi-space holds, nor free more; sizes are powers of two.
    fn concluded_semi_space(&self) -> Option<u64> {
        /// Objects too large for a page of their own kind count as young since Node 18, beside the semi-space.
        const BESIDE: u64 = 50;
        let most = self.largest_examined.max(self.largest_freed);
        (most > 0).then(|| (most - most / BESIDE).next_power_of_two())
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64).clamp(0.0, 1.0))
}
