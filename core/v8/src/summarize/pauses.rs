//! How long the program was stopped, by kind of collection.

use hdrhistogram::Histogram;

use crate::event::{Collection, Kind, Reason};
use crate::summary::{KindSummary, LongPause, Pauses};

/// How many of the longest pauses are kept individually.
const LONGEST: usize = 20;

/// Percentiles are exact to this many digits, that is to 1 %.
const DIGITS: u8 = 2;

/// A pause of an hour: a longer one counts as that in percentiles.
const LIMIT_US: u64 = 3_600_000_000;

/// The upper edges of the charts' buckets in milliseconds, from a microsecond to nearly three hours; a pause exactly as
/// long as an edge belongs below it.
const EDGES: [f64; 60] = {
    const STEPS: [u64; 6] = [1000, 1500, 2000, 3000, 5000, 7000];
    let mut edges = [0.0; 60];
    let (mut decade, mut i) = (1, 0);
    while i < edges.len() {
        edges[i] = (STEPS[i % 6] * decade) as f64 / 1e6;
        i += 1;
        decade *= if i % 6 == 0 { 10 } else { 1 };
    }
    edges
};

pub(super) const KINDS: [Kind; 3] = [Kind::Scavenge, Kind::MinorMarkSweep, Kind::MarkCompact];

/// All pauses of one heap.
pub(super) struct Record {
    kinds: [Tally; 3],
    longest: Vec<LongPause>,
}

/// Pauses of one kind.
struct Tally {
    count: u64,
    total_ms: f64,
    steps_ms: f64,
    max_ms: f64,
    microseconds: Histogram<u64>,
    buckets: Vec<u64>,
    /// A handful, each a shared string: equal pointers are found without a comparison.
    reasons: Vec<(Reason, u64)>,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { kinds: [Tally::new(), Tally::new(), Tally::new()], longest: Vec::new() }
    }

    pub(super) fn push(&mut self, collection: &Collection) {
        self.kinds[collection.kind as usize].push(collection);
        let shortest = self.longest.last().map_or(0.0, |pause| pause.pause_ms);
        if self.longest.len() < LONGEST || collection.pause_ms > shortest {
            let behind = self.longest.partition_point(|pause| pause.pause_ms >= collection.pause_ms);
            self.longest.truncate(LONGEST - 1);
            let Collection { at_ms, kind, pause_ms, .. } = *collection;
            self.longest
                .insert(behind, LongPause { at_ms, kind, pause_ms, reason: collection.reason.clone() });
        }
    }

    pub(super) fn total_ms(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.total_ms).sum()
    }

    pub(super) fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    pub(super) fn all(&self) -> Pauses {
        let mut all = Tally::new();
        for kind in &self.kinds {
            all.add(kind);
        }
        all.pauses()
    }

    pub(super) fn by_kind(&self) -> Vec<KindSummary> {
        let kinds = KINDS.into_iter().zip(&self.kinds).filter(|(_, tally)| tally.count > 0);
        kinds.map(|(kind, tally)| tally.summary(kind)).collect()
    }

    pub(super) fn longest(self) -> Vec<LongPause> {
        self.longest
    }
}

impl Tally {
    fn new() -> Self {
        Self {
            count: 0,
            total_ms: 0.0,
            steps_ms: 0.0,
            max_ms: 0.0,
            microseconds: histogram(),
            buckets: Vec::new(),
            reasons: Vec::new(),
        }
    }

    fn push(&mut self, collection: &Collection) {
        self.count += 1;
        self.total_ms += collection.pause_ms;
        self.steps_ms += collection.steps_ms;
        self.max_ms = self.max_ms.max(collection.pause_ms);
        // It grows automatically up to the limit.
        let _ = self.microseconds.record(((collection.pause_ms * 1e3).round() as u64).min(LIMIT_US));
        let bucket = bucket(collection.pause_ms);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        match self.reasons.iter_mut().find(|(reason, _)| *reason == collection.reason) {
            Some((_, count)) => *count += 1,
            None => self.reasons.push((collection.reason.clone(), 1)),
        }
    }

    fn add(&mut self, other: &Tally) {
        self.count += other.count;
        self.total_ms += other.total_ms;
        self.max_ms = self.max_ms.max(other.max_ms);
        // Both have the same bounds, and grow automatically.
        let _ = self.microseconds.add(&other.microseconds);
    }

    fn pauses(&self) -> Pauses {
        let percentile = |quantile| {
            let microseconds = self.microseconds.value_at_quantile(quantile);
            // The upper edge of a bucket may lie above the longest pause.
            (microseconds as f64 / 1e3).min(self.max_ms)
        };
        Pauses {
            count: self.count,
            total_ms: self.total_ms,
            mean_ms: self.total_ms / self.count.max(1) as f64,
            p50_ms: percentile(0.5),
            p90_ms: percentile(0.9),
            p99_ms: percentile(0.99),
            max_ms: self.max_ms,
        }
    }

    fn summary(&self, kind: Kind) -> KindSummary {
        let named = self.reasons.iter().filter(|(reason, _)| !reason.0.is_empty());
        let mut reasons: Vec<_> = named.cloned().collect();
        reasons.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
        let empty = self.buckets.iter().take_while(|count| **count == 0).count();
        let histogram = self
            .buckets
            .iter()
            .enumerate()
            .skip(empty)
            .map(|(bucket, count)| (edge(bucket), *count))
            .collect();
        KindSummary {
            kind,
            pauses: self.pauses(),
            pause_share: None,
            steps_ms: self.steps_ms,
            reasons,
            histogram,
        }
    }
}

fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).expect("two digits are what the type can do");
    histogram.auto(true);
    histogram
}

/// The bucket of a pause; the last one has no upper edge.
fn bucket(pause_ms: f64) -> usize {
    EDGES.partition_point(|edge| *edge < pause_ms)
}

fn edge(bucket: usize) -> f64 {
    EDGES.get(bucket).copied().unwrap_or(f64::MAX)
}
