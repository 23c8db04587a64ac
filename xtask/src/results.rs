//! The measured tables of README.md and docs/: no number in them is typed by hand.
//!
//! `docs/results/tls-*.json`, `gzip-*.json` and `node-*.json` are reports of `hasten bench`, `soak-*.json` of `make soak`,
//! `tune-*.json` of `hasten tune`, kept as they were written.

mod gc_model;
mod gzip;
mod node;
mod soak;
mod tls;
mod tune;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::profile;
use crate::workspace::Workspace;

const DIRECTORY: &str = "docs/results";
const COMMAND: &str = "cargo xtask results";
const PERFORMANCE: &str = "docs/performance.md";
const GC_MODEL_PAGE: &str = "docs/gc-model.md";
const RELIABILITY: &str = "docs/reliability.md";
const TUNE_CASES: &str = "docs/tune-cases.md";

/// The lines between which a table is written.
type Marks = (&'static str, &'static str);
const RESULTS: Marks =
    ("<!-- results: begin (written by `cargo xtask results`) -->\n", "<!-- results: end -->\n");
const GZIP: Marks = ("<!-- gzip: begin (written by `cargo xtask results`) -->\n", "<!-- gzip: end -->\n");
const NODE: Marks = ("<!-- node: begin (written by `cargo xtask results`) -->\n", "<!-- node: end -->\n");
const PROFILE_TLS: Marks =
    ("<!-- profile-tls: begin (written by `cargo xtask results`) -->\n", "<!-- profile-tls: end -->\n");
const PROFILE_GZIP: Marks =
    ("<!-- profile-gzip: begin (written by `cargo xtask results`) -->\n", "<!-- profile-gzip: end -->\n");
const GC_MODEL: Marks =
    ("<!-- gc-model: begin (written by `cargo xtask results`) -->\n", "<!-- gc-model: end -->\n");
const SOAK: Marks = ("<!-- soak: begin (written by `cargo xtask results`) -->\n", "<!-- soak: end -->\n");
const TUNE: Marks = ("<!-- tune: begin (written by `cargo xtask results`) -->\n", "<!-- tune: end -->\n");
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
    let (tls, gzip) = (load_all::<tls::Row>("tls", &directory)?, load_all::<gzip::Row>("gzip", &directory)?);
    let node = load_all::<node::Row>("node", &directory)?;
    for (document, of_tls, of_gzip, of_node) in [
        ("README.md", join(&tls, tls::summary), join(&gzip, gzip::summary), join(&node, node::summary)),
        (
            PERFORMANCE,
            join(&tls, tls::everything),
            join(&gzip, gzip::everything),
            join(&node, node::everything),
        ),
    ] {
        let text = mark(RESULTS, &workspace.read(document)?, document, &of_tls)?;
        let text = mark(GZIP, &text, document, &of_gzip)?;
        let text = mark(NODE, &text, document, &of_node)?;
        let text = match document {
            PERFORMANCE => {
                let text = mark(PROFILE_TLS, &text, document, &profile::HANDSHAKE.table(workspace)?)?;
                mark(PROFILE_GZIP, &text, document, &profile::RESPONSE.table(workspace)?)?
            }
            _ => text,
        };
        workspace.generate(document, &text, args.check, COMMAND)?;
    }
    let model = load_json::<gc_model::Report>(&directory.join("gc-model.json"))?;
    let text = mark(GC_MODEL, &workspace.read(GC_MODEL_PAGE)?, GC_MODEL_PAGE, &gc_model::tables(&model))?;
    workspace.generate(GC_MODEL_PAGE, &text, args.check, COMMAND)?;
    let runs: Vec<soak::Run> =
        reports("soak", &directory).iter().map(|path| load_json(path)).collect::<Result<_, _>>()?;
    let tables: Vec<_> = runs.iter().map(soak::table).collect();
    let text = mark(SOAK, &workspace.read(RELIABILITY)?, RELIABILITY, &tables.join("\n"))?;
    workspace.generate(RELIABILITY, &text, args.check, COMMAND)?;
    let sessions: Vec<_> = reports("tune", &directory)
        .iter()
        .map(|path| Ok((tune::name(path), load_json(path)?)))
        .collect::<Result<_, Error>>()?;
    let text = mark(TUNE, &workspace.read(TUNE_CASES)?, TUNE_CASES, &tune::table(&sessions))?;
    workspace.generate(TUNE_CASES, &text, args.check, COMMAND)
}

/// `text` with `table` between the marks of that name.
fn mark(marks: Marks, text: &str, document: &str, table: &str) -> Result<String, Error> {
    replace(text, marks, table).ok_or_else(|| Error::Content {
        path: document.into(),
        why: format!("it has no line {}", marks.0.trim_end()),
    })
}

#[derive(Debug, Deserialize)]
struct Results<R> {
    host: BTreeMap<String, String>,
    workload: String,
    complete: bool,
    rows: Vec<R>,
}

#[derive(Debug, Deserialize)]
struct Side {
    server_cpu_us_per_op: f64,
    ops_per_s: f64,
    p50_us: u64,
    p99_us: u64,
    mb_per_cpu_s: Option<f64>,
    compression: Option<f64>,
    rss_mb: Option<f64>,
    failures: u64,
}

#[derive(Debug, Deserialize)]
struct Ratio {
    value: f64,
    low: f64,
    high: f64,
}

/// Keeps a report, or each part of one of `hasten bench` without a workload.
fn keep(path: &Path, directory: &Path) -> Result<(), Error> {
    let report: serde_json::Value = load_json(path)?;
    let pretty = |value| serde_json::to_string_pretty(value).map(|text| text + "\n").unwrap_or_default();
    match report["parts"].as_array().filter(|_| report["workload"] == "all") {
        Some(parts) => parts.iter().try_for_each(|part| keep_one(path, &pretty(part), directory)),
        None => {
            let error = |source| Error::File { path: path.to_owned(), source };
            keep_one(path, &fs::read_to_string(path).map_err(error)?, directory)
        }
    }
}

/// Copies a report under the name of its machine. What is unfinished or failed is no result.
fn keep_one(path: &Path, report: &str, directory: &Path) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::Result { path: path.to_owned(), why: why.to_owned() });
    let mut results = parse::<Results<serde_json::Value>>(path, report)?;
    let is_right = match results.workload.clone().as_str() {
        "tls" => rows::<tls::Row>(path, report)?.iter().all(|row| are_right(&row.stock, &row.hasten)),
        "gzip" => {
            let rows = rows::<gzip::Row>(path, report)?;
            if !rows.iter().all(gzip::Row::keeps_sizes) {
                return refuse("the accelerated output is larger than the rules allow");
            }
            rows.iter().all(|row| are_right(&row.stock, &row.hasten))
        }
        "node" | node::TUNINGS => {
            let rows = rows::<node::Row>(path, report)?;
            if rows.iter().all(node::Row::is_ghost) {
                results.workload = node::GHOST.to_owned();
            }
            rows.iter().all(|row| are_right(&row.stock, &row.hasten))
        }
        "soak" => rows::<soak::Row>(path, report)?.iter().all(soak::Row::is_good),
        _ => return refuse("it is not a report of `hasten bench` or `make soak`"),
    };
    if !results.complete {
        return refuse("it is not a complete report: the run was stopped early");
    }
    if !is_right {
        return refuse("operations failed while it was measured");
    }
    let copy = directory.join(results.file_name());
    let error = |source| Error::File { path: copy.clone(), source };
    fs::create_dir_all(directory).map_err(error)?;
    fs::write(&copy, from_root(report)).map_err(error)
}

fn rows<R: DeserializeOwned>(path: &Path, report: &str) -> Result<Vec<R>, Error> {
    Ok(parse::<Results<R>>(path, report)?.rows)
}

/// The report with paths of the project as they are for everybody: its command names programs by where they were here.
fn from_root(report: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    report.replace(&format!("{}/", root.display()), "")
}

fn are_right(stock: &Side, hasten: &Side) -> bool {
    stock.failures + hasten.failures == 0
}

fn load_all<R: DeserializeOwned>(workload: &str, directory: &Path) -> Result<Vec<Results<R>>, Error> {
    reports(workload, directory).iter().map(|path| load(path)).collect()
}

/// The kept reports of a workload.
fn reports(workload: &str, directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = match fs::read_dir(directory) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    let prefix = format!("{workload}-");
    paths.retain(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.starts_with(&prefix) && path.extension().is_some_and(|extension| extension == "json")
        })
    });
    paths.sort();
    paths
}

fn load<R: DeserializeOwned>(path: &Path) -> Result<Results<R>, Error> {
    load_json(path)
}

fn load_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// `path` is where `text` is from.
fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::Content { path: path.to_owned(), why: error.to_string() })
}

impl<R> Results<R> {
    fn fact(&self, name: &str) -> &str {
        self.host.get(name).map_or("unknown", String::as_str)
    }

    fn file_name(&self) -> String {
        let words = self.fact("cpu").to_lowercase();
        let words: Vec<_> =
            words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!("{}-{}-{}-cores.json", self.workload, words.join("-"), self.fact("cores"))
    }

    /// Machine, programs and day, in one sentence.
    fn circumstances(&self) -> String {
        let library = match self.host.get("zlib") {
            Some(version) => format!("zlib {version}"),
            None => format!("OpenSSL {}", self.fact("openssl").trim_start_matches("OpenSSL ")),
        };
        let mut programs = vec![format!("nginx {} with {library}", self.fact("nginx"))];
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
}

fn join<R>(results: &[Results<R>], table: fn(&Results<R>) -> String) -> String {
    match results {
        [] => NONE_YET.to_owned(),
        _ => {
            let tables = results.iter().map(table).filter(|table| !table.is_empty());
            tables.collect::<Vec<_>>().join("\n")
        }
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
    fn a_kept_report_names_no_folder_of_this_machine() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().display();
        let report = format!("--node {root}/.deps/node20,{root}/.deps/node22 --out /srv");
        assert_eq!(from_root(&report), "--node .deps/node20,.deps/node22 --out /srv");
    }

    #[test]
    fn a_kept_report_fills_both_tables() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, report(true)).unwrap();
        keep(&source, directory.path()).unwrap();
        assert!(directory.path().join("tls-example-r-cpu-9-2-cores.json").is_file());

        let results = load_all("tls", directory.path()).unwrap();
        let summary = join(&results, tls::summary);
        assert!(
            summary
                .contains("| nginx | RSA-2048 | 570 µs | 260 µs | **2.19** [2.15, 2.24] | no difference |\n"),
            "{summary}"
        );
        assert!(summary.contains("nginx 1.22.1 with OpenSSL 3.0.15; 2026-01-02."), "{summary}");
        let everything = join(&results, tls::everything);
        assert_eq!(everything.matches("\n| nginx | RSA-2048 | TLS 1.3 |").count(), 2);
    }

    #[test]
    fn each_part_of_a_run_of_all_workloads_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        let all = |parts: &str| {
            format!(r#"{{"workload": "all", "complete": true, "parts": [{parts}], "left_out": []}}"#)
        };
        fs::write(&source, all(&report(true))).unwrap();
        keep(&source, directory.path()).unwrap();
        assert_eq!(load_all::<tls::Row>("tls", directory.path()).unwrap().len(), 1);
        fs::write(&source, all(&report(false))).unwrap();
        assert!(matches!(keep(&source, directory.path()), Err(Error::Result { .. })));
    }

    #[test]
    fn an_unfinished_report_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, report(false)).unwrap();
        assert!(matches!(keep(&source, directory.path()), Err(Error::Result { .. })));
        assert!(load_all::<tls::Row>("tls", directory.path()).unwrap().is_empty());
    }

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let (begin, end) = RESULTS;
        let document = format!("a\n{begin}old\n{end}b\n");
        let replaced = replace(&document, RESULTS, "new\n").unwrap();
        assert_eq!(replaced, format!("a\n{begin}\nnew\n\n{end}b\n"));
        assert_eq!(replace(&replaced, RESULTS, "new\n").unwrap(), replaced);
        assert_eq!(replace("no marks", RESULTS, "new"), None);
        assert_eq!(replace(&document, PROFILE_TLS, "new"), None, "other marks");
    }

    /// A library row, a server row; `worst` is the growth of the worst file.
    fn gzip_report(worst: f64) -> String {
        let side = |cpu: f64, speed: f64| {
            format!(
                r#"{{"server_cpu_us_per_op": {cpu}, "ops_per_s": 900, "p50_us": 900, "p99_us": 2000, "failures": 0,
                    "wire_bytes_per_op": 1000, "mb_per_cpu_s": {speed}, "compression": 4.2}}"#
            )
        };
        let (stock, hasten) = (side(570.4, 40.0), side(260.0, 90.0));
        let both = format!(
            r#""level": 6, "stock": {stock}, "hasten": {hasten}, "wire_bytes_ratio": 1.004, "verdict": "faster",
                "cpu_ratio": {{"value": 2.194, "low": 2.15, "high": 2.24}}"#
        );
        format!(
            r#"{{"host": {{"cpu": "Example", "cores": "2", "os": "Debian", "kernel": "6.1", "nginx": "1.22.1",
                "openssl": "3.0.15", "date": "2026-01-02T03:04:05Z"}}, "workload": "gzip", "complete": true, "rows": [
                {{"engine": "hasten", "work": "deflate", {both}, "worst_file": {{"name": "css/4KB", "wire_bytes_ratio": {worst}}}}},
                {{"engine": "isal", "work": "deflate", {both}, "worst_file": {{"name": "x", "wire_bytes_ratio": 1.2}}}},
                {{"server": "nginx", "size": "100KB", {both}}}]}}"#
        )
    }

    #[test]
    fn a_report_of_compression_fills_its_tables() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, gzip_report(1.021)).unwrap();
        keep(&source, directory.path()).unwrap();
        assert!(directory.path().join("gzip-example-2-cores.json").is_file());

        let results = load_all("gzip", directory.path()).unwrap();
        let summary = join(&results, gzip::summary);
        assert!(
            summary.contains("| 100KB | 6 | 570 µs | 260 µs | **2.19** [2.15, 2.24] | +0.4 % |\n"),
            "{summary}"
        );
        assert!(
            summary.contains("| deflate, level 6 | 40 | 90 | **2.19** [2.15, 2.24] | +0.4 % |\n"),
            "{summary}"
        );
        let everything = join(&results, gzip::everything);
        assert!(everything.contains("| +2.1 % (css/4KB) | faster |\n"), "{everything}");
        assert_eq!(everything.matches("\n| isal |").count(), 1);
    }

    #[test]
    fn output_that_breaks_the_rules_is_no_result() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hasten-report.json");
        fs::write(&source, gzip_report(1.031)).unwrap();
        assert!(
            matches!(keep(&source, directory.path()), Err(Error::Result { why, .. }) if why.contains("larger"))
        );
    }
}
