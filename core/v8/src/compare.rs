//! Several traces side by side: a column for each, ratios against the first.
//!
//! Traces differ in length and in the program's work meanwhile, so figures are also given per GiB allocated and per
//! second where possible.

use serde::Serialize;

use crate::event::{Isolate, Kind};
use crate::summary::{IsolateSummary, Pauses, Summary};
use crate::units;
use crate::verdict::{Headline, Tone};
use crate::words::{short_names, shortened};

/// A smaller difference counts as none.
const NOISE: f64 = 0.05;

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A trace, represented by the heap with the longest total pause.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub source: String,
    /// As much of the source as distinguishes it from the others.
    pub name: String,
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
    /// Whether less is better; otherwise it is a matter of taste.
    pub less_is_better: bool,
    pub values: Vec<Option<f64>>,
    /// Relative to the first value; `None` if one is missing or the first is 0.
    pub ratios: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Count,
    Milliseconds,
    /// Milliseconds, shown as a stretch of time.
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

/// A compared quantity, and how it is read from a heap.
struct Measure(&'static str, &'static str, Unit, bool, fn(&IsolateSummary) -> Option<f64>);

const MEASURES: [Measure; 20] = [
    Measure("span_ms", "time traced", Unit::Span, false, |heap| Some(heap.observed_ms())),
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
    /// `None` without at least two traces.
    #[must_use]
    pub fn of(traces: &[Summary]) -> Option<Self> {
        if traces.len() < 2 {
            return None;
        }
        let columns =
            traces.iter().zip(short_names(traces)).map(|(trace, name)| Column::of(trace, name)).collect();
        let heaps: Vec<_> = traces.iter().map(Summary::busiest).collect();
        let rows =
            MEASURES.iter().map(|measure| Row::of(measure, &heaps)).filter(Row::says_something).collect();
        Some(Self { columns, rows })
    }

    /// The trace with the least time in pauses, in one sentence.
    #[must_use]
    pub fn headline(&self) -> Headline {
        let of_time = self.best("pause_share");
        let of_work = self.best("pause_ms_per_gib");
        match (of_work, of_time) {
            (None, None) => Headline::new(Tone::Unknown, "These traces have too little in common to compare"),
            // Which of the two counts depends on whether the program had as much to do in both.
            (Some(work), Some(time)) if work.at != time.at => {
                let (work, time) = (self.name(work.at), self.name(time.at));
                let text = format!(
                    "{time} pauses the smallest part of its time, {work} the least per GiB allocated"
                );
                Headline::new(Tone::Unknown, text)
            }
            (Some(work), _) => self.tell(&work, "per GiB allocated"),
            (None, Some(time)) => self.tell(&time, "of its time"),
        }
    }

    fn tell(&self, best: &Best, what: &str) -> Headline {
        let first = self.name(0);
        if best.is_same {
            return Headline::new(Tone::Unknown, format!("No difference in time in pauses {what}"));
        }
        if best.at == 0 {
            return Headline::new(Tone::Notable, format!("{first} pauses least {what}"));
        }
        let (name, ratio) = (self.name(best.at), units::ratio(best.ratio));
        Headline::new(Tone::Good, format!("{name} pauses {ratio} as long as {first} {what}"))
    }

    /// `None` if a trace does not have it.
    fn best(&self, id: &str) -> Option<Best> {
        let row = self.rows.iter().find(|row| row.id == id)?;
        let values: Vec<f64> = row.values.iter().copied().collect::<Option<_>>()?;
        let (at, least) = values.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = values.iter().copied().fold(least, f64::max);
        // A tie with the first trace goes to the first.
        let at = if least >= values[0] * (1.0 - NOISE) { 0 } else { at };
        let ratio = if values[0] > 0.0 { values[at] / values[0] } else { 1.0 };
        Some(Best { at, ratio, is_same: most - least <= most * NOISE })
    }

    fn name(&self, at: usize) -> String {
        shortened(&self.columns[at].name, 60)
    }
}

/// The trace with the least of something.
struct Best {
    at: usize,
    /// Relative to the first trace.
    ratio: f64,
    /// All traces are within the noise.
    is_same: bool,
}

impl Column {
    fn of(trace: &Summary, name: String) -> Self {
        Self {
            source: trace.source.clone(),
            name,
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
            // For a slope, only the sign matters.
            Unit::BytesPerHour => vec![None; values.len()],
            _ => values.iter().map(|value| Some((*value)? / first?)).collect(),
        };
        Self { id, name, unit, less_is_better, values, ratios }
    }

    fn says_something(&self) -> bool {
        self.values.iter().any(Option::is_some)
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
