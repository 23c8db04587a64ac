//! The result of a benchmark: data first, a table and a page as views of it.

mod charts;
mod frontier;
mod html;
mod overview;
mod remarks;
mod terminal;
mod whole;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::paired::{Estimate, Pair};
use crate::verdict::Verdict;
use crate::warning::Warning;

pub use self::overview::{LeftOut, Overview, Part, time};
pub use self::terminal::Style;
pub use self::whole::Summary;
use self::whole::Whole;

/// What is compared in one row: its columns in the table, its fields in the JSON row.
pub trait Case: Serialize {
    /// Headings of the columns that name a case.
    const COLUMNS: &'static [&'static str];

    /// One value for each column.
    fn cells(&self) -> Vec<String>;

    /// The start and end points of an operation's latency.
    const LATENCY: &'static str = "From connect to the last byte";

    /// The case where it stands alone.
    fn title(&self) -> String {
        self.cells().join(" · ")
    }

    /// Whether the row is a claim about the product. Others are only for comparison: they do not count in the
    /// headline, and have no bar.
    fn is_claim(&self) -> bool {
        true
    }

    /// A curve in the plot of speed and compression, and the position on it; the stock side has its own curve.
    fn curve(&self) -> Option<(String, u8)> {
        None
    }
}

/// The name of the stock side where it stands beside others.
pub(crate) const STOCK: &str = "stock";

/// A whole benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Report<C> {
    pub host: Host,
    /// A short name, such as `tls`.
    pub workload: &'static str,
    pub text: Text,
    /// Whether every requested row is here.
    pub complete: bool,
    pub rows: Vec<Row<C>>,
    /// Warnings about the whole run.
    pub warnings: Vec<Warning>,
}

/// The text around the numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Text {
    pub title: String,
    /// The unit of work, singular: `handshake`.
    pub unit: String,
    /// What one unit of work consists of, and how the load was driven.
    pub method: String,
    /// Commands that repeat the run.
    pub reproduce: Vec<String>,
    /// What to try next, and why.
    pub next: Vec<(String, String)>,
}

/// The machine and the programs, as names and values in order of importance.
#[derive(Clone, Debug, Default)]
pub struct Host(pub Vec<(&'static str, String)>);

impl Host {
    /// The value by this name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value.as_str())
    }
}

impl Serialize for Host {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row<C> {
    #[serde(flatten)]
    pub case: C,
    pub stock: Side,
    pub hasten: Side,
    /// Stock by hasten: above 1 hasten needs less.
    pub cpu_ratio: Estimate,
    pub verdict: Verdict,
    #[serde(flatten)]
    pub sizes: Option<Sizes>,
    /// Server CPU µs per operation, in the order of measurement.
    pub pairs: Vec<Pair>,
    pub warnings: Vec<Warning>,
}

/// One server's results in one row, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub server_cpu_us_per_op: f64,
    pub ops_per_s: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub failures: u64,
    pub ops: u64,
    /// The load driver's cost: near `1e6 / ops_per_s`, the driver and not the server was the limit.
    pub driver_cpu_us_per_op: f64,
    /// Failures by kind, in words; empty if there was none.
    pub failure_details: Vec<String>,
    /// Latency in µs at rising percentiles, for a curve.
    pub latency: Vec<(f64, u64)>,
    #[serde(flatten)]
    pub bytes: Option<Bytes>,
    #[serde(flatten)]
    pub memory: Option<Memory>,
}

/// Resident memory, in millions of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// At the end of a round; the median of all rounds.
    pub rss_mb: f64,
    /// The peak.
    pub rss_peak_mb: f64,
}

/// For work that turns bytes into fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bytes {
    pub wire_bytes_per_op: f64,
    /// Millions of uncompressed bytes per second of CPU time.
    pub mb_per_cpu_s: f64,
    /// Uncompressed bytes for one compressed.
    pub compression: f64,
}

/// The two sides' output for the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Hasten by stock: above 1 hasten's output is larger.
    pub wire_bytes_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_file: Option<WorstFile>,
}

/// The file that grew most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstFile {
    pub name: String,
    pub wire_bytes_ratio: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot make the report page: {0}")]
    Page(#[from] minijinja::Error),
    #[error("cannot make the report data: {0}")]
    Data(#[from] serde_json::Error),
}

/// Where [`Report::save`] put the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub html: PathBuf,
    pub json: PathBuf,
}

impl<C: Case> Report<C> {
    /// The data, in the stable format.
    pub fn json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(&self.with_summary())? + "\n")
    }

    /// The data, with the summary before its parts.
    pub(crate) fn with_summary(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct WithSummary<'a, C> {
            summary: Summary,
            #[serde(flatten)]
            report: &'a Report<C>,
        }
        let whole = Whole::of(self.claims().map(|row| (row.verdict, row.cpu_ratio.value)));
        WithSummary { summary: whole.summary(self.headline()), report: self }
    }

    /// A self-contained page.
    pub fn html(&self) -> Result<String, ReportError> {
        html::render(self)
    }

    /// The table for a terminal of `style`.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        terminal::table(self, style)
    }

    /// What the run shows, in one sentence: all cases, not the best.
    #[must_use]
    pub fn headline(&self) -> String {
        let about = |what: &str| format!("{what}CPU per {}", self.text.unit);
        Whole::of(self.claims().map(|row| (row.verdict, row.cpu_ratio.value))).headline(about)
    }

    /// The number of cases with each verdict.
    #[must_use]
    pub fn tally(&self) -> String {
        let parts =
            [Verdict::Faster, Verdict::NoDifference, Verdict::Slower, Verdict::Failed].map(|verdict| {
                let count = self.claims().filter(|row| row.verdict == verdict).count();
                format!("{count} {verdict}")
            });
        let rows = self.claims().count();
        let cases = if rows == 1 { "case" } else { "cases" };
        format!("{rows} {cases}: {}", parts.join(", "))
    }

    /// The rows that are claims about the product.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Row<C>> {
        self.rows.iter().filter(|row| row.case.is_claim())
    }

    /// Writes `hasten-report.json` and `hasten-report.html`; a reader never sees half a file.
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

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}
