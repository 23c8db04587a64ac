//! The traffic through the compression library.

use hasten_telemetry::{Counters, Window};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{bytes, cores, percent, rate};
use crate::cmd::top::state::Direction;

/// Both directions, a header and the border.
pub(super) const HEIGHT: u16 = 5;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, total: &Counters, window: &Window, theme: Theme) {
    let block = panel("Compression per second", theme);
    let used: Vec<Direction> = Direction::ALL.into_iter().filter(|one| !one.of(total).is_empty()).collect();
    if used.is_empty() {
        let text = Line::styled("No stream was opened so far.", theme.dim());
        return frame.render_widget(Paragraph::new(text).block(block), area);
    }
    let names = ["DIRECTION", "STREAMS", "IN", "OUT", "RATIO", "VERIFIED", "CPU SAVED"];
    let header = Row::new(names.iter().zip(0..).map(|(name, column)| cell(name, column > 0)));
    let widths = [10, 8, 9, 9, 7, 10, 12].into_iter().zip(0..).map(|(width, column)| match column {
        0 => Constraint::Min(width),
        _ => Constraint::Length(width),
    });
    let rows = used.into_iter().map(|direction| row(direction, window, theme));
    frame.render_widget(Table::new(rows, widths).header(header.style(theme.dim())).block(block), area);
}

fn row(direction: Direction, window: &Window, theme: Theme) -> Row<'static> {
    let counted = direction.of(&window.counted);
    let volume = |count: u64| bytes(window.per_second(count));
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let saved = format!("{} cores", cores(window.per_second(counted.saved_ns) / 1e9));
    Row::new([
        cell(direction.as_str(), false),
        cell(&rate(window.per_second(counted.streams)), true),
        cell(&volume(counted.bytes_in), true),
        cell(&volume(counted.bytes_out), true),
        cell(&or_dash(counted.ratio(direction).map(percent)), true),
        cell(&or_dash((counted.verified > 0).then(|| volume(counted.verified))), true),
        cell(&saved, true).style(theme.batched()),
    ])
}
