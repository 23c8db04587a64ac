//! Which engine did the work, and why the original did some of it.

use hasten_telemetry::{Counters, Reason, Window};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, flow, lanes, panel};
use crate::cmd::top::format::{bytes, percent};
use crate::cmd::top::state::{Direction, ENGINES, Program};

/// Direction, engine, rate, a bar of useful length, share, and the border.
pub(super) const WIDTH: u16 = 50;
/// All of a line except its bar.
const TEXT: usize = 38;

/// A line for each engine that was ever used, one for each reason, and the border.
pub(super) fn height(total: &Counters) -> u16 {
    let reasons = Reason::ALL.iter().filter(|reason| total[**reason] > 0).count();
    u16::try_from(used(total).count().max(1) + reasons.min(4) + 2).unwrap_or(u16::MAX)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, program: &Program, window: &Window, theme: Theme) {
    let total = program.total();
    let width = usize::from(area.width).saturating_sub(2 + TEXT);
    let mut before = None;
    let mut lines: Vec<Line<'_>> = used(&total)
        .map(|(direction, engine)| {
            let is_first = before.replace(direction) != Some(direction);
            line(direction, engine, is_first, window, width, theme)
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled(" idle", theme.dim()));
    }
    lines.extend(flow::reasons(program, window, theme));
    frame.render_widget(Paragraph::new(lines).block(panel("Engines", theme)), area);
}

fn used(total: &Counters) -> impl Iterator<Item = (Direction, usize)> {
    let engines = |direction: Direction| {
        let bytes = direction.of(total).by_engine;
        (0..ENGINES.len()).filter(move |engine| bytes[*engine] > 0).map(move |engine| (direction, engine))
    };
    Direction::ALL.into_iter().flat_map(engines)
}

fn line(
    direction: Direction,
    engine: usize,
    is_first: bool,
    window: &Window,
    width: usize,
    theme: Theme,
) -> Line<'static> {
    let counted = direction.of(&window.counted);
    let share = counted.share(engine);
    let title = if is_first { direction.as_str() } else { "" };
    let per_second = format!("{}/s", bytes(window.per_second(counted.by_engine[engine])));
    Line::from(vec![
        Span::styled(format!(" {title:<8}"), theme.dim()),
        Span::raw(format!("{:<11}{per_second:>10} ", ENGINES[engine])),
        Span::styled(format!("{:<width$}", lanes::bar(share.unwrap_or(0.0), width)), style(engine, theme)),
        Span::raw(format!("{:>6} ", share.map_or_else(|| "-".to_owned(), percent))),
    ])
}

/// The original has the colour used for bypassed work everywhere.
fn style(engine: usize, theme: Theme) -> Style {
    match ENGINES[engine] {
        "isal" => theme.batched(),
        "bucket" | "libdeflate" | "hasten" => theme.note(),
        "zlib-rs" => theme.scalar(),
        _ => theme.bypassed(),
    }
}
