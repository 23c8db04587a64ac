//! Which path operations took, and why some took the original one.

use hasten_telemetry::{Counters, Reason, Share, Window};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, panel};
use crate::cmd::top::format::{percent, rate};
use crate::cmd::top::state::Program;

/// The longest legend, with the border.
pub(super) const WIDTH: u16 = 48;

/// Bar, legend, reasons and the border, as far as the program has any.
pub(super) fn height(total: &Counters) -> u16 {
    let reasons = Reason::ALL.iter().filter(|reason| total[**reason] > 0).count();
    5 + u16::try_from(reasons).unwrap_or(u16::MAX).clamp(2, 6)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, program: &Program, window: &Window, theme: Theme) {
    let width = usize::from(area.width.saturating_sub(4));
    let mut lines = match window.share() {
        Some(share) => vec![stacked(&share, width, theme), legend(&share, theme)],
        None => vec![Line::styled(" idle", theme.dim()), Line::default()],
    };
    let room = usize::from(area.height.saturating_sub(2)).saturating_sub(lines.len());
    lines.extend(reasons(program, window, theme).into_iter().take(room));
    frame.render_widget(Paragraph::new(lines).block(panel("Where operations went", theme)), area);
}

/// Four shades, so that it is readable without colour, too.
fn stacked(share: &Share, width: usize, theme: Theme) -> Line<'static> {
    let cells = |part: f64| (part * width as f64).round() as usize;
    let batched = cells(share.batched).min(width);
    let single = cells(share.single).min(width - batched);
    let scalar = cells(share.scalar).min(width - batched - single);
    Line::from(vec![
        Span::raw(" "),
        Span::styled("█".repeat(batched), theme.batched()),
        Span::styled("▓".repeat(single), theme.single()),
        Span::styled("▒".repeat(scalar), theme.scalar()),
        Span::styled("░".repeat(width - batched - single - scalar), theme.bypassed()),
    ])
}

/// Of what there is.
fn legend(share: &Share, theme: Theme) -> Line<'static> {
    let parts = [
        ("█", "batched", share.batched, theme.batched()),
        ("▓", "single", share.single, theme.single()),
        ("▒", "scalar", share.scalar, theme.scalar()),
        ("░", "bypassed", share.bypassed, theme.bypassed()),
    ];
    let shown = parts.into_iter().filter(|(_, name, part, _)| *part > 0.0 || *name == "batched");
    let spans = shown.flat_map(|(shade, name, part, style)| {
        [Span::styled(format!(" {shade} "), style), Span::raw(format!("{name} {}", percent(part)))]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// The most frequent first.
pub(super) fn reasons(program: &Program, window: &Window, theme: Theme) -> Vec<Line<'static>> {
    let total = program.total();
    let mut reasons: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| total[*reason] > 0).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse((window.counted[*reason], total[*reason])));
    let line = |reason: Reason| {
        let style = if reason.was_queued() { theme.scalar() } else { theme.bypassed() };
        Line::from(vec![
            Span::styled(format!(" {reason:<23}"), style),
            Span::raw(format!("{:>6}/s", rate(window.per_second(window.counted[reason])))),
        ])
    };
    reasons.into_iter().map(line).collect()
}
