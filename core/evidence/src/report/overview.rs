//! Several reports in one: a page that shows the findings of each, and a JSON that contains them all.

use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::charts::{RatioAxis, Tick};
use super::remarks::remarks;
use super::terminal::Style;
use super::whole::Whole;
use super::{Case, Report, ReportError, Row, Saved, html, replace};
use crate::verdict::Verdict;

const TEMPLATE: &str = include_str!("overview.html");

/// All workloads of a run.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    pub parts: Vec<Part>,
    pub left_out: Vec<LeftOut>,
    /// Whether it ran to the end.
    pub complete: bool,
    /// The command that repeats it.
    pub command: String,
}

/// A report, as a part of an overview.
#[derive(Clone, Debug)]
pub struct Part {
    workload: &'static str,
    headline: String,
    tally: String,
    table: String,
    /// Each case's verdict and ratio.
    cases: Vec<(Verdict, f64)>,
    view: View,
    data: serde_json::Value,
}

/// A workload that cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub workload: String,
    pub why: String,
    pub fix: String,
}

/// What the template refers to.
#[derive(Clone, Debug, Serialize)]
struct View {
    title: String,
    headline: String,
    tally: String,
    tone: &'static str,
    /// The location of the full report, relative to the overview's page.
    page: String,
    rows: Vec<RowView>,
    /// Whether it is a failure, and the text.
    remarks: Vec<(bool, String)>,
    ticks: Vec<Tick>,
    one: f64,
    host: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, Serialize)]
struct RowView {
    name: String,
    class: &'static str,
    verdict: &'static str,
    stock: String,
    hasten: String,
    ratio: String,
    interval: String,
    at: f64,
    from: f64,
    to: f64,
}

impl Part {
    /// `page` is the location of the report's own page, relative to the overview's directory.
    pub fn of<C: Case>(report: &Report<C>, page: &Path, style: Style) -> Result<Self, ReportError> {
        let axis = RatioAxis::of(report);
        let view = View {
            title: report.text.title.clone(),
            headline: report.headline(),
            tally: report.tally(),
            tone: html::tone(report),
            page: page.display().to_string(),
            rows: report.claims().map(|row| RowView::of(row, axis)).collect(),
            remarks: remarks(report).iter().map(|remark| (remark.failure, remark.to_string())).collect(),
            ticks: axis.ticks(),
            one: axis.position(1.0),
            host: report.host.0.clone(),
        };
        Ok(Self {
            workload: report.workload,
            headline: report.headline(),
            tally: report.tally(),
            table: report.table(style),
            // A failure counts even in an engine that is only there for comparison.
            cases: report
                .rows
                .iter()
                .filter(|row| row.case.is_claim() || row.verdict == Verdict::Failed)
                .map(|row| (row.verdict, row.cpu_ratio.value))
                .collect(),
            view,
            data: serde_json::to_value(report.with_summary())?,
        })
    }
}

impl RowView {
    fn of<C: Case>(row: &Row<C>, axis: RatioAxis) -> Self {
        let ratio = row.cpu_ratio;
        Self {
            name: row.case.title(),
            class: html::class(row.verdict),
            verdict: row.verdict.as_str(),
            stock: time(row.stock.server_cpu_us_per_op),
            hasten: time(row.hasten.server_cpu_us_per_op),
            ratio: format!("{:.2}×", ratio.value),
            interval: format!("[{:.2}, {:.2}]", ratio.low, ratio.high),
            at: axis.position(ratio.value),
            from: axis.position(ratio.low),
            to: axis.position(ratio.high),
        }
    }
}

impl Overview {
    /// Whether any operation of any workload failed.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.count(Verdict::Failed) > 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|one| *one == verdict).count()
    }

    /// The verdict that the page must not hide.
    fn worst(&self) -> Verdict {
        [Verdict::Failed, Verdict::Slower, Verdict::Faster]
            .into_iter()
            .find(|verdict| self.count(*verdict) > 0)
            .unwrap_or(Verdict::NoDifference)
    }

    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.cases().map(|(verdict, _)| verdict)
    }

    fn cases(&self) -> impl Iterator<Item = (Verdict, f64)> {
        self.parts.iter().flat_map(|part| part.cases.iter().copied())
    }

    /// All findings in one sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        Whole::of(self.cases()).headline(|what| format!("{what}CPU"))
    }

    /// All tables, and what was left out.
    #[must_use]
    pub fn terminal(&self) -> String {
        let part = |part: &Part| {
            format!("{}: {}\n{}.\n\n{}\n", part.workload, part.headline, part.tally, part.table)
        };
        let left_out = |one: &LeftOut| format!("left out: {}: {}; {}\n", one.workload, one.why, one.fix);
        self.parts.iter().map(part).chain(self.left_out.iter().map(left_out)).collect()
    }

    /// Each part is the JSON of its own report.
    pub fn json(&self) -> Result<String, ReportError> {
        let value = serde_json::json!({
            "summary": Whole::of(self.cases()).summary(self.headline()),
            "workload": "all",
            "complete": self.complete,
            "parts": self.parts.iter().map(|part| &part.data).collect::<Vec<_>>(),
            "left_out": self.left_out,
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    /// One page that needs nothing but, for the details, the pages beside it.
    pub fn html(&self) -> Result<String, ReportError> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.add_template("overview", TEMPLATE)?;
        let page = Page {
            headline: self.headline(),
            tone: html::class(self.worst()),
            complete: self.complete,
            command: &self.command,
            parts: self.parts.iter().map(|part| &part.view).collect(),
            left_out: &self.left_out,
        };
        Ok(environment.get_template("overview")?.render(Serde(&page))?)
    }

    /// Writes `hasten-report.json` and `hasten-report.html`, as one report does.
    pub fn save(&self, directory: &Path) -> Result<Saved, ReportError> {
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            replace(&path, text).map_err(|source| ReportError::Write { path: path.clone(), source })?;
            Ok::<_, ReportError>(path)
        };
        Ok(Saved {
            json: write("hasten-report.json", &self.json()?)?,
            html: write("hasten-report.html", &self.html()?)?,
        })
    }
}

#[derive(Serialize)]
struct Page<'a> {
    headline: String,
    tone: &'static str,
    complete: bool,
    command: &'a str,
    parts: Vec<&'a View>,
    left_out: &'a [LeftOut],
}

/// The time of one operation: microseconds for a request, milliseconds for a process.
#[must_use]
pub fn time(us: f64) -> String {
    match us {
        ..20_000.0 => format!("{us:.0} µs"),
        ..2_000_000.0 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.1} s", us / 1e6),
    }
}
