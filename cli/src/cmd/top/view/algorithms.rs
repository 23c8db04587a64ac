//! Operations by algorithm, with what makes a batch worthwhile.

use hasten_telemetry::{Algorithm, Counters, Snapshot, Window};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{micros, rate};
use crate::cmd::top::once::pays_from;

/// From this width there is room for costs, and from this one for the lanes that pay.
const WIDE: u16 = 75;
const MIDDLE: u16 = 60;

/// Algorithms with anything to show.
pub(super) fn used(total: &Counters) -> Vec<Algorithm> {
    Algorithm::ALL.into_iter().filter(|algorithm| total[*algorithm].queued() > 0).collect()
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    snapshot: &Snapshot,
    total: &Counters,
    window: &Window,
    theme: Theme,
) {
    let used = used(total);
    let block = panel("Operations per second", theme);
    if used.is_empty() {
        let text = Line::styled("No operation was queued so far.", theme.dim());
        return frame.render_widget(Paragraph::new(text).block(block), area);
    }
    let columns = match area.width {
        WIDE.. => 9,
        MIDDLE.. => 7,
        _ => 6,
    };
    let names = ["ALGORITHM", "BATCHED", "SINGLE", "SCALAR", "FAILED", "LANES", "PAYS", "ONE µs", "BATCH µs"];
    let header = Row::new(names.iter().zip(0..).take(columns).map(|(name, column)| cell(name, column > 0)));
    let widths = [14, 7, 6, 6, 6, 5, 5, 7, 8].into_iter().take(columns).zip(0..);
    let widths = widths.map(|(width, column)| match column {
        0 => Constraint::Min(width),
        _ => Constraint::Length(width),
    });
    let rows = used.iter().map(|algorithm| row(*algorithm, snapshot, window, theme, columns));
    frame.render_widget(Table::new(rows, widths).header(header.style(theme.dim())).block(block), area);
}

fn row(
    algorithm: Algorithm,
    snapshot: &Snapshot,
    window: &Window,
    theme: Theme,
    columns: usize,
) -> Row<'static> {
    let counted = &window.counted[algorithm];
    let known = snapshot.break_even(algorithm);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let per_second = |count: u64| rate(window.per_second(count));
    let average = counted.average_lanes();
    let is_thin = average.zip(known).is_some_and(|(average, known)| average < known.lanes as f64);
    let lanes_style = if is_thin { theme.warning() } else { theme.batched() };
    let failed_style = if counted.failed > 0 { theme.critical() } else { theme.dim() };
    let pays = known.map(|known| match pays_from(known.lanes).as_str() {
        "never" => "never".to_owned(),
        lanes => format!("≥ {lanes}"),
    });
    let cells = [
        cell(algorithm.as_str(), false),
        cell(&per_second(counted.batched), true).style(theme.batched()),
        cell(&per_second(counted.single), true).style(theme.single()),
        cell(&per_second(counted.scalar), true).style(theme.scalar()),
        cell(&per_second(counted.failed), true).style(failed_style),
        cell(&or_dash(average.map(|lanes| format!("{lanes:.1}"))), true).style(lanes_style),
        cell(&or_dash(pays), true),
        cell(&or_dash(known.map(|known| micros(known.scalar_ns))), true),
        cell(&or_dash(known.map(|known| micros(known.batch_ns))), true),
    ];
    Row::new(cells.into_iter().take(columns))
}
