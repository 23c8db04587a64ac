//! The measured tables of README.md and docs/: no number in them is typed by hand.
//!
//! `docs/results/bench-*.json` are reports of `hasten bench`, `tls-*.json`, `gzip-*.json` and `node-*.json` those of
//! one workload, `envoy-*.json` those of `hasten bench tls --server envoy`, `peer-*.json` those of `--server haproxy-aws-lc`, `reach-openssl-*.json` those of other series of OpenSSL, `reach-matrix.json` that of `make reach`, `proxy-*.json` those of `hasten bench envoy`, `soak-*.json` of `make soak`, `fuzz-*.json` of `make fuzz`, `gc-read-*.json` of an example of
//! hasten-bench, `gc-cpu-*.json` of `plugins/node/bench/cpu.mjs`, `core-cost-*.json` of an example of hasten-corefile, `core-minors.json` of `make node-minors`, `readcache-*.json`, `wal-*.json` and `tier-*.json` of `hasten bench` with these names, `tune-*.json` of `hasten tune`, all kept as they were written.

mod bench;
mod core_cost;
mod fuzz;
mod gc_cpu;
mod gc_model;
mod gc_read;
mod gzip;
mod node;
mod node_minors;
mod peer;
mod proxy;
mod reach;
mod soak;
mod storage;
mod tier;
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
const README: &str = "README.md";
const PERFORMANCE: &str = "docs/performance.md";
const CORE: &str = "docs/core.md";
const RECORDER: &str = "docs/gc-recorder.md";
const GC_PAGE: &str = "docs/gc.md";
const GC_MODEL_PAGE: &str = "docs/gc-model.md";
const RELIABILITY: &str = "docs/reliability.md";
const TUNE_CASES: &str = "docs/tune-cases.md";
const STORAGE: &str = "docs/storage.md";
const MEMORY: &str = "docs/memory.md";
const REACH_PAGE: &str = "docs/reach.md";

/// The lines between which a table is written.
type Marks = (&'static str, &'static str);
const BENCH: Marks = ("<!-- bench: begin (written by `cargo xtask results`) -->\n", "<!-- bench: end -->\n");
const SYSTEMS: Marks =
    ("<!-- systems: begin (written by `cargo xtask results`) -->\n", "<!-- systems: end -->\n");
const RESULTS: Marks =
    ("<!-- results: begin (written by `cargo xtask results`) -->\n", "<!-- results: end -->\n");
const ENVOY: Marks = ("<!-- envoy: begin (written by `cargo xtask results`) -->\n", "<!-- envoy: end -->\n");
const REACH: Marks = ("<!-- reach: begin (written by `cargo xtask results`) -->\n", "<!-- reach: end -->\n");
const PEER: Marks = ("<!-- peer: begin (written by `cargo xtask results`) -->\n", "<!-- peer: end -->\n");
const MATRIX: Marks =
    ("<!-- matrix: begin (written by `cargo xtask results`) -->\n", "<!-- matrix: end -->\n");
const PROXY: Marks = ("<!-- proxy: begin (written by `cargo xtask results`) -->\n", "<!-- proxy: end -->\n");
const GZIP: Marks = ("<!-- gzip: begin (written by `cargo xtask results`) -->\n", "<!-- gzip: end -->\n");
const NODE: Marks = ("<!-- node: begin (written by `cargo xtask results`) -->\n", "<!-- node: end -->\n");
const PROFILE_TLS: Marks =
    ("<!-- profile-tls: begin (written by `cargo xtask results`) -->\n", "<!-- profile-tls: end -->\n");
const PROFILE_GZIP: Marks =
    ("<!-- profile-gzip: begin (written by `cargo xtask results`) -->\n", "<!-- profile-gzip: end -->\n");
const GC_MODEL: Marks =
    ("<!-- gc-model: begin (written by `cargo xtask results`) -->\n", "<!-- gc-model: end -->\n");
const GC_READ: Marks =
    ("<!-- gc-read: begin (written by `cargo xtask results`) -->\n", "<!-- gc-read: end -->\n");
const GC_CPU: Marks =
    ("<!-- gc-cpu: begin (written by `cargo xtask results`) -->\n", "<!-- gc-cpu: end -->\n");
const CORE_COST: Marks =
    ("<!-- core-cost: begin (written by `cargo xtask results`) -->\n", "<!-- core-cost: end -->\n");
const NODE_MINORS: Marks =
    ("<!-- node-minors: begin (written by `cargo xtask results`) -->\n", "<!-- node-minors: end -->\n");
const SOAK: Marks = ("<!-- soak: begin (written by `cargo xtask results`) -->\n", "<!-- soak: end -->\n");
const FUZZ: Marks = ("<!-- fuzz: begin (written by `cargo xtask results`) -->\n", "<!-- fuzz: end -->\n");
const READ_CACHE: Marks =
    ("<!-- readcache: begin (written by `cargo xtask results`) -->\n", "<!-- readcache: end -->\n");
const WAL: Marks = ("<!-- wal: begin (written by `cargo xtask results`) -->\n", "<!-- wal: end -->\n");
const TIER: Marks = ("<!-- tier: begin (written by `cargo xtask results`) -->\n", "<!-- tier: end -->\n");
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
    let runs = reports("bench", &directory);
    let tables: Vec<_> = runs.iter().map(|path| brief(path)).collect::<Result<_, _>>()?;
    let tables = if tables.is_empty() { NONE_YET.to_owned() } else { tables.join("\n") };
    let text = mark(BENCH, &workspace.read(README)?, README, &tables)?;
    let reach = load_all::<tls::Row>(tls::REACH, &directory)?;
    let peers = load_all::<tls::Row>(peer::PEER, &directory)?;
    let text = mark(SYSTEMS, &text, README, &tls::systems(reach.iter().chain(&peers)))?;
    workspace.generate(README, &text, args.check, COMMAND)?;
    let text = [
        (RESULTS, join(&tls, tls::everything)),
        (ENVOY, join(&load_all::<tls::Row>(tls::ENVOY, &directory)?, tls::everything)),
        (PEER, join(&load_all::<peer::Row>(peer::PEER, &directory)?, peer::everything)),
        (PROXY, join(&load_all::<proxy::Row>(proxy::PROXY, &directory)?, proxy::everything)),
        (GZIP, join(&gzip, gzip::everything)),
        (NODE, join(&node, node::everything)),
        (PROFILE_TLS, profile::HANDSHAKE.table(workspace)?),
        (PROFILE_GZIP, profile::RESPONSE.table(workspace)?),
    ]
    .into_iter()
    .try_fold(workspace.read(PERFORMANCE)?, |text, (marks, table)| mark(marks, &text, PERFORMANCE, &table))?;
    workspace.generate(PERFORMANCE, &text, args.check, COMMAND)?;
    let text = mark(REACH, &workspace.read(REACH_PAGE)?, REACH_PAGE, &join(&reach, tls::everything))?;
    let matrix = match directory.join(reach::FILE) {
        file if file.is_file() => reach::table(&load_json(&file)?),
        _ => NONE_YET.to_owned(),
    };
    let text = mark(MATRIX, &text, REACH_PAGE, &matrix)?;
    workspace.generate(REACH_PAGE, &text, args.check, COMMAND)?;
    let model = load_json::<gc_model::Report>(&directory.join("gc-model.json"))?;
    let text = mark(GC_MODEL, &workspace.read(GC_MODEL_PAGE)?, GC_MODEL_PAGE, &gc_model::tables(&model))?;
    workspace.generate(GC_MODEL_PAGE, &text, args.check, COMMAND)?;
    let runs: Vec<gc_read::Run> =
        reports("gc-read", &directory).iter().map(|path| load_json(path)).collect::<Result<_, _>>()?;
    let tables: Vec<_> = runs.iter().map(gc_read::table).collect();
    let text = mark(GC_READ, &workspace.read(GC_PAGE)?, GC_PAGE, &tables.join("\n"))?;
    workspace.generate(GC_PAGE, &text, args.check, COMMAND)?;
    let runs: Vec<gc_cpu::Run> =
        reports("gc-cpu", &directory).iter().map(|path| load_json(path)).collect::<Result<_, _>>()?;
    let tables: Vec<_> = runs.iter().map(gc_cpu::table).collect();
    let text = mark(GC_CPU, &workspace.read(RECORDER)?, RECORDER, &tables.join("\n"))?;
    workspace.generate(RECORDER, &text, args.check, COMMAND)?;
    let costs = join(&load_all::<core_cost::Row>(core_cost::CORE_COST, &directory)?, core_cost::table);
    let minors = match directory.join(node_minors::FILE) {
        file if file.is_file() => node_minors::table(&load_json(&file)?),
        _ => NONE_YET.to_owned(),
    };
    let text = mark(CORE_COST, &workspace.read(CORE)?, CORE, &costs)?;
    let text = mark(NODE_MINORS, &text, CORE, &minors)?;
    workspace.generate(CORE, &text, args.check, COMMAND)?;
    let runs: Vec<soak::Run> =
        reports("soak", &directory).iter().map(|path| load_json(path)).collect::<Result<_, _>>()?;
    let tables: Vec<_> = runs.iter().map(soak::table).collect();
    let text = mark(SOAK, &workspace.read(RELIABILITY)?, RELIABILITY, &tables.join("\n"))?;
    let tables: Vec<_> = reports("fuzz", &directory)
        .iter()
        .map(|path| fuzz::table(&load_json(path)?, workspace))
        .collect::<Result<_, _>>()?;
    let text = mark(FUZZ, &text, RELIABILITY, &tables.join("\n"))?;
    workspace.generate(RELIABILITY, &text, args.check, COMMAND)?;
    let text = [(READ_CACHE, storage::READ_CACHE), (WAL, storage::WAL)].into_iter().try_fold(
        workspace.read(STORAGE)?,
        |text, (marks, workload)| {
            let table = join(&load_all::<storage::Row>(workload, &directory)?, storage::everything);
            mark(marks, &text, STORAGE, &table)
        },
    )?;
    workspace.generate(STORAGE, &text, args.check, COMMAND)?;
    let table = join(&load_all::<tier::Row>(tier::TIER, &directory)?, tier::everything);
    let text = mark(TIER, &workspace.read(MEMORY)?, MEMORY, &table)?;
    workspace.generate(MEMORY, &text, args.check, COMMAND)?;
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
    /// How it was measured, where no document says so.
    #[serde(default)]
    method: String,
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

/// Keeps a report, of one workload or of all.
fn keep(path: &Path, directory: &Path) -> Result<(), Error> {
    let error = |source| Error::File { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(error)?;
    match parse::<serde_json::Value>(path, &text)?["workload"].as_str() {
        Some("all") => keep_all(path, &text, directory),
        _ => {
            let name = check(path, &text)?;
            store(directory, &name, &text)
        }
    }
}

/// A run of all workloads counts as a result if each part does.
fn keep_all(path: &Path, report: &str, directory: &Path) -> Result<(), Error> {
    let run: bench::Run = parse(path, report)?;
    let missing = run.missing();
    if !missing.is_empty() {
        return refuse(path, &format!("it was made without {}", missing.join(" and ")));
    }
    let names: Vec<_> =
        run.parts().iter().map(|part| check(path, &part.to_string())).collect::<Result<_, _>>()?;
    match names.first().and_then(|name| name.split_once('-')) {
        Some((_, machine)) => store(directory, &format!("bench-{machine}"), report),
        None => refuse(path, "nothing was measured"),
    }
}

fn brief(path: &Path) -> Result<String, Error> {
    let run: bench::Run = load_json(path)?;
    run.table().map_err(|error| Error::Content { path: path.to_owned(), why: error.to_string() })
}

fn refuse<T>(path: &Path, why: &str) -> Result<T, Error> {
    Err(Error::Result { path: path.to_owned(), why: why.to_owned() })
}

fn store(directory: &Path, name: &str, report: &str) -> Result<(), Error> {
    let copy = directory.join(name);
    let error = |source| Error::File { path: copy.clone(), source };
    fs::create_dir_all(directory).map_err(error)?;
    fs::write(&copy, from_root(report)).map_err(error)
}

/// The name under which a report is kept: its machine's. Unfinished or failed runs are not results.
fn check(path: &Path, report: &str) -> Result<String, Error> {
    let mut results = parse::<Results<serde_json::Value>>(path, report)?;
    let is_right = match results.workload.clone().as_str() {
        "tls" => {
            let has_peer = results.rows.iter().any(|row| row["server"] == peer::SERVER);
            let rows = rows::<tls::Row>(path, report)?;
            if has_peer {
                let is_hidden = results.host.contains_key("hidden");
                results.workload = if is_hidden { peer::PEER_WITHOUT_AVX512 } else { peer::PEER }.to_owned();
            } else if rows.iter().all(tls::Row::is_envoys) {
                results.workload = tls::ENVOY.to_owned();
            } else if let Some(reach) = reach(&results.host) {
                results.workload = format!("{}-{reach}", tls::REACH);
            }
            rows.iter().all(|row| are_right(&row.stock, &row.hasten))
        }
        "envoy" => {
            let rows = rows::<proxy::Row>(path, report)?;
            if !rows.iter().all(proxy::Row::keeps_sizes) {
                return refuse(path, "the accelerated output is larger than the rules allow");
            }
            results.workload = proxy::PROXY.to_owned();
            rows.iter().all(|row| are_right(&row.stock, &row.hasten))
        }
        "gzip" => {
            let rows = rows::<gzip::Row>(path, report)?;
            if !rows.iter().all(gzip::Row::keeps_sizes) {
                return refuse(path, "the accelerated output is larger than the rules allow");
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
        "fuzz" => rows::<fuzz::Row>(path, report)?.iter().all(fuzz::Row::is_good),
        "node-minors" => rows::<node_minors::Row>(path, report)?.iter().all(node_minors::Row::is_good),
        core_cost::CORE_COST => rows::<core_cost::Row>(path, report)?.iter().all(core_cost::Row::is_good),
        "reach" => rows::<reach::Row>(path, report)?.iter().all(reach::Row::is_good),
        storage::READ_CACHE | storage::WAL => {
            rows::<storage::Row>(path, report)?.iter().all(storage::Row::is_good)
        }
        tier::TIER => {
            if !rows::<tier::Row>(path, report)?.iter().all(tier::Row::is_good) {
                return refuse(path, "the share was not kept within two points");
            }
            true
        }
        "gc-read" => rows::<gc_read::Row>(path, report)?.iter().all(gc_read::Row::is_good),
        _ => {
            return refuse(
                path,
                "it is not a report of `make results`, `make soak`, `make fuzz`, `make reach` or `make node-minors`",
            );
        }
    };
    if !results.complete {
        return refuse(path, "it is not a complete report: the run was stopped early");
    }
    if !is_right {
        return refuse(path, "operations failed while it was measured");
    }
    Ok(match results.workload.as_str() {
        // The same of every machine: what works does not depend on how fast it is.
        "reach" => reach::FILE.to_owned(),
        "node-minors" => node_minors::FILE.to_owned(),
        _ => results.file_name(),
    })
}

/// The series of OpenSSL and the class of the CPU, unless they are those of Debian 12 and of the machine.
fn reach(host: &BTreeMap<String, String>) -> Option<String> {
    let version = host.get("openssl")?.strip_prefix("OpenSSL ")?;
    let mut numbers = version.split('.');
    let series = format!("{}.{}", numbers.next()?, numbers.next()?);
    match host.contains_key("hidden") {
        true => Some(format!("{series}-avx2")),
        false => (series != "3.0").then_some(series),
    }
}

fn rows<R: DeserializeOwned>(path: &Path, report: &str) -> Result<Vec<R>, Error> {
    Ok(parse::<Results<R>>(path, report)?.rows)
}

/// The report with the project's paths as they are for everybody: its text contains paths of the machine, and of the
/// copy of the project, that it was measured with.
fn from_root(report: &str) -> String {
    const OF_THE_PROJECT: [&str; 2] = ["/target/", "/.deps/"];
    let without = |report: String, folder: &str| {
        let mut parts = report.split(folder);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, rest| {
            let start = text.rfind([' ', '"', ',', '=', ':', '(']).map_or(0, |at| at + 1);
            let is_absolute = text[start..].starts_with('/');
            let (kept, folder) = if is_absolute { (&text[..start], &folder[1..]) } else { (&*text, folder) };
            format!("{kept}{folder}{rest}")
        })
    };
    OF_THE_PROJECT.into_iter().fold(report.to_owned(), without)
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

/// `path` is the source of `text`.
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
        let mut programs = Vec::new();
        if self.host.contains_key("nginx") {
            programs.push(format!("nginx {} with {library}", self.fact("nginx")));
        }
        if self.host.contains_key("haproxy") {
            let libraries = ["haproxy_openssl", "haproxy_aws_lc"].map(|name| self.host.get(name));
            programs.push(match libraries {
                [Some(openssl), Some(aws_lc)] => {
                    format!("HAProxy {} with {openssl} and with {aws_lc}", self.fact("haproxy"))
                }
                _ => format!("HAProxy {}", self.fact("haproxy")),
            });
        }
        if self.host.contains_key("envoy") {
            programs.push(format!("Envoy {} with {}", self.fact("envoy"), self.fact("envoy_tls")));
        }
        if self.host.contains_key("rocksdb") {
            programs.push(format!("RocksDB {}", self.fact("rocksdb")));
        }
        let day = self.fact("date").split('T').next().unwrap_or_default();
        let hidden = self.host.get("hidden").map(|what| format!(" without {what}")).unwrap_or_default();
        format!(
            "{}{hidden}, {} cores, {}, kernel {}; {}; {day}",
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
mod tests;
