//! The page's words and tables: everything that its charts show, for those who cannot see them.

use std::path::Path;

use serde::Serialize;

use super::budget::{Budget, active, merged};
use crate::advice::Advice;
use crate::compare::Comparison;
use crate::profile::{ActivitySlice, Profile};
use crate::summary::{IsolateSummary, KindSummary, Slice, Summary};
use crate::units;
use crate::verdict::Tone;
use crate::words::{short_names, shortened};

/// Rows of a table that replaces a chart.
const ROWS: usize = 24;
const LONGEST: usize = 10;
/// Functions in the table of self time.
const FUNCTIONS: usize = 40;
/// Threads with such a table.
const THREADS: usize = 17;
/// Heaps in the table of heaps.
const HEAPS: usize = 60;

/// A figure that catches the eye.
#[derive(Debug, Serialize)]
pub(super) struct Tile {
    name: &'static str,
    value: String,
    note: String,
    tone: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Card {
    title: String,
    reason: String,
    effect: String,
    unknowns: Vec<String>,
    node_options: String,
}

#[derive(Debug, Serialize)]
pub(super) struct ComparisonTable {
    columns: Vec<String>,
    rows: Vec<ComparisonRow>,
}

#[derive(Debug, Serialize)]
struct ComparisonRow {
    name: &'static str,
    cells: Vec<Cell>,
    /// Drawn as bars, too.
    is_key: bool,
}

#[derive(Debug, Serialize)]
struct Cell {
    value: String,
    ratio: String,
    /// In percent of the longest bar.
    bar: String,
}

/// A line of the table of heaps.
#[derive(Debug, Serialize)]
pub(super) struct HeapRow {
    trace: String,
    name: String,
    count: String,
    total: String,
    share: String,
    max: String,
    peak: String,
}

/// The tables of one heap.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
    name: String,
    kinds: Vec<KindRow>,
    longest: Vec<[String; 4]>,
    /// Whether the source records reasons.
    has_reasons: bool,
    growth: String,
    slices: Vec<[String; 7]>,
    histograms: Vec<(String, Vec<(String, String)>)>,
    full: Vec<[String; 2]>,
    /// Of the main thread, then of workers.
    cpu: Vec<Cpu>,
}

/// The CPU profile of one thread.
#[derive(Debug, Serialize)]
struct Cpu {
    thread: String,
    overview: String,
    remarks: Vec<String>,
    functions: Vec<[String; 4]>,
    slices: Vec<[String; 5]>,
}

#[derive(Debug, Serialize)]
struct KindRow {
    name: &'static str,
    cells: Vec<String>,
    reasons: String,
}

#[derive(Debug, Serialize)]
pub(super) struct LinesView {
    source: String,
    text: String,
    samples: Vec<String>,
    incomplete: Option<String>,
}

pub(super) fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Notable => "notable",
        Tone::Bad => "bad",
        Tone::Unknown => "unknown",
    }
}

pub(super) fn title(traces: &[Summary]) -> String {
    match traces {
        [trace] => file_name(&trace.source),
        _ => format!("{} traces", traces.len()),
    }
}

/// The file, its format, and its length.
pub(super) fn about(trace: &Summary) -> String {
    format!("{}: {}", shortened(&trace.source, 200), trace.description())
}

pub(super) fn tiles(trace: &Summary) -> Vec<Tile> {
    let Some(heap) = trace.busiest() else { return Vec::new() };
    let mut tiles = time_tiles(heap);
    tiles.extend(memory_tiles(heap));
    tiles.extend(heap.profile.as_ref().map(cpu_tile));
    tiles
}

fn time_tiles(heap: &IsolateSummary) -> Vec<Tile> {
    let tile = |name, value, note| Tile { name, value, note, tone: "" };
    let counts =
        heap.by_kind.iter().map(|kind| format!("{} {}", units::count(kind.pauses.count), kind.kind.word()));
    let longest = heap.longest.first();
    vec![
        tile(
            "Time in pauses",
            heap.pause_share.map_or("–".to_owned(), units::percent),
            format!("{} of {}", units::pause(heap.pauses.total_ms), units::span(heap.observed_ms())),
        ),
        tile(
            "Longest pause",
            units::pause(heap.pauses.max_ms),
            longest.map_or(String::new(), |one| format!("{} at {}", one.kind.word(), units::at(one.at_ms))),
        ),
        tile(
            "99 % of pauses within",
            units::pause(heap.pauses.p99_ms),
            format!("half within {}", units::pause(heap.pauses.p50_ms)),
        ),
        tile("Collections", units::count(heap.pauses.count), counts.collect::<Vec<_>>().join(", ")),
    ]
}

fn memory_tiles(heap: &IsolateSummary) -> Vec<Tile> {
    let tile = |name, value, note| Tile { name, value, note, tone: "" };
    let young = &heap.young;
    let unknown = || "–".to_owned();
    let source =
        if young.is_semi_space_measured { "measured" } else { "concluded from what scavenges freed" };
    let trend = heap.heap.trend;
    vec![
        tile(
            "Allocated",
            young.allocation_rate.map_or_else(unknown, units::rate),
            young
                .promotion_rate
                .map_or(String::new(), |rate| format!("{} of it becomes old", units::rate(rate))),
        ),
        tile(
            "Survives a scavenge",
            young.survival.map_or_else(unknown, units::percent),
            if young.is_measured {
                "of the bytes that it looked at"
            } else {
                "concluded from the size of the heap"
            }
            .to_owned(),
        ),
        tile(
            "Semi-space",
            young.semi_space.map_or_else(unknown, |bytes| units::bytes(bytes as f64)),
            if young.semi_space.is_some() { source.to_owned() } else { String::new() },
        ),
        Tile {
            name: "Heap behind full collections",
            value: heap.heap.after_full.last().map_or_else(unknown, |last| units::bytes(last.1 as f64)),
            note: trend.map_or(String::new(), |trend| {
                format!("{} over {} of them", units::trend(trend.bytes_per_hour), trend.collections)
            }),
            tone: if trend.is_some_and(|trend| trend.is_suspicious) { "bad" } else { "" },
        },
    ]
}

fn cpu_tile(profile: &Profile) -> Tile {
    let most = profile.functions.first();
    Tile {
        name: "CPU time of the main thread",
        value: units::percent(profile.share_of(profile.busy_ms())),
        note: most.map_or(String::new(), |one| {
            format!("{} of it in {}", units::percent(one.share), shortened(one.title(), 40))
        }),
        tone: "",
    }
}

pub(super) fn card(advice: &Advice) -> Card {
    Card {
        title: advice.title.clone(),
        reason: advice.reason.clone(),
        effect: advice.effect.clone(),
        unknowns: advice.unknowns.clone(),
        node_options: advice.node_options.join(" "),
    }
}

pub(super) fn comparison(comparison: &Comparison) -> ComparisonTable {
    const KEY: [&str; 6] = [
        "pause_share",
        "pause_ms_per_gib",
        "pause_p99_ms",
        "pause_max_ms",
        "scavenges_per_gib",
        "peak_committed",
    ];
    let row = |row: &crate::compare::Row| {
        let most = row.values.iter().flatten().copied().fold(0.0, f64::max);
        let cells = row.values.iter().zip(&row.ratios).map(|(value, ratio)| Cell {
            value: value.map_or("–".to_owned(), |value| row.unit.show(value)),
            ratio: ratio.map_or(String::new(), units::ratio),
            bar: format!("{:.1}", value.filter(|_| most > 0.0).map_or(0.0, |value| value / most * 100.0)),
        });
        ComparisonRow { name: row.name, cells: cells.collect(), is_key: KEY.contains(&row.id) && most > 0.0 }
    };
    ComparisonTable {
        columns: comparison.columns.iter().map(|column| column.name.clone()).collect(),
        rows: comparison.rows.iter().map(row).collect(),
    }
}

pub(super) fn heaps(traces: &[Summary]) -> Vec<HeapRow> {
    let names = short_names(traces);
    let all = traces
        .iter()
        .zip(&names)
        .flat_map(|(trace, name)| trace.isolates.iter().map(move |heap| (name, heap)));
    let row = |(trace, heap): (&String, &IsolateSummary)| HeapRow {
        trace: trace.clone(),
        name: heap.name(),
        count: units::count(heap.pauses.count),
        total: units::pause(heap.pauses.total_ms),
        share: heap.pause_share.map_or("–".to_owned(), units::percent),
        max: units::pause(heap.pauses.max_ms),
        peak: units::bytes(heap.heap.peak_used as f64),
    };
    all.take(HEAPS).map(row).collect()
}

/// How many heaps are missing from the table.
pub(super) fn hidden_heaps(traces: &[Summary]) -> u64 {
    let all: usize = traces.iter().map(|trace| trace.isolates.len()).sum();
    let rest: u64 = traces.iter().filter_map(|trace| trace.rest).map(|rest| rest.isolates).sum();
    all.saturating_sub(HEAPS) as u64 + rest
}

pub(super) fn numbers(traces: &[Summary], budget: &Budget) -> Vec<Numbers> {
    let names = short_names(traces);
    let mut all = Vec::new();
    for (trace, name) in traces.iter().zip(&names) {
        for heap in budget.heaps(trace) {
            all.push(Numbers::of(heap, &format!("{name}, {}", heap.name())));
        }
    }
    all
}

impl Numbers {
    fn of(heap: &IsolateSummary, name: &str) -> Self {
        let longest = heap.longest.iter().take(LONGEST).map(|one| {
            let reason = shortened(&one.reason.0, 100);
            [units::at(one.at_ms), one.kind.word().to_owned(), units::pause(one.pause_ms), reason]
        });
        let full = &heap.heap.after_full;
        let full = full.chunks(full.len().div_ceil(ROWS).max(1)).map(|chunk| chunk[0]);
        Self {
            name: name.to_owned(),
            kinds: heap.by_kind.iter().map(KindRow::of).collect(),
            longest: longest.collect(),
            has_reasons: heap.longest.iter().any(|one| !one.reason.0.is_empty()),
            growth: heap.heap.growth(),
            slices: merged(&heap.timeline.slices, ROWS).iter().map(slice_row).collect(),
            histograms: heap.by_kind.iter().map(histogram).collect(),
            full: full.map(|(at, bytes)| [units::at(at), units::bytes(bytes as f64)]).collect(),
            cpu: heap
                .profile
                .iter()
                .chain(&heap.workers)
                .take(THREADS)
                .map(|profile| Cpu::of(profile, heap.unseen_ms > 0.0))
                .collect(),
        }
    }
}

impl Cpu {
    fn of(profile: &Profile, has_gaps: bool) -> Self {
        let function = |one: &crate::profile::Function| {
            [
                shortened(one.title(), 100),
                units::pause(one.self_ms),
                units::percent(one.share),
                shortened(&one.place(), 160),
            ]
        };
        let slice = |slice: &ActivitySlice| {
            let functions_ms = slice.self_ms.iter().sum::<f64>() + slice.other_ms;
            let times = [functions_ms, slice.program_ms, slice.collector_ms, slice.idle_ms].map(units::pause);
            let [functions, program, collector, idle] = times;
            [units::at(slice.from_ms), functions, program, collector, idle]
        };
        Self {
            thread: shortened(&profile.thread(), 100),
            overview: profile.overview(has_gaps),
            remarks: profile.remarks(),
            functions: profile.functions.iter().take(FUNCTIONS).map(function).collect(),
            slices: active(&profile.timeline.slices, ROWS).iter().map(slice).collect(),
        }
    }
}

impl KindRow {
    fn of(kind: &KindSummary) -> Self {
        let pauses = &kind.pauses;
        let mut cells = vec![units::count(pauses.count)];
        cells.extend(
            [pauses.total_ms, pauses.mean_ms, pauses.p50_ms, pauses.p90_ms, pauses.p99_ms, pauses.max_ms]
                .map(units::pause),
        );
        let reasons = kind.reasons.iter().filter(|(reason, _)| !reason.0.is_empty()).take(8);
        let reasons = reasons.map(|(reason, count)| format!("{} ({count})", shortened(&reason.0, 100)));
        Self { name: kind.kind.word(), cells, reasons: reasons.collect::<Vec<_>>().join(", ") }
    }
}

fn slice_row(slice: &Slice) -> [String; 7] {
    let seconds = ((slice.to_ms - slice.from_ms) / 1e3).max(f64::MIN_POSITIVE);
    let known = |bytes: u64| if bytes > 0 { units::bytes(bytes as f64) } else { "–".to_owned() };
    [
        units::at(slice.from_ms),
        units::pause(slice.pause_ms),
        units::rate(slice.allocated as f64 / seconds),
        units::rate(slice.promoted as f64 / seconds),
        known(slice.used_min),
        known(slice.used_max),
        known(slice.committed_max),
    ]
}

fn histogram(kind: &KindSummary) -> (String, Vec<(String, String)>) {
    let filled = kind.histogram.iter().filter(|(_, count)| *count > 0).take(60);
    let rows = filled.map(|(edge, count)| (units::pause(*edge), units::count(*count)));
    (kind.kind.word().to_owned(), rows.collect())
}

pub(super) fn lines(trace: &Summary) -> LinesView {
    LinesView {
        source: shortened(&trace.source, 200),
        text: trace.lines.to_string(),
        samples: trace.lines.samples.iter().take(10).map(|sample| shortened(sample, 300)).collect(),
        incomplete: trace.incomplete.as_ref().map(|why| shortened(why, 300)),
    }
}

fn file_name(source: &str) -> String {
    let name = Path::new(source).file_name().map_or(source.into(), |name| name.to_string_lossy());
    shortened(&name, 80)
}
