//! `hasten top --once`: plain tables for scripts, logs and eyes.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use hasten_telemetry::{Algorithm, LANES, Reason, Snapshot};

use super::format::{cores, count, duration, micros, percent, rate};
use super::state::{Program, Severity, State, Warning, Window};

pub(super) fn render(state: &State, color: bool) -> String {
    let programs: Vec<String> = state.programs().iter().map(|one| program(one, color)).collect();
    programs.join("\n")
}

fn program(program: &Program, color: bool) -> String {
    let mut text = String::new();
    heading(&mut text, program);
    if let (Some(snapshot), Some(window)) = (program.snapshot(), program.interval()) {
        summary(&mut text, program, &window);
        if let Some(table) = algorithms(snapshot, program, &window) {
            line(&mut text, &format!("\n{table}"));
        }
        if let Some(table) = reasons(program, &window) {
            line(&mut text, &format!("\n{table}"));
        }
    }
    for one in program.warnings() {
        warning(&mut text, &one, color);
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
    let about = program.snapshot().map_or(String::new(), |snapshot| {
        let note = if snapshot.note.is_empty() { String::new() } else { format!(" ({})", snapshot.note) };
        format!(", up {}, {}{note}", duration(program.uptime()), snapshot.accelerator)
    });
    line(text, &format!("{}, process {first}{with}{about}", program.name()));
}

fn summary(text: &mut String, program: &Program, window: &Window) {
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
    let saved = program.total().total().saved_ns as f64 / 1e9;
    line(text, &format!("estimated CPU saved: {} cores, {saved:.1} s in all", cores(window.cores_saved())));
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
