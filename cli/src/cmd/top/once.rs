//! `hasten top --once`: plain tables for scripts, logs and eyes.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use hasten_telemetry::{Algorithm, Event, LANES, Reason, Severity, Snapshot, Warning, Window};

use super::format::{bytes, cores, count, duration, micros, percent, rate};
use super::state::{Direction, ENGINES, Program, State, Traffic, in_words};

pub(super) fn render(state: &State, color: bool) -> String {
    let processes: Vec<String> = state.by_process().map(|pages| process(pages, color)).collect();
    processes.join("\n")
}

/// A heading, and a section for each accelerator.
fn process(pages: &[Program], color: bool) -> String {
    let mut text = String::new();
    heading(&mut text, &pages[0]);
    for page in pages {
        if let (Some(snapshot), Some(window)) = (page.snapshot(), page.interval()) {
            section(&mut text, page, snapshot, &window);
        }
        for one in page.warnings() {
            warning(&mut text, &one, color);
        }
    }
    text
}

fn heading(text: &mut String, program: &Program) {
    let (first, others) = (program.first_pid(), program.processes().len().saturating_sub(1));
    let with = match others {
        0 => String::new(),
        1 => " and 1 process more".to_owned(),
        _ => format!(" and {others} processes more"),
    };
    let up = program.snapshot().map_or(String::new(), |_| format!(", up {}", duration(program.uptime())));
    line(text, &format!("{}, process {first}{with}{up}", program.name()));
}

fn section(text: &mut String, program: &Program, snapshot: &Snapshot, window: &Window) {
    let note = if snapshot.note.is_empty() { String::new() } else { format!(" ({})", snapshot.note) };
    line(text, &format!("\n{}{note}", snapshot.accelerator));
    if program.counts_streams() {
        traffic(text, program, window);
    } else {
        operations(text, window);
        suspension(text, program);
    }
    let saved = program.total().saved_ns() as f64 / 1e9;
    line(text, &format!("estimated CPU saved: {} cores, {saved:.1} s in all", cores(window.cores_saved())));
    let table = if program.counts_streams() {
        engines(program, window)
    } else {
        algorithms(snapshot, program, window)
    };
    for table in [table, service(program, window), reasons(program, window)].into_iter().flatten() {
        line(text, &format!("\n{table}"));
    }
}

fn operations(text: &mut String, window: &Window) {
    let interval = window.elapsed.as_secs_f64();
    match window.share() {
        Some(share) => line(
            text,
            &format!(
                "{} operations/s over {interval:.1} s: {} batched, {} scalar, {} bypassed",
                rate(window.per_second(window.operations())),
                percent(share.batched),
                percent(share.scalar),
                percent(share.bypassed)
            ),
        ),
        None => line(text, &format!("no operations in the last {interval:.1} s")),
    }
}

/// Whether handshakes are put aside, and how many of them had to be called in; nothing where no process has told.
fn suspension(text: &mut String, program: &Program) {
    let shares: Vec<String> = program.suspension().iter().map(ToString::to_string).collect();
    if shares.is_empty() {
        return;
    }
    let total = program.total();
    let called_in = [
        (Event::CalledIn, "called in"),
        (Event::Overdue, "called in overdue"),
        (Event::ForeignCall, "called by another thread"),
    ];
    let called_in = called_in.into_iter().filter(|(event, _)| total[*event] > 0);
    let called_in = called_in.map(|(event, what)| format!("; {} {what}", count(total[event])));
    line(text, &format!("suspension: {}{}", shares.join(", "), called_in.collect::<String>()));
}

/// A line for each direction that was ever used.
fn traffic(text: &mut String, program: &Program, window: &Window) {
    let interval = window.elapsed.as_secs_f64();
    let total = program.total();
    let used: Vec<Direction> = Direction::ALL.into_iter().filter(|one| !one.of(&total).is_empty()).collect();
    if used.is_empty() {
        line(text, "no streams so far");
    }
    for direction in used {
        let counted = direction.of(&window.counted);
        let per_second = |count| bytes(window.per_second(count));
        let ratio = counted.ratio(direction).map(|ratio| format!(", compressed to {}", percent(ratio)));
        let verified = match counted.verified {
            0 => String::new(),
            verified => format!(", {}/s of it verified", per_second(verified)),
        };
        line(
            text,
            &format!(
                "{}: {} streams/s over {interval:.1} s, {}/s in, {}/s out{}{verified}",
                direction.as_str(),
                rate(window.per_second(counted.streams)),
                per_second(counted.bytes_in),
                per_second(counted.bytes_out),
                ratio.unwrap_or_default(),
            ),
        );
    }
}

/// Engines that were ever used; none when nothing was.
fn engines(program: &Program, window: &Window) -> Option<Table> {
    let (total, counted) = (program.total(), &window.counted);
    let was_used = |engine: &usize| Direction::ALL.iter().any(|one| one.of(&total).by_engine[*engine] > 0);
    let used: Vec<usize> = (0..ENGINES.len()).filter(was_used).collect();
    let mut table = table(&["engine", "deflate/s", "share", "inflate/s", "share", "in all"]);
    for engine in &used {
        let [deflate, inflate] = Direction::ALL.map(|direction| direction.of(counted));
        let per_second = |traffic: &Traffic| bytes(window.per_second(traffic.by_engine[*engine]));
        let share = |traffic: &Traffic| traffic.share(*engine).map_or_else(|| "-".to_owned(), percent);
        let all =
            Direction::ALL.iter().fold(0, |sum, one| one.of(&total).by_engine[*engine].saturating_add(sum));
        table.add_row([
            ENGINES[*engine].to_owned(),
            per_second(&deflate),
            share(&deflate),
            per_second(&inflate),
            share(&inflate),
            bytes(all as f64),
        ]);
    }
    (!used.is_empty()).then_some(table)
}

/// Whether engines are in service; none where the page does not tell.
fn service(program: &Program, window: &Window) -> Option<Table> {
    let engines = program.engines();
    let mut table = table(&["engine", "state", "since", "operations/s", "failures", "opened"]);
    for engine in &engines {
        table.add_row([
            engine.title(),
            in_words(engine),
            engine.age().map_or_else(|| "-".to_owned(), duration),
            rate(window.per_second(window.counted[engine.engine].operations())),
            count(engine.total.failed),
            count(engine.total.opened),
        ]);
    }
    (!engines.is_empty()).then_some(table)
}

/// Algorithms that were ever used; none when nothing was.
fn algorithms(snapshot: &Snapshot, program: &Program, window: &Window) -> Option<Table> {
    let total = program.total();
    let used: Vec<Algorithm> = Algorithm::ALL.into_iter().filter(|a| total[*a].queued() > 0).collect();
    let mut table = table(&[
        "algorithm",
        "batched/s",
        "scalar/s",
        "failed/s",
        "lanes",
        "pays from",
        "one µs",
        "batch µs",
        "1 to 8 lanes",
    ]);
    for algorithm in &used {
        let counted = &window.counted[*algorithm];
        let break_even = snapshot.break_even(*algorithm);
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            algorithm.to_string(),
            rate(window.per_second(counted.batched)),
            rate(window.per_second(counted.scalar)),
            rate(window.per_second(counted.failed)),
            known(counted.average_lanes().map(|lanes| format!("{lanes:.1}"))),
            known(break_even.map(|known| pays_from(known.lanes))),
            known(break_even.map(|known| micros(known.scalar_ns))),
            known(break_even.map(|known| micros(known.batch_ns))),
            histogram(&counted.lanes),
        ]);
    }
    (!used.is_empty()).then_some(table)
}

/// Reasons that ever applied; none when there were none.
fn reasons(program: &Program, window: &Window) -> Option<Table> {
    let total = program.total();
    let applied: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| total[*reason] > 0).collect();
    let mut table = table(&["original path because", "per s", "in all"]);
    for reason in &applied {
        let per_second = rate(window.per_second(window.counted[*reason]));
        table.add_row([reason.to_string(), per_second, count(total[*reason])]);
    }
    (!applied.is_empty()).then_some(table)
}

fn warning(text: &mut String, warning: &Warning, color: bool) {
    let (on, off) = match (color, warning.severity) {
        (false, _) => ("", ""),
        (true, Severity::Critical) => ("\x1b[1;31m", "\x1b[0m"),
        (true, Severity::Warning) => ("\x1b[33m", "\x1b[0m"),
        (true, Severity::Note) => ("\x1b[36m", "\x1b[0m"),
    };
    line(text, &format!("\n{on}{}{off}: {}", warning.severity.as_str(), warning.message));
    line(text, &format!("  fix: {}", warning.fix));
}

/// How full the batches were: a bar for each number of lanes.
fn histogram(lanes: &[u64; LANES]) -> String {
    const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = lanes.iter().copied().max().unwrap_or(0).max(1);
    // Rounded up, so that any batch at all is visible.
    lanes.iter().map(|batches| BARS[(*batches as f64 / most as f64 * 8.0).ceil() as usize]).collect()
}

pub(super) fn pays_from(lanes: u64) -> String {
    if lanes > LANES as u64 { "never".to_owned() } else { lanes.to_string() }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn line(text: &mut String, line: &str) {
    // Table rows are padded to full width; nobody needs that.
    for line in line.split('\n') {
        writeln!(text, "{}", line.trim_end()).expect("a String takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::fixture;

    #[test]
    fn tables_of_a_busy_a_bypassed_and_an_unreadable_program() {
        insta::assert_snapshot!(render(&fixture::state(true), false));
    }

    #[test]
    fn engines_that_are_not_in_service_are_warned_of() {
        insta::assert_snapshot!(render(&fixture::troubled(), false));
    }

    #[test]
    fn color_marks_the_severity_only() {
        let text = render(&fixture::state(true), true);
        assert!(text.contains("\x1b[1;31mcritical\x1b[0m: 2 batched signatures"), "{text}");
        assert!(!render(&fixture::state(true), false).contains('\x1b'));
    }

    #[test]
    fn a_single_batch_among_thousands_is_visible() {
        assert_eq!(histogram(&[1, 0, 0, 0, 0, 0, 5000, 10_000]), "▁·····▄█");
        assert_eq!(histogram(&[0; LANES]), "········");
    }
}
