//! The measured tables of README.md and docs/performance.md: no number in them is typed by hand.
//!
//! `docs/results/tls-*.json` are reports of `hasten bench tls`, kept as they were written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;

use crate::error::Error;
use crate::profile;
use crate::workspace::Workspace;

const DIRECTORY: &str = "docs/results";
const COMMAND: &str = "cargo xtask results";
const PERFORMANCE: &str = "docs/performance.md";

/// The lines between which a table is written.
type Marks = (&'static str, &'static str);
const RESULTS: Marks =
    ("<!-- results: begin (written by `cargo xtask results`) -->\n", "<!-- results: end -->\n");
const PROFILE: Marks =
    ("<!-- profile: begin (written by `cargo xtask results`) -->\n", "<!-- profile: end -->\n");
const NONE_YET: &str =
    "No result is kept in docs/results yet: `make results` measures, and fills this table.\n";

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// Only check that the tables are up to date
    #[arg(long, conflicts_with = "add")]
    check: bool,

    /// First keep this report, in place of an earlier one from the same kind of machine
    #[arg(long, value_name = "REPORT.json")]
    add: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &ResultsArgs) -> Result<(), Error> {
    let directory = workspace.root.join(DIRECTORY);
    if let Some(path) = &args.add {
        keep(path, &directory)?;
    }
    let results = load_all(&directory)?;
    for (document, tables) in
        [("README.md", join(&results, summary)), (PERFORMANCE, join(&results, everything))]
    {
        let text = mark(RESULTS, &workspace.read(document)?, document, &tables)?;
        let text = match document {
            PERFORMANCE => mark(PROFILE, &text, document, &profile::table(workspace)?)?,
            _ => text,
        };
        workspace.generate(document, &text, args.check, COMMAND)?;
    }
    Ok(())
}

/// `text` with `table` between the marks of that name.
fn mark(marks: Marks, text: &str, document: &str, table: &str) -> Result<String, Error> {
    replace(text, marks, table).ok_or_else(|| Error::Content {
        path: document.into(),
        why: format!("it has no line {}", marks.0.trim_end()),
    })
}

#[derive(Debug, Deserialize)]
struct Results {
    host: BTreeMap<String, String>,
    workload: String,
    complete: bool,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    server: String,
    cert: String,
    protocol: String,
    concurrency: u32,
    stock: Side,
    hasten: Side,
    cpu_ratio: Ratio,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct Side {
    server_cpu_us_per_op: f64,
    ops_per_s: f64,
    p50_us: u64,
    p99_us: u64,
    failures: u64,
}

#[derive(Debug, Deserialize)]
struct Ratio {
    value: f64,
    low: f64,
    high: f64,
}

/// Copies a report under the name of its machine. What is unfinished or failed is no result.
fn keep(path: &Path, directory: &Path) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::Result { path: path.to_owned(), why: why.to_owned() });
    let results = load(path)?;
    if results.workload != "tls" || !results.complete {
        return refuse("it is not a complete report of `hasten bench tls`");
    }
    if results.rows.iter().any(|row| row.stock.failures + row.hasten.failures > 0) {
        return refuse("operations failed while it was measured");
    }
    let copy = directory.join(results.file_name());
    let error = |source| Error::File { path: copy.clone(), source };
    fs::create_dir_all(directory).map_err(error)?;
    fs::copy(path, &copy).map_err(error)?;
    Ok(())
}

fn load_all(directory: &Path) -> Result<Vec<Results>, Error> {
    let mut paths: Vec<PathBuf> = match fs::read_dir(directory) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    paths.retain(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.starts_with("tls-") && path.extension().is_some_and(|extension| extension == "json")
        })
    });
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Result<Results, Error> {
    let text = fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Content { path: path.to_owned(), why: error.to_string() })
}

impl Results {
    fn fact(&self, name: &str) -> &str {
        self.host.get(name).map_or("unknown", String::as_str)
    }

    fn file_name(&self) -> String {
        let words = self.fact("cpu").to_lowercase();
        let words: Vec<_> =
            words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!("tls-{}-{}-cores.json", words.join("-"), self.fact("cores"))
    }

    /// Machine, programs and day, in one sentence.
    fn circumstances(&self) -> String {
        let mut programs = vec![format!(
            "nginx {} with OpenSSL {}",
            self.fact("nginx"),
            self.fact("openssl").trim_start_matches("OpenSSL ")
        )];
        if self.host.contains_key("haproxy") {
            programs.push(format!("HAProxy {}", self.fact("haproxy")));
        }
        let day = self.fact("date").split('T').next().unwrap_or_default();
        format!(
            "{}, {} cores, {}, kernel {}; {}; {day}",
            self.fact("cpu"),
            self.fact("cores"),
            self.fact("os"),
            self.fact("kernel"),
            programs.join("; ")
        )
    }

    fn find(&self, like: &Row, concurrency: u32) -> Option<&Row> {
        self.rows.iter().find(|row| {
            (&row.server, &row.cert, &row.protocol, row.concurrency)
                == (&like.server, &like.cert, &like.protocol, concurrency)
        })
    }
}

/// TLS 1.3 under the highest load measured, and beside it what one connection alone sees.
fn summary(results: &Results) -> String {
    let busiest = results.rows.iter().map(|row| row.concurrency).max().unwrap_or_default();
    let mut text = format!(
        "Server CPU per full TLS 1.3 handshake with one request, stock and behind `hasten run`. {}.\n\n\
         | server | certificate | stock | hasten | **stock ÷ hasten**, {busiest} connections | 1 connection |\n\
         |---|---|---:|---:|---:|---:|\n",
        results.circumstances()
    );
    for row in results.rows.iter().filter(|row| row.concurrency == busiest && row.protocol == "tls1.3") {
        text += &format!(
            "| {} | {} | {:.0} µs | {:.0} µs | **{:.2}** [{:.2}, {:.2}] | {} |\n",
            row.server,
            row.cert.to_uppercase(),
            row.stock.server_cpu_us_per_op,
            row.hasten.server_cpu_us_per_op,
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            results.find(row, 1).map_or_else(|| "not measured".to_owned(), alone),
        );
    }
    text
}

/// A ratio within the noise is not printed as one.
fn alone(row: &Row) -> String {
    match row.verdict.as_str() {
        "no difference" => row.verdict.clone(),
        _ => format!("{:.2} [{:.2}, {:.2}]", row.cpu_ratio.value, row.cpu_ratio.low, row.cpu_ratio.high),
    }
}

/// Every row of the report.
fn everything(results: &Results) -> String {
    let mut text = format!(
        "{}. Stock → hasten; the interval holds the ratio in 95 of 100 repetitions.\n\n\
         | server | certificate | protocol | conn. | CPU µs | stock ÷ hasten | handshakes/s | p50 ms | p99 ms | verdict |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---|\n",
        results.circumstances()
    );
    for row in &results.rows {
        let (stock, hasten) = (&row.stock, &row.hasten);
        let ms = |us: u64| us as f64 / 1000.0;
        text += &format!(
            "| {} | {} | {} | {} | {:.0} → {:.0} | {:.2} [{:.2}, {:.2}] | {:.0} → {:.0} | {:.2} → {:.2} | {:.2} → {:.2} | {} |\n",
            row.server,
            row.cert.to_uppercase(),
            row.protocol.replace("tls", "TLS "),
            row.concurrency,
            stock.server_cpu_us_per_op,
            hasten.server_cpu_us_per_op,
            row.cpu_ratio.value,
            row.cpu_ratio.low,
            row.cpu_ratio.high,
            stock.ops_per_s,
            hasten.ops_per_s,
            ms(stock.p50_us),
            ms(hasten.p50_us),
            ms(stock.p99_us),
            ms(hasten.p99_us),
            row.verdict,
        );
    }
    text
}

fn join(results: &[Results], table: fn(&Results) -> String) -> String {
    match results {
        [] => NONE_YET.to_owned(),
        _ => results.iter().map(table).collect::<Vec<_>>().join("\n"),
    }
}

/// `document` with `tables` between its marks; `None` without marks.
fn replace(document: &str, (begin, end): Marks, tables: &str) -> Option<String> {
    let (head, rest) = document.split_once(begin)?;
    let (_, tail) = rest.split_once(end)?;
    Some(format!("{head}{begin}\n{tables}\n{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(concurrency: u32, verdict: &str) -> String {
        format!(
            r#"{{"server": "nginx", "cert": "rsa-2048", "protocol": "tls1.3", "concurrency": {concurrency},
                "stock": {{"server_cpu_us_per_op": 570.4, "ops_per_s": 1750, "p50_us": 900, "p99_us": 2000, "failures": 0}},
                "hasten": {{"server_cpu_us_per_op": 260.0, "ops_per_s": 3800, "p50_us": 500, "p99_us": 1500, "failures": 0}},
                "cpu_ratio": {{"value": 2.194, "low": 2.15, "high": 2.24}}, "verdict": "{verdict}"}}"#
        )
    }

    fn report(complete: bool) -> String {
        format!(
            r#"{{"host": {{"cpu": "Example (R) CPU 9", "cores": "2", "os": "Debian", "kernel": "6.1", "nginx": "1.22.1",
                "openssl": "3.0.15", "date": "2026-01-02T03:04:05Z"}}, "workload": "tls", "complete": {complete},
                "rows": [{}, {}]}}"#,
            row(1, "no difference"),
            row(256, "faster")
        )
    }

    #[test]
    fn a_kept_report_fills_both_tables() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, report(true)).unwrap();
        keep(&source, directory.path()).unwrap();
        assert!(directory.path().join("tls-example-r-cpu-9-2-cores.json").is_file());

        let results = load_all(directory.path()).unwrap();
        let summary = join(&results, summary);
        assert!(
            summary
                .contains("| nginx | RSA-2048 | 570 µs | 260 µs | **2.19** [2.15, 2.24] | no difference |\n"),
            "{summary}"
        );
        assert!(summary.contains("nginx 1.22.1 with OpenSSL 3.0.15; 2026-01-02."), "{summary}");
        let everything = join(&results, everything);
        assert_eq!(everything.matches("\n| nginx | RSA-2048 | TLS 1.3 |").count(), 2);
    }

    #[test]
    fn an_unfinished_report_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, report(false)).unwrap();
        assert!(matches!(keep(&source, directory.path()), Err(Error::Result { .. })));
        assert!(load_all(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let (begin, end) = RESULTS;
        let document = format!("a\n{begin}old\n{end}b\n");
        let replaced = replace(&document, RESULTS, "new\n").unwrap();
        assert_eq!(replaced, format!("a\n{begin}\nnew\n\n{end}b\n"));
        assert_eq!(replace(&replaced, RESULTS, "new\n").unwrap(), replaced);
        assert_eq!(replace("no marks", RESULTS, "new"), None);
        assert_eq!(replace(&document, PROFILE, "new"), None, "other marks");
    }
}
