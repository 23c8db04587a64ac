//! Handshakes or streams, CPU saved, workers, and the course of the load.

use std::time::Duration;

use hasten_telemetry::{Counters, Event, Handshakes, Window};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::{Theme, panel};
use crate::cmd::top::format::{bytes, cores, count, duration, percent, rate};
use crate::cmd::top::state::Program;

/// From this width there is room for the cost of batches.
const WIDE: u16 = 52;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, program: &Program, window: &Window, theme: Theme) {
    let block = panel("Activity", theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let total = program.total();
    let mut lines = vec![saved(&total, window, inner.width, theme)];
    // A rate of 0 would be wrong where the accelerator does not count them.
    if total[Event::HandshakeFinished] > 0 {
        lines.push(handshakes(window));
    }
    if total[Event::ClientHandshake] > 0 {
        lines.push(as_client(window));
    }
    if program.counts_streams() {
        lines.push(gathered(window));
    } else {
        lines.push(suspended(program, window, &total));
    }
    lines.push(workers(program, window));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(inner.height.saturating_sub(1));
    let [facts, chart] = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(inner);
    frame.render_widget(Paragraph::new(lines), facts);
    draw_chart(frame, chart, program, theme);
}

fn saved(total: &Counters, window: &Window, width: u16, theme: Theme) -> Line<'static> {
    let all = Duration::from_nanos(total.saved_ns());
    let batches = format!("; batches use {}", cores(window.cores_batching()));
    let batches = if width >= WIDE && !window.is_of_streams() { batches } else { String::new() };
    Line::from(vec![
        Span::raw(" saved "),
        Span::styled(format!("{} cores", cores(window.cores_saved())), theme.batched()),
        Span::raw(format!(", {} in all{batches}", duration(all))),
    ])
}

fn handshakes(window: &Window) -> Line<'static> {
    let of = |event| rate(window.event_rate(event));
    let (finished, failed) = (of(Event::HandshakeFinished), of(Event::HandshakeFailed));
    Line::raw(format!(
        " handshakes {finished}/s, {failed}/s fail{}",
        hybrid(Handshakes::of_servers(&window.counted))
    ))
}

/// Handshakes with upstream servers.
fn as_client(window: &Window) -> Line<'static> {
    let finished = rate(window.event_rate(Event::ClientHandshake));
    Line::raw(format!(" as a client {finished}/s{}", hybrid(Handshakes::of_clients(&window.counted))))
}

fn hybrid(handshakes: Handshakes) -> String {
    let share = handshakes.hybrid_share().filter(|share| *share > 0.0);
    share.map(|share| format!(", {} hybrid", percent(share))).unwrap_or_default()
}

fn suspended(program: &Program, window: &Window, total: &Counters) -> Line<'static> {
    let per_second = rate(window.event_rate(Event::Suspended));
    // Those that are off come first: of several states, they are the ones worth knowing.
    let state = program.suspension().first().map_or(String::new(), |share| format!("; {share}"));
    Line::raw(format!(" suspended {per_second}/s, {} given up{state}", count(total[Event::Cancelled])))
}

fn gathered(window: &Window) -> Line<'static> {
    let per_second = bytes(window.event_rate(Event::DeflateBuffered));
    Line::raw(format!(" gathered {per_second}/s"))
}

/// The busiest first: an uneven spread keeps batches thin.
fn workers(program: &Program, window: &Window) -> Line<'static> {
    let mut rates: Vec<(u64, u32)> = program
        .processes()
        .iter()
        .map(|process| (program.operations_of(process.namespace_pid), process.pid))
        .filter(|(operations, _)| *operations > 0)
        .collect();
    rates.sort_unstable_by(|a, b| b.cmp(a));
    let workers =
        rates.iter().map(|(operations, pid)| format!(" {pid}: {}/s", rate(window.per_second(*operations))));
    Line::raw(format!(" workers{}", workers.collect::<String>()))
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, program: &Program, theme: Theme) {
    let rates = program.rates();
    let newest = &rates[rates.len().saturating_sub(usize::from(area.width))..];
    frame.render_widget(Sparkline::default().data(newest).style(theme.batched()), area);
}
