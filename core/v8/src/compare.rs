//! Several traces side by side: a column for each, ratios against the first.
//!
//! Traces differ in length and in what the program did meanwhile, so what can be is also told for each GiB allocated
//! and for each second.

use serde::Serialize;

use crate::event::{Isolate, Kind};
use crate::summary::{IsolateSummary, Pauses, Summary};
use crate::units;
use crate::verdict::{Headline, Tone};

/// A smaller difference is none.
const NOISE: f64 = 0.05;

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A trace, by the heap whose pauses took longest in it.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub source: String,
    pub isolate: Option<Isolate>,
    /// How many heaps the trace has.
    pub heaps: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Stable, for programs.
    pub id: &'static str,
    pub name: &'static str,
    pub unit: Unit,
    /// Whether less of it is better; a matter of taste otherwise.
    pub less_is_better: bool,
    pub values: Vec<Option<f64>>,
    /// By the first value; `None` where one is missing or the first is 0.
    pub ratios: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Count,
    Milliseconds,
    /// Milliseconds again, as a stretch of time.
    Span,
    Bytes,
    BytesPerSecond,
    BytesPerHour,
    Share,
}

impl Unit {
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Count if value < 100.0 && value.fract() != 0.0 => format!("{value:.1}"),
            Self::Count => units::count(value.round() as u64),
            Self::Milliseconds => units::pause(value),
            Self::Span => units::span(value),
            Self::Bytes => units::bytes(value),
            Self::BytesPerSecond => units::rate(value),
            Self::BytesPerHour => units::trend(value),
            Self::Share => units::percent(value),
        }
    }
}

/// What is compared, and how it is read from a heap.
struct Measure(&'static str, &'static str, Unit, bool, fn(&IsolateSummary) -> Option<f64>);

const MEASURES: [Measure; 20] = [
    Measure("span_ms", "time traced", Unit::Span, false, |heap| Some(heap.span_ms())),
    Measure("pause_share", "of wall time in pauses", Unit::Share, true, |heap| heap.pause_share),
    Measure("pause_total_ms", "pauses in all", Unit::Milliseconds, true, |heap| Some(heap.pauses.total_ms)),
    Measure("pause_ms_per_gib", "pauses per GiB allocated", Unit::Milliseconds, true, |heap| {
        per_gib(heap, heap.pauses.total_ms)
    }),
    Measure("pause_p50_ms", "pause, median", Unit::Milliseconds, true, |heap| Some(heap.pauses.p50_ms)),
    Measure("pause_p99_ms", "pause, p99", Unit::Milliseconds, true, |heap| Some(heap.pauses.p99_ms)),
    Measure("pause_max_ms", "pause, longest", Unit::Milliseconds, true, |heap| Some(heap.pauses.max_ms)),
    Measure("scavenges", "young collections", Unit::Count, true, |heap| Some(young(heap)?.count as f64)),
    Measure("scavenges_per_gib", "young per GiB allocated", Unit::Count, true, |heap| {
        per_gib(heap, young(heap)?.count as f64)
    }),
    Measure("scavenge_total_ms", "young, pauses in all", Unit::Milliseconds, true, |heap| {
        Some(young(heap)?.total_ms)
    }),
    Measure("scavenge_p50_ms", "young, median", Unit::Milliseconds, true, |heap| Some(young(heap)?.p50_ms)),
    Measure("full", "full collections", Unit::Count, true, |heap| {
        Some(full(heap).map_or(0.0, |full| full.count as f64))
    }),
    Measure("full_total_ms", "full, pauses in all", Unit::Milliseconds, true, |heap| {
        Some(full(heap)?.total_ms)
    }),
    Measure("allocation_rate", "allocated", Unit::BytesPerSecond, false, |heap| heap.young.allocation_rate),
    Measure("promotion_rate", "promoted", Unit::BytesPerSecond, true, |heap| heap.young.promotion_rate),
    Measure("survival", "survives a scavenge", Unit::Share, true, |heap| heap.young.survival),
    Measure("semi_space", "semi-space", Unit::Bytes, false, |heap| Some(heap.young.semi_space? as f64)),
    Measure("after_full", "heap behind full, last", Unit::Bytes, true, |heap| {
        Some(heap.heap.after_full.last()?.1 as f64)
    }),
    Measure("trend", "its trend", Unit::BytesPerHour, true, |heap| Some(heap.heap.trend?.bytes_per_hour)),
    Measure("peak_committed", "heap, peak committed", Unit::Bytes, true, |heap| {
        Some(heap.heap.peak_committed as f64)
    }),
];

impl Comparison {
    /// `None` where there are not two traces to compare.
    #[must_use]
    pub fn of(traces: &[Summary]) -> Option<Self> {
        if traces.len() < 2 {
            return None;
        }
        let columns = traces.iter().map(Column::of).collect();
        let heaps: Vec<_> = traces.iter().map(Summary::busiest).collect();
        let rows =
            MEASURES.iter().map(|measure| Row::of(measure, &heaps)).filter(Row::says_something).collect();
        Some(Self { columns, rows })
    }

    /// The trace with the least time in pauses, in a sentence.
    #[must_use]
    pub fn headline(&self) -> Headline {
        let row = ["pause_ms_per_gib", "pause_share"]
            .iter()
            .filter_map(|id| self.rows.iter().find(|row| row.id == *id))
            .find(|row| row.values.iter().all(Option::is_some));
        let Some((row, values)) = row.and_then(|row| Some((row, row.all()?))) else {
            return Headline::new(Tone::Unknown, "These traces have too little in common to compare");
        };
        let what = if row.id == "pause_share" { "of its time" } else { "per GiB allocated" };
        let (best, least) = values.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap_or((0, &0.0));
        let name = |at: usize| self.columns[at].source.as_str();
        let first = values[0];
        if best != 0 && *least < first * (1.0 - NOISE) {
            let ratio = units::ratio(least / first);
            let text = format!("{} pauses {ratio} as long as {} {what}", name(best), name(0));
            return Headline::new(Tone::Good, text);
        }
        let most = values.iter().copied().fold(first, f64::max);
        match most <= first * (1.0 + NOISE) {
            true => Headline::new(Tone::Unknown, format!("No difference in time in pauses {what}")),
            false => Headline::new(Tone::Notable, format!("{} pauses least {what}", name(0))),
        }
    }
}

impl Column {
    fn of(trace: &Summary) -> Self {
        Self {
            source: trace.source.clone(),
            isolate: trace.busiest().map(|heap| heap.isolate),
            heaps: trace.isolates.len(),
        }
    }
}

impl Row {
    fn of(measure: &Measure, heaps: &[Option<&IsolateSummary>]) -> Self {
        let Measure(id, name, unit, less_is_better, read) = *measure;
        let values: Vec<Option<f64>> =
            heaps.iter().map(|heap| heap.and_then(read).filter(|value| value.is_finite())).collect();
        let first = values[0].filter(|first| *first > 0.0);
        let ratios = match unit {
            // The sign of a slope is what matters in it.
            Unit::BytesPerHour => vec![None; values.len()],
            _ => values.iter().map(|value| Some((*value)? / first?)).collect(),
        };
        Self { id, name, unit, less_is_better, values, ratios }
    }

    fn says_something(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    fn all(&self) -> Option<Vec<f64>> {
        self.values.iter().copied().collect()
    }
}

fn per_gib(heap: &IsolateSummary, value: f64) -> Option<f64> {
    let allocated = heap.young.allocated_bytes.filter(|bytes| *bytes > 0)?;
    Some(value / (allocated as f64 / f64::from(1 << 30)))
}

fn young(heap: &IsolateSummary) -> Option<Pauses> {
    let of = |kind| heap.by_kind.iter().find(|one| one.kind == kind);
    Some(of(Kind::Scavenge).or_else(|| of(Kind::MinorMarkSweep))?.pauses)
}

fn full(heap: &IsolateSummary) -> Option<Pauses> {
    Some(heap.by_kind.iter().find(|one| one.kind == Kind::MarkCompact)?.pauses)
}
