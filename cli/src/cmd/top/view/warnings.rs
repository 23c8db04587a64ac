//! What is wrong and what to do.

use hasten_telemetry::{Severity, Warning};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{Theme, panel};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, warnings: &[Warning], theme: Theme) {
    let title = match warnings.len() {
        0 => "Warnings".to_owned(),
        count => format!("Warnings ({count})"),
    };
    let mut lines: Vec<Line<'_>> = warnings.iter().flat_map(|warning| describe(warning, theme)).collect();
    if lines.is_empty() {
        lines.push(Line::styled("None.", theme.dim()));
    }
    let text = Paragraph::new(lines).wrap(Wrap { trim: true }).block(panel(&title, theme));
    frame.render_widget(text, area);
}

fn describe(warning: &Warning, theme: Theme) -> [Line<'_>; 2] {
    let style = match warning.severity {
        Severity::Critical => theme.critical(),
        Severity::Warning => theme.warning(),
        Severity::Note => theme.note(),
    };
    let head =
        vec![Span::styled(warning.severity.as_str(), style), Span::raw(format!(": {}", warning.message))];
    [Line::from(head), Line::styled(format!("→ {}", warning.fix), theme.dim())]
}
