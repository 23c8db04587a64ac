//! Where the objects of each process are: near the processors, or on another node.

use hasten_telemetry::{Event, Process, Tiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{bytes, count, percent};
use crate::cmd::top::state::Program;

/// A line for each process, a bar of all, a line of what failed, a header and the border.
pub(super) fn height(program: &Program) -> u16 {
    u16::try_from(program.memory().len()).unwrap_or(u16::MAX).clamp(1, 12) + 6
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, program: &Program, theme: Theme) {
    let block = panel("Memory", theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let processes = program.memory();
    let Some(all) = program.memory_of_all() else {
        let text = Line::styled(" No process has reported its memory yet.", theme.dim());
        return frame.render_widget(Paragraph::new(text), inner);
    };
    let [facts, list] = Layout::vertical([Constraint::Length(3), Constraint::Fill(1)]).areas(inner);
    let full = program.total()[Event::TierFull];
    let refused = Line::raw(format!(" no far memory was left {} times", count(full)));
    let refused = if full > 0 { refused.style(theme.warning()) } else { refused.style(theme.dim()) };
    let width = usize::from(inner.width.saturating_sub(2));
    frame.render_widget(Paragraph::new(vec![bar(&all, width, theme), legend(&all, theme), refused]), facts);
    draw_list(frame, list, &processes, theme);
}

/// Two shades, so that it is readable without colour, too.
fn bar(all: &Tiers, width: usize, theme: Theme) -> Line<'static> {
    let far = ((all.share() * width as f64).round() as usize).min(width);
    Line::from(vec![
        Span::raw(" "),
        Span::styled("█".repeat(width - far), theme.batched()),
        Span::styled("▒".repeat(far), theme.scalar()),
    ])
}

fn legend(all: &Tiers, theme: Theme) -> Line<'static> {
    Line::from(vec![
        Span::styled(" █ ", theme.batched()),
        Span::raw(format!("near {}", bytes(all.near as f64))),
        Span::styled(" ▒ ", theme.scalar()),
        Span::raw(format!("far {}", bytes(all.far as f64))),
        Span::raw(format!(" ({} of all, {} wanted)", percent(all.share()), percent(all.target_share()))),
    ])
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, processes: &[(Process, Tiers)], theme: Theme) {
    let names = ["PID", "NEAR", "FAR", "SHARE", "WANTED", "FAR FROM"];
    let header = Row::new(names.map(|name| cell(name, true)));
    let rows = processes.iter().map(|(process, tiers)| {
        Row::new(
            [
                process.pid.to_string(),
                bytes(tiers.near as f64),
                bytes(tiers.far as f64),
                percent(tiers.share()),
                percent(tiers.target_share()),
                bytes(tiers.threshold as f64),
            ]
            .map(|text| cell(&text, true)),
        )
    });
    let widths = [8, 10, 10, 7, 7, 10].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(header.style(theme.dim())), area);
}
