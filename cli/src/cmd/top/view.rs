//! How the state looks on a terminal. No decisions are made here.

mod activity;
mod algorithms;
mod engines;
mod flow;
mod help;
mod lanes;
mod memory;
mod programs;
mod service;
mod theme;
mod traffic;
mod warnings;

use hasten_telemetry::{Counters, Window};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType, Cell, Paragraph, Wrap};

use super::state::{Condition, Program, State};

pub(super) use self::theme::Theme;

/// A smaller screen is unreadable.
const SMALLEST: (u16, u16) = (72, 20);

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(frame, area);
    }
    let programs = u16::try_from(state.programs().len().clamp(1, 6)).unwrap_or(6);
    let [title, list, details] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(programs + 3), Constraint::Fill(1)])
            .areas(area);
    draw_title(frame, title, state, theme);
    programs::draw(frame, list, state, theme);
    match state.selected() {
        Some(program) => draw_details(frame, details, program, theme),
        None => {
            say(frame, details, "All accelerated processes have ended. Waiting for new ones; q to leave.");
        }
    }
    if state.help {
        help::draw(frame, area, theme);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let count = state.by_process().count();
    let programs = format!(" {count} accelerated program{}", if count == 1 { "" } else { "s" });
    let mut left = vec![Span::styled(" hasten top ", theme.title()), Span::styled(programs, theme.dim())];
    if state.paused {
        left.push(Span::styled("  PAUSED", theme.warning()));
    }
    let keys = Line::styled("↑↓ choose  p pause  ? help  q quit ", theme.dim());
    frame.render_widget(Paragraph::new(Line::from(left)), area);
    frame.render_widget(Paragraph::new(keys).alignment(Alignment::Right), area);
}

fn draw_details(frame: &mut Frame<'_>, area: Rect, program: &Program, theme: Theme) {
    let warnings = program.warnings();
    let snapshot = match program.condition() {
        Condition::Readable(snapshot) => snapshot,
        Condition::Unreadable(_) => return warnings::draw(frame, area, &warnings, theme),
    };
    let Some(window) = program.interval() else {
        return say(frame, area, "Measuring …");
    };
    let total = program.total();
    if program.is_of_memory() {
        let [upper, lower] =
            Layout::vertical([Constraint::Length(memory::height(program)), Constraint::Fill(1)]).areas(area);
        memory::draw(frame, upper, program, theme);
        return draw_rest(frame, lower, program, &window, theme);
    }
    if program.counts_streams() {
        return draw_streams(frame, area, program, &window, theme);
    }
    let [upper, lower, rest] = rows(area, &total, !warnings.is_empty());
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(lanes::WIDTH)]).areas(upper);
    algorithms::draw(frame, left, snapshot, &total, &window, theme);
    lanes::draw(frame, right, &window, theme);
    let [left, right] = Layout::horizontal([Constraint::Min(flow::WIDTH), Constraint::Fill(1)]).areas(lower);
    flow::draw(frame, left, program, &window, theme);
    activity::draw(frame, right, program, &window, theme);
    draw_rest(frame, rest, program, &window, theme);
}

fn draw_streams(frame: &mut Frame<'_>, area: Rect, program: &Program, window: &Window, theme: Theme) {
    let (warnings, total) = (program.warnings(), program.total());
    let [upper, lower, rest] =
        split(area, traffic::HEIGHT, engines::height(&total).max(7), !warnings.is_empty());
    let [left, right] =
        Layout::horizontal([Constraint::Min(engines::WIDTH), Constraint::Fill(1)]).areas(lower);
    traffic::draw(frame, upper, &total, window, theme);
    engines::draw(frame, left, program, window, theme);
    activity::draw(frame, right, program, window, theme);
    draw_rest(frame, rest, program, window, theme);
}

/// Warnings, and the engines above them if there is room: a faulty engine also has a warning.
fn draw_rest(frame: &mut Frame<'_>, area: Rect, program: &Program, window: &Window, theme: Theme) {
    let (warnings, engines) = (program.warnings(), program.engines());
    let least = if warnings.is_empty() { 3 } else { 6 };
    let height = service::height(&engines);
    let height = if area.height >= height.saturating_add(least) { height } else { 0 };
    let [upper, lower] = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    if height > 0 {
        service::draw(frame, upper, program, &engines, window, theme);
    }
    warnings::draw(frame, lower, &warnings, theme);
}

fn rows(area: Rect, total: &Counters, has_warnings: bool) -> [Rect; 3] {
    let used = u16::try_from(algorithms::used(total).len()).unwrap_or(u16::MAX);
    let upper = used.saturating_add(3).clamp(lanes::HEIGHT, lanes::HEIGHT + 4);
    split(area, upper, flow::height(total), has_warnings)
}

/// Splits the details; if not everything fits, warnings take precedence over charts.
fn split(area: Rect, upper: u16, lower: u16, has_warnings: bool) -> [Rect; 3] {
    let left = area.height.saturating_sub(upper);
    let (rest, least) = if has_warnings { (6, 6) } else { (3, 5) };
    let lower = lower.min(left.saturating_sub(rest));
    let lower = if lower < least { 0 } else { lower };
    Layout::vertical([Constraint::Length(upper), Constraint::Length(lower), Constraint::Fill(1)]).areas(area)
}

fn cell(text: &str, right: bool) -> Cell<'static> {
    let alignment = if right { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text.to_owned()).alignment(alignment))
}

fn panel(title: &str, theme: Theme) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.border())
        .title(Span::styled(format!(" {title} "), theme.heading()))
}

fn say(frame: &mut Frame<'_>, area: Rect, text: &str) {
    let [_, middle, _] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(2)]).areas(area);
    frame.render_widget(Paragraph::new(text).alignment(Alignment::Center).wrap(Wrap { trim: true }), middle);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let text = format!(
        "hasten top needs {}×{} characters and has {}×{}: enlarge the terminal, or use `hasten top --once`; q to leave",
        SMALLEST.0, SMALLEST.1, area.width, area.height
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

#[cfg(test)]
#[path = "view/tests.rs"]
mod tests;
