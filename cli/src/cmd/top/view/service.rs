//! Which engines are in service.

use hasten_telemetry::{BreakerState, EngineCondition, Window};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Row, Table};

use super::{Theme, cell, panel};
use crate::cmd::top::format::{count, duration, rate};
use crate::cmd::top::state::Program;

/// A line for each engine, a header and the border; nothing where there is no engine.
pub(super) fn height(engines: &[EngineCondition]) -> u16 {
    if engines.is_empty() { 0 } else { u16::try_from(engines.len()).unwrap_or(u16::MAX).saturating_add(3) }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    program: &Program,
    engines: &[EngineCondition],
    window: &Window,
    theme: Theme,
) {
    let states: Vec<String> = engines.iter().map(|engine| program.state_of(engine)).collect();
    let state = states.iter().map(|state| state.len()).max().and_then(|width| u16::try_from(width).ok());
    let state = state.unwrap_or_default().max(14);
    let names = ["ENGINE", "DEVICE", "STATE", "SINCE", "OPS/S", "FAILURES", "OPENED"];
    let header = Row::new(names.iter().zip(0..).map(|(name, column)| cell(name, column > 2)));
    let widths = [12, 12, state, 8, 8, 9, 7].into_iter().zip(0..).map(|(width, column)| match column {
        1 => Constraint::Min(width),
        _ => Constraint::Length(width),
    });
    let rows = engines.iter().zip(&states).map(|(engine, state)| row(engine, state, window, theme));
    let table = Table::new(rows, widths).header(header.style(theme.dim()));
    frame.render_widget(table.block(panel("Breakers", theme)), area);
}

fn row(engine: &EngineCondition, state: &str, window: &Window, theme: Theme) -> Row<'static> {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let device = if engine.device.is_empty() { "-" } else { &engine.device };
    let failures = if engine.total.failed > 0 { theme.critical() } else { theme.dim() };
    let operations = window.counted[engine.engine].operations();
    Row::new([
        cell(engine.engine.as_str(), false),
        cell(device, false),
        cell(state, false).style(style(engine.state(), theme)),
        cell(&or_dash(engine.age().map(duration)), true),
        cell(&rate(window.per_second(operations)), true).style(theme.batched()),
        cell(&count(engine.total.failed), true).style(failures),
        cell(&count(engine.total.opened), true),
    ])
}

fn style(state: Option<BreakerState>, theme: Theme) -> Style {
    match state {
        None => theme.dim(),
        Some(BreakerState::Closed) => theme.batched(),
        Some(BreakerState::Open) => theme.critical(),
        Some(BreakerState::HalfOpen | BreakerState::Disabled) => theme.warning(),
    }
}
