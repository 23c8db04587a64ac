//! The page: one file that makes no request.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::charts::{HEIGHT, LatencyChart, RatioAxis, Tick, WIDTH};
use super::frontier::Frontier;
use super::remarks::remarks;
use super::terminal::{ms, size};
use super::{Case, Report, ReportError, Row, Side};
use crate::verdict::Verdict;

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render<C: Case>(report: &Report<C>) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("page", TEMPLATE)?;

    let axis = RatioAxis::of(report);
    let costs =
        report.claims().flat_map(|row| [&row.stock, &row.hasten]).map(|side| side.server_cpu_us_per_op);
    let dearest = costs.fold(f64::MIN_POSITIVE, f64::max);
    let page = Page {
        title: &report.text.title,
        unit: &report.text.unit,
        method: &report.text.method,
        reproduce: &report.text.reproduce,
        next: &report.text.next,
        host: &report.host.0,
        complete: report.complete,
        remarks: remarks(report).iter().map(|remark| (remark.failure, remark.to_string())).collect(),
        headline: report.headline(),
        tally: report.tally(),
        tone: tone(report),
        columns: C::COLUMNS,
        latency: C::LATENCY,
        sizes: report.rows.iter().any(|row| row.sizes.is_some()),
        memory: report.rows.iter().any(|row| row.stock.memory.is_some()),
        frontier: Frontier::of(report),
        rows: report.rows.iter().map(|row| View::new(row, axis, dearest)).collect(),
        ticks: axis.ticks(),
        one: axis.position(1.0),
        chart: (WIDTH, HEIGHT),
    };
    Ok(environment.get_template("page")?.render(Serde(&page))?)
}

/// Everything the template refers to.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    unit: &'a str,
    method: &'a str,
    reproduce: &'a [String],
    next: &'a [(String, String)],
    host: &'a [(&'static str, String)],
    complete: bool,
    /// Whether it is a failure, and the text.
    remarks: Vec<(bool, String)>,
    headline: String,
    tally: String,
    tone: &'static str,
    columns: &'static [&'static str],
    latency: &'static str,
    /// Whether any row compares sizes.
    sizes: bool,
    /// Whether any row knows about memory.
    memory: bool,
    frontier: Option<Frontier>,
    rows: Vec<View>,
    ticks: Vec<Tick>,
    one: f64,
    chart: (f64, f64),
}

/// The page's first colour.
pub(super) fn tone<C: Case>(report: &Report<C>) -> &'static str {
    let any = |verdict| report.claims().any(|row| row.verdict == verdict);
    match () {
        () if any(Verdict::Failed) => class(Verdict::Failed),
        () if any(Verdict::Slower) => class(Verdict::Slower),
        () if any(Verdict::Faster) => class(Verdict::Faster),
        () => class(Verdict::NoDifference),
    }
}

pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "same",
        Verdict::Failed => "failed",
    }
}

/// A row in the template's form: text and per cent.
#[derive(Serialize)]
struct View {
    name: String,
    cells: Vec<String>,
    verdict: &'static str,
    class: &'static str,
    ratio: String,
    interval: String,
    at: f64,
    from: f64,
    to: f64,
    stock: SideView,
    hasten: SideView,
    latency: LatencyChart,
    /// hasten's bytes divided by stock's.
    size: String,
    claim: bool,
    timed: bool,
    pairs: usize,
}

#[derive(Serialize)]
struct SideView {
    cpu: String,
    /// Length of the bar, in per cent of the dearest.
    bar: f64,
    rate: String,
    p50: String,
    p99: String,
    p999: String,
    failures: u64,
    speed: String,
    rss: String,
}

impl View {
    fn new<C: Case>(row: &Row<C>, axis: RatioAxis, dearest: f64) -> Self {
        let ratio = row.cpu_ratio;
        Self {
            name: row.case.title(),
            cells: row.case.cells(),
            verdict: row.verdict.as_str(),
            class: class(row.verdict),
            ratio: format!("{:.2}×", ratio.value),
            interval: format!("[{:.2}, {:.2}]", ratio.low, ratio.high),
            at: axis.position(ratio.value),
            from: axis.position(ratio.low),
            to: axis.position(ratio.high),
            stock: SideView::new(&row.stock, dearest),
            hasten: SideView::new(&row.hasten, dearest),
            latency: LatencyChart::new(&row.stock, &row.hasten),
            size: row.sizes.as_ref().map_or_else(String::new, |sizes| size(sizes.wire_bytes_ratio)),
            claim: row.case.is_claim(),
            timed: !(row.stock.latency.is_empty() && row.hasten.latency.is_empty()),
            pairs: row.pairs.len(),
        }
    }
}

impl SideView {
    fn new(side: &Side, dearest: f64) -> Self {
        Self {
            cpu: format!("{:.0}", side.server_cpu_us_per_op),
            bar: (side.server_cpu_us_per_op / dearest * 1000.0).round() / 10.0,
            rate: format!("{:.0}", side.ops_per_s),
            p50: ms(side.p50_us),
            p99: ms(side.p99_us),
            p999: ms(side.p999_us),
            failures: side.failures,
            rss: side.memory.map_or_else(String::new, |memory| format!("{:.0}", memory.rss_mb)),
            speed: side.bytes.map_or_else(String::new, |bytes| format!("{:.0}", bytes.mb_per_cpu_s)),
        }
    }
}
