//! The table on the terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};

use super::remarks::remarks;
use super::{Case, Report, Row};
use crate::verdict::Verdict;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Columns of the terminal; `None` for a file or a pipe.
    pub width: Option<u16>,
}

impl Style {
    /// Neither colour nor a limit.
    pub const PLAIN: Self = Self { color: false, width: None };
}

pub(super) fn table<C: Case>(report: &Report<C>, style: Style) -> String {
    let mut table = Table::new();
    let lines = TableStyle { row_separator: LineStyle::none(), ..UTF8_HORIZONTAL_ONLY };
    table.load_style(lines).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = style.width {
        table.set_width(width);
    }
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(header::<C>());
    for row in &report.rows {
        table.add_row(cells(row));
    }
    let mut text = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
    for remark in remarks(report) {
        text += &format!("{remark}\n");
    }
    text
}

fn header<C: Case>() -> Vec<Cell> {
    let pair = ["CPU µs/op\nstock → hasten", "CPU ratio\n95 % interval", "ops/s\nstock → hasten"];
    let tail = ["p50 ms\nstock → hasten", "p99 ms\nstock → hasten", "failures", "verdict"];
    let numbers =
        pair.into_iter().chain(tail).map(|head| Cell::new(head).set_alignment(CellAlignment::Right));
    C::COLUMNS.iter().map(Cell::new).chain(numbers).collect()
}

fn cells<C: Case>(row: &Row<C>) -> Vec<Cell> {
    let (stock, hasten, ratio) = (&row.stock, &row.hasten, row.cpu_ratio);
    let change = |before: String, after: String| format!("{before} → {after}");
    let ms = |us: u64| format!("{:.1$}", us as f64 / 1000.0, if us < 10_000 { 2 } else { 1 });
    let numbers = [
        change(format!("{:.0}", stock.server_cpu_us_per_op), format!("{:.0}", hasten.server_cpu_us_per_op)),
        format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high),
        change(format!("{:.0}", stock.ops_per_s), format!("{:.0}", hasten.ops_per_s)),
        change(ms(stock.p50_us), ms(hasten.p50_us)),
        change(ms(stock.p99_us), ms(hasten.p99_us)),
        change(stock.failures.to_string(), hasten.failures.to_string()),
    ];
    let numbers = numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
    row.case.cells().into_iter().map(Cell::new).chain(numbers).chain([verdict(row.verdict)]).collect()
}

fn verdict(verdict: Verdict) -> Cell {
    let cell = Cell::new(verdict).set_alignment(CellAlignment::Right);
    match verdict {
        Verdict::Faster => cell.fg(Color::Green),
        Verdict::NoDifference => cell,
        Verdict::Slower => cell.fg(Color::Yellow),
        Verdict::Failed => cell.fg(Color::Red).add_attribute(Attribute::Bold),
    }
}
