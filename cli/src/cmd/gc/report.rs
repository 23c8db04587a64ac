//! One screen that says what collections cost, why, and what to do about it.

use std::fmt::Write;
use std::path::PathBuf;

use hasten_v8::advice::Advice;
use hasten_v8::summary::{HeapSummary, IsolateSummary, Summary, YoungSummary};
use hasten_v8::units;
use hasten_v8::verdict::Headline;
use hasten_v8::words::shortened;

use super::screen::{Screen, harmless};
use super::{Findings, compare, cpu, spark};

const LONGEST: usize = 5;
const HEAPS: usize = 8;
const SAMPLES: usize = 3;

pub(super) fn render(findings: &Findings, files: &[PathBuf], screen: Screen) -> String {
    let mut text = String::new();
    match (&findings.comparison, findings.traces.as_slice()) {
        (Some(comparison), _) => compare::render(&mut text, findings, comparison, screen),
        (None, [trace, ..]) => one(&mut text, trace, screen),
        (None, []) => {}
    }
    advice(&mut text, &findings.advice, files, screen);
    text
}

fn one(text: &mut String, trace: &Summary, screen: Screen) {
    heading(text, trace, &harmless(&trace.source), screen);
    let headline = Headline::of(trace);
    line(text, &format!("\n{}.\n", screen.toned(headline.tone, &harmless(&headline.text))));
    if trace.isolates.len() > 1 {
        heaps(text, trace, screen);
    }
    if let Some(heap) = trace.busiest() {
        kinds(text, heap, screen);
        longest(text, heap, screen);
        memory(text, heap, screen);
        charts(text, heap, screen);
    }
    cpu::report(text, trace, screen);
    line(text, "");
    lines_read(text, trace, screen);
}

/// The name, followed by its description if the line has room.
pub(super) fn heading(text: &mut String, trace: &Summary, name: &str, screen: Screen) {
    let description = harmless(&trace.description());
    if name.chars().count() + 2 + description.chars().count() <= screen.width {
        line(text, &format!("{}  {}", screen.bold(name), screen.soft(&description)));
    } else {
        line(text, &screen.bold(name));
        line(text, &screen.wrapped("  ", &description));
    }
}

fn heaps(text: &mut String, trace: &Summary, screen: Screen) {
    let mut table = screen.table(&["heap", "collections", "pauses", "of time", "longest", "peak used"]);
    for heap in trace.isolates.iter().take(HEAPS) {
        table.add_row([
            harmless(&heap.name()),
            units::count(heap.pauses.count),
            units::pause(heap.pauses.total_ms),
            share(heap),
            units::pause(heap.pauses.max_ms),
            units::bytes(heap.heap.peak_used as f64),
        ]);
    }
    line(text, &table.to_string());
    let hidden =
        trace.isolates.len().saturating_sub(HEAPS) as u64 + trace.rest.map_or(0, |rest| rest.isolates);
    if hidden > 0 {
        line(text, &format!("and {hidden} more with less time in pauses"));
    }
    if let Some(busiest) = trace.busiest() {
        line(text, &format!("\nThe first of them, {}:\n", harmless(&busiest.name())));
    }
}

fn kinds(text: &mut String, heap: &IsolateSummary, screen: Screen) {
    let header = ["pauses", "count", "total", "p50", "p90", "p99", "longest", "of time"];
    let mut table = screen.table(&header);
    let mut add = |name: &str, pauses: hasten_v8::summary::Pauses, share: String| {
        let times =
            [pauses.total_ms, pauses.p50_ms, pauses.p90_ms, pauses.p99_ms, pauses.max_ms].map(units::pause);
        table
            .add_row([vec![name.to_owned(), units::count(pauses.count)], times.into(), vec![share]].concat());
    };
    for kind in &heap.by_kind {
        add(kind.kind.word(), kind.pauses, kind.pause_share.map_or("–".to_owned(), units::percent));
    }
    if heap.by_kind.len() > 1 {
        add("all", heap.pauses, share(heap));
    }
    line(text, &table.to_string());
}

fn longest(text: &mut String, heap: &IsolateSummary, screen: Screen) {
    if heap.longest.is_empty() {
        return;
    }
    let mut table = screen.table(&["longest pauses", "at", "kind", "reason"]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for one in heap.longest.iter().take(LONGEST) {
        let reason = harmless(&shortened(&one.reason.0, 80));
        table.add_row([units::pause(one.pause_ms), units::at(one.at_ms), one.kind.word().to_owned(), reason]);
    }
    line(text, &format!("\n{table}"));
}

fn memory(text: &mut String, heap: &IsolateSummary, screen: Screen) {
    line(text, "");
    let mut say = |name: &str, what: &str| line(text, &screen.wrapped(&format!("{name:<14}"), what));
    say("allocation", &allocation(&heap.young));
    if let Some(bytes) = heap.young.semi_space {
        let source = if heap.young.is_semi_space_measured {
            "measured"
        } else {
            "concluded from what scavenges freed"
        };
        say("semi-space", &format!("{} ({source})", units::bytes(bytes as f64)));
    }
    let after = &heap.heap.after_full;
    let from_to = match (after.first(), after.last()) {
        (Some(first), Some(last)) if after.len() > 1 => {
            format!("{} → {}; ", units::bytes(first.1 as f64), units::bytes(last.1 as f64))
        }
        (Some(only), _) => format!("{}; ", units::bytes(only.1 as f64)),
        _ => String::new(),
    };
    say("behind full", &format!("{from_to}{}", heap.heap.growth()));
    say("peak", &peak(&heap.heap));
    let steps: f64 = heap.by_kind.iter().map(|kind| kind.steps_ms).sum();
    if steps > 0.0 {
        say(
            "marking",
            &format!("{} more in steps between the pauses, on the program's own thread", units::pause(steps)),
        );
    }
}

fn peak(heap: &HeapSummary) -> String {
    let mut parts = vec![format!("{} used", units::bytes(heap.peak_used as f64))];
    parts.extend(
        (heap.peak_committed > 0).then(|| format!("{} committed", units::bytes(heap.peak_committed as f64))),
    );
    parts.extend(
        heap.peak_external
            .map(|bytes| format!("{} in buffers outside of the heap", units::bytes(bytes as f64))),
    );
    parts.join(", ")
}

fn allocation(young: &YoungSummary) -> String {
    let mut parts = Vec::new();
    parts.extend(young.allocation_rate.map(units::rate));
    parts.extend(young.promotion_rate.map(|rate| format!("{} of it becomes old", units::rate(rate))));
    parts.extend(
        young.survival.map(|share| format!("a scavenge keeps {} of what it looks at", units::percent(share))),
    );
    let concluded =
        if young.is_measured || parts.len() < 2 { "" } else { " (concluded from the size of the heap)" };
    if parts.is_empty() { "unknown".to_owned() } else { parts.join("; ") + concluded }
}

fn charts(text: &mut String, heap: &IsolateSummary, screen: Screen) {
    let count = screen.width.min(100).saturating_sub(4);
    let span = (heap.first_ms, heap.last_ms);
    if heap.span_ms() <= 0.0 {
        return;
    }
    let pauses = heap.timeline.pauses.iter().map(|pause| (pause.0, pause.2));
    let longest = spark::buckets(pauses, span, count, f64::max);
    let time = units::span(heap.span_ms());
    line(
        text,
        &format!("\nlongest pause at each moment of {time}, {} at most", units::pause(heap.pauses.max_ms)),
    );
    line(text, &format!("  {}", spark::bars(&longest)));
    let known = heap.timeline.slices.iter().filter(|slice| slice.collections > 0);
    let used = known.map(|slice| (f64::midpoint(slice.from_ms, slice.to_ms), slice.used_max as f64));
    let used = spark::continued(spark::buckets(used, span, count, f64::max));
    line(text, &format!("heap in use, {} at most", units::bytes(heap.heap.peak_used as f64)));
    line(text, &format!("  {}", spark::bars(&used)));
    histograms(text, heap);
}

/// A bar for each bucket from the first to the last that is not empty.
fn histograms(text: &mut String, heap: &IsolateSummary) {
    line(text, "lengths of pauses");
    for kind in &heap.by_kind {
        let filled = |bucket: &(f64, u64)| bucket.1 > 0;
        let first = kind.histogram.iter().position(filled).unwrap_or(0);
        let last = kind.histogram.iter().rposition(filled).map_or(0, |last| last + 1);
        let Some(buckets) = kind.histogram.get(first..last).filter(|buckets| !buckets.is_empty()) else {
            continue;
        };
        let counts: Vec<f64> = buckets.iter().map(|bucket| bucket.1 as f64).collect();
        let (from, to) = (units::pause(buckets[0].0), units::pause(buckets[buckets.len() - 1].0));
        line(text, &format!("  {:<16} {from:>8} {} {to}", kind.kind.word(), spark::bars(&counts)));
    }
}

/// How much was read, and what was not understood.
pub(super) fn lines_read(text: &mut String, trace: &Summary, screen: Screen) {
    line(text, &screen.soft(&format!("{}: {}", harmless(&trace.source), trace.lines)));
    for sample in trace.lines.samples.iter().take(SAMPLES) {
        line(text, &format!("  {}", harmless(&shortened(sample, screen.width.saturating_sub(4)))));
    }
    if let Some(why) = &trace.incomplete {
        line(text, &screen.wrapped("not read to its end: ", &harmless(why)));
    }
}

fn advice(text: &mut String, advice: &[Advice], files: &[PathBuf], screen: Screen) {
    for (one, number) in advice.iter().zip(1..) {
        line(text, &format!("\n{}", screen.bold(&format!("{number}. {}", harmless(&one.title)))));
        let mut say =
            |name: &str, what: &str| line(text, &screen.wrapped(&format!("   {name}"), &harmless(what)));
        say("", &one.reason);
        if !one.effect.is_empty() {
            say("predicted: ", &one.effect);
        }
        for unknown in &one.unknowns {
            say("not known: ", unknown);
        }
        if !one.node_options.is_empty() {
            say("option: ", &one.node_options.join(" "));
        }
    }
    let options: Vec<&str> = advice.iter().flat_map(|one| &one.node_options).map(AsRef::as_ref).collect();
    if options.is_empty() {
        return;
    }
    let files: Vec<_> = files.iter().map(|file| quoted(&file.to_string_lossy())).collect();
    line(text, "\nto apply it:");
    line(text, &format!("  hasten gc --json {} > gc.json", files.join(" ")));
    line(text, "  hasten run --apply-gc-advice gc.json -- node app.js");
    line(text, &format!("or by hand: NODE_OPTIONS=\"{}\" node app.js", options.join(" ")));
}

/// Quoted for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./+:,@%=".contains(c);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", harmless(text).replace('\'', "'\\''")),
    }
}

fn share(heap: &IsolateSummary) -> String {
    heap.pause_share.map_or("–".to_owned(), units::percent)
}

pub(super) fn line(text: &mut String, line: &str) {
    // Table rows are padded to full width; nobody needs that.
    for line in line.split('\n') {
        writeln!(text, "{}", line.trim_end()).expect("a String takes everything");
    }
}
