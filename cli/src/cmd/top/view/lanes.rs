//! How full the batches were.

use hasten_telemetry::{LANES, Window};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, panel};
use crate::cmd::top::format::percent;

/// A line for each number of lanes and the border.
pub(super) const HEIGHT: u16 = LANES as u16 + 2;
pub(super) const WIDTH: u16 = 27;

const BAR: usize = WIDTH as usize - 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, window: &Window, theme: Theme) {
    let lanes = window.counted.total().lanes;
    let all = lanes.iter().sum::<u64>().max(1) as f64;
    let lines = (1..=LANES).rev().map(|filled| {
        let batches = lanes[filled - 1];
        let part = batches as f64 / all;
        let share = if batches > 0 { percent(part) } else { String::new() };
        Line::from(vec![
            Span::raw(format!(" {filled} ")),
            Span::styled(format!("{:<BAR$}", bar(part, BAR)), theme.batched()),
            Span::raw(format!("{share:>6}")),
        ])
    });
    let text: Vec<Line<'_>> = lines.collect();
    frame.render_widget(Paragraph::new(text).block(panel("Lanes filled per batch", theme)), area);
}

/// A bar of eighths; anything above nothing is visible.
pub(super) fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).ceil() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_by_eighths_and_never_overflow() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(1e-9, 4), "▏");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(7.0, 4), "████");
    }
}
