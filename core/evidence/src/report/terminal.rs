//! The table on the terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};

use super::remarks::remarks;
use super::{Case, Report, Row, Side};
use crate::verdict::Verdict;

/// The terminal's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Columns of the terminal; `None` for a file or a pipe.
    pub width: Option<u16>,
}

impl Style {
    /// Neither colour nor a width limit.
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
    let optional = Optional::of(report);
    let layout = Layout::for_width(style.width, optional);
    table.set_header(layout.header::<C>(optional));
    for row in &report.rows {
        table.add_row(layout.cells(row, optional));
    }
    let mut text = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
    for remark in remarks(report) {
        text += &format!("{remark}\n");
    }
    text
}

/// Columns that only some benches fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Optional {
    sizes: bool,
    memory: bool,
}

impl Optional {
    fn of<C: Case>(report: &Report<C>) -> Self {
        Self {
            sizes: report.rows.iter().any(|row| row.sizes.is_some()),
            memory: report.rows.iter().any(|row| row.stock.memory.is_some()),
        }
    }
}

/// Which columns there is room for. Failures are never hidden: the remarks below the table name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Case in one column, cost, ratio, verdict.
    Narrow,
    /// Also latency.
    Medium,
    /// Everything.
    Wide,
}

impl Layout {
    fn for_width(width: Option<u16>, optional: Optional) -> Self {
        let more = if optional.sizes { 27 } else { 0 } + if optional.memory { 17 } else { 0 };
        match width {
            Some(width) if width < 116 + more => Self::Narrow,
            Some(width) if width < 158 + more => Self::Medium,
            _ => Self::Wide,
        }
    }

    fn header<C: Case>(self, optional: Optional) -> Vec<Cell> {
        let case = match self {
            Self::Wide => C::COLUMNS.to_vec(),
            Self::Narrow | Self::Medium => vec!["case"],
        };
        let change = |head: &str| format!("{head}\nstock → hasten");
        let of_sizes = [(Self::Narrow, "bytes\nratio".to_owned()), (Self::Medium, change("MB/CPU s"))];
        let numbers =
            [(Self::Narrow, change("CPU µs/op")), (Self::Narrow, "CPU ratio\n95 % interval".to_owned())];
        let rest = [
            (Self::Wide, change("ops/s")),
            (Self::Medium, change("p50 ms")),
            (Self::Medium, change("p99 ms")),
            (Self::Wide, "failures".to_owned()),
            (Self::Narrow, "verdict".to_owned()),
        ];
        let of_sizes = of_sizes.into_iter().filter(|_| optional.sizes);
        let of_memory = optional.memory.then(|| (Self::Medium, change("RSS MB")));
        let numbers = self.fitting(numbers.into_iter().chain(of_sizes).chain(of_memory).chain(rest));
        case.into_iter().map(Cell::new).chain(numbers.map(right)).collect()
    }

    fn cells<C: Case>(self, row: &Row<C>, optional: Optional) -> Vec<Cell> {
        let case = match self {
            Self::Wide => row.case.cells(),
            Self::Narrow | Self::Medium => vec![row.case.cells().join(" ")],
        };
        let (stock, hasten, ratio) = (&row.stock, &row.hasten, row.cpu_ratio);
        let change = |before: String, after: String| format!("{before} → {after}");
        let whole = |number: f64| format!("{number:.0}");
        let numbers = [
            (Self::Narrow, change(whole(stock.server_cpu_us_per_op), whole(hasten.server_cpu_us_per_op))),
            (Self::Narrow, format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)),
        ];
        let bytes_ratio = row.sizes.as_ref().map_or_else(String::new, |sizes| size(sizes.wire_bytes_ratio));
        let speed =
            |side: &Side| side.bytes.map_or_else(|| "–".to_owned(), |bytes| whole(bytes.mb_per_cpu_s));
        let of_sizes = [(Self::Narrow, bytes_ratio), (Self::Medium, change(speed(stock), speed(hasten)))];
        let rest = [
            (Self::Wide, change(whole(stock.ops_per_s), whole(hasten.ops_per_s))),
            (Self::Medium, change(ms(stock.p50_us), ms(hasten.p50_us))),
            (Self::Medium, change(ms(stock.p99_us), ms(hasten.p99_us))),
            (Self::Wide, change(stock.failures.to_string(), hasten.failures.to_string())),
        ];
        let of_sizes = of_sizes.into_iter().filter(|_| optional.sizes);
        let rss = |side: &Side| side.memory.map_or_else(|| "–".to_owned(), |memory| whole(memory.rss_mb));
        let of_memory = optional.memory.then(|| (Self::Medium, change(rss(stock), rss(hasten))));
        let numbers = numbers.into_iter().chain(of_sizes).chain(of_memory).chain(rest);
        let numbers = self.fitting(numbers).map(right);
        case.into_iter().map(Cell::new).chain(numbers).chain([verdict(row.verdict)]).collect()
    }

    fn fitting(self, columns: impl Iterator<Item = (Self, String)>) -> impl Iterator<Item = String> {
        columns.filter(move |&(from, _)| from as u8 <= self as u8).map(|(_, text)| text)
    }
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A latency is worth three digits at most.
pub(super) fn ms(us: u64) -> String {
    let decimals = match us {
        0..10_000 => 2,
        10_000..100_000 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", us as f64 / 1000.0)
}

/// A tenth of a per cent is the smallest step in the rules about sizes.
pub(super) fn size(ratio: f64) -> String {
    format!("{ratio:.3}")
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
