//! The list of accelerated programs.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{cores, duration, percent, rate};
use crate::cmd::top::state::{Program, Severity, State};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let rows = state.programs().iter().map(|program| row(program, theme));
    let widths = [
        Constraint::Min(10),
        Constraint::Length(8),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Length(11),
        Constraint::Length(8),
    ];
    let names = ["PROGRAM", "PID", "PROCS", "UP", "OPS/S", "BATCHED", "LANES", "CPU SAVED", "STATE"];
    let header = names.iter().zip(0..).map(|(name, column)| cell(name, column > 0));
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(theme.dim()))
        .row_highlight_style(theme.selected())
        .highlight_symbol("▸ ")
        .block(panel("Programs", theme));
    let mut position = TableState::default().with_selected(state.selected_position());
    frame.render_stateful_widget(table, area, &mut position);
}

fn row(program: &Program, theme: Theme) -> Row<'_> {
    let window = program.interval();
    let of_window = |show: &dyn Fn(&_) -> Option<String>| {
        window.as_ref().and_then(show).unwrap_or_else(|| "-".to_owned())
    };
    let (verdict, style) = verdict(program, theme);
    let up = program.snapshot().map_or_else(|| "-".to_owned(), |_| duration(program.uptime()));
    let values = [
        program.first_pid().to_string(),
        program.processes().len().to_string(),
        up,
        of_window(&|window| Some(rate(window.per_second(window.operations())))),
        of_window(&|window| window.share().map(|share| percent(share.batched))),
        of_window(&|window| window.counted.total().average_lanes().map(|lanes| format!("{lanes:.1}"))),
        of_window(&|window| Some(format!("{} cores", cores(window.cores_saved())))),
    ];
    let name = Cell::from(program.name());
    let values = values.into_iter().map(|value| cell(&value, true));
    let verdict = cell(verdict, true).style(style);
    Row::new(std::iter::once(name).chain(values).chain([verdict]))
}

fn verdict(program: &Program, theme: Theme) -> (&'static str, Style) {
    match program.warnings().first().map(|warning| warning.severity) {
        Some(Severity::Critical) => ("CRITICAL", theme.critical()),
        Some(Severity::Warning) => ("warning", theme.warning()),
        Some(Severity::Note) => ("note", theme.note()),
        None => ("ok", theme.batched()),
    }
}
