//! The list of accelerated programs.

use hasten_telemetry::{Severity, Window};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Row, Table, TableState};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{bytes, cores, duration, percent, rate};
use crate::cmd::top::state::{Program, State, accelerated, volume};

/// A line for each accelerator of a process.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let rows = state.by_process().flat_map(|pages| {
        pages.iter().zip(0..).map(|(program, position)| row(program, position == 0, theme))
    });
    let widths = [
        Constraint::Min(10),
        Constraint::Length(8),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Length(10),
        Constraint::Length(5),
        Constraint::Length(11),
        Constraint::Length(8),
    ];
    let names = ["PROGRAM", "PID", "PROCS", "UP", "ACCEL", "LOAD", "FAST", "CPU SAVED", "STATE"];
    let header = names.iter().zip(0..).map(|(name, column)| cell(name, column > 0 && *name != "ACCEL"));
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(theme.dim()))
        .row_highlight_style(theme.selected())
        .highlight_symbol("▸ ")
        .block(panel("Programs", theme));
    let mut position = TableState::default().with_selected(state.selected_position());
    frame.render_stateful_widget(table, area, &mut position);
}

/// The process is named on the line of its first accelerator.
fn row(program: &Program, is_first: bool, theme: Theme) -> Row<'_> {
    let window = program.interval();
    let of_window = |show: &dyn Fn(&Window) -> Option<String>| {
        window.as_ref().and_then(show).unwrap_or_else(|| "-".to_owned())
    };
    let of_process = |text: String| if is_first { text } else { String::new() };
    let (verdict, style) = verdict(program, theme);
    let up = program.snapshot().map_or_else(|| "-".to_owned(), |_| duration(program.uptime()));
    let accelerator = if program.snapshot().is_some() { program.accelerator() } else { "-" };
    let right = |text: String| cell(&text, true);
    Row::new([
        cell(if is_first { program.name() } else { "" }, false),
        right(of_process(program.first_pid().to_string())),
        right(of_process(program.processes().len().to_string())),
        right(of_process(up)),
        cell(accelerator, false),
        right(of_window(&|window| Some(load(program, window)))),
        right(of_window(&|window| fast(program, window).map(percent))),
        right(of_window(&|window| saved(program, window))),
        cell(verdict, true).style(style),
    ])
}

/// Operations, bytes before compression, or bytes of memory.
fn load(program: &Program, window: &Window) -> String {
    let per_second = window.per_second(volume(&window.counted));
    if program.is_of_memory() {
        program.memory_of_all().map_or_else(|| "-".to_owned(), |all| bytes((all.near + all.far) as f64))
    } else if program.counts_streams() {
        format!("{}/s", bytes(per_second))
    } else {
        format!("{} op/s", rate(per_second))
    }
}

/// The share that took the fast path.
fn fast(program: &Program, window: &Window) -> Option<f64> {
    if program.counts_streams() {
        accelerated(&window.counted)
    } else {
        window.share().map(|share| share.batched + share.single)
    }
}

/// Memory of two kinds saves none.
fn saved(program: &Program, window: &Window) -> Option<String> {
    (!program.is_of_memory()).then(|| format!("{} cores", cores(window.cores_saved())))
}

fn verdict(program: &Program, theme: Theme) -> (&'static str, Style) {
    match program.warnings().first().map(|warning| warning.severity) {
        Some(Severity::Critical) => ("CRITICAL", theme.critical()),
        Some(Severity::Warning) => ("warning", theme.warning()),
        Some(Severity::Note) => ("note", theme.note()),
        None => ("ok", theme.batched()),
    }
}
