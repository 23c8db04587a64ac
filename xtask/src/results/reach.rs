//! The matrix of docs/reach.md: every OpenSSL, server, key, group and class of CPU that `make reach` drove.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Deserialize;

use super::Results;

/// The only report, whatever the machine.
pub(super) const FILE: &str = "reach-matrix.json";

/// A server with one key on one class of CPU.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    system: String,
    server: String,
    server_version: String,
    openssl: String,
    glibc: String,
    check: Check,
    cpu: String,
    cert: String,
    signatures: Work,
    cells: Vec<Cell>,
    while_reloaded: Option<Reloaded>,
    complaints: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Check {
    decision: String,
}

#[derive(Debug, Deserialize)]
struct Cell {
    group: String,
    refused: bool,
    #[serde(default)]
    handshakes: u64,
    #[serde(default)]
    failures: u64,
    #[serde(default)]
    exchanges: Work,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Work {
    batched: u64,
    single: u64,
}

#[derive(Debug, Deserialize)]
struct Reloaded {
    handshakes: u64,
    failures: u64,
}

impl Row {
    /// Whether everything was as it should be.
    pub(super) fn is_good(&self) -> bool {
        let has_failed = self.cells.iter().any(|cell| cell.failures > 0);
        self.complaints.is_empty() && !has_failed && !self.cells.is_empty()
    }
}

impl Work {
    fn way(self) -> &'static str {
        match self {
            Self { batched: 0, single: 0 } => "OpenSSL",
            Self { batched: 0, .. } => "single",
            Self { .. } => "batched",
        }
    }
}

/// A line for each server of each system.
pub(super) fn table(results: &Results<Row>) -> String {
    let day = results.fact("date").split('T').next().unwrap_or_default();
    let mut text = format!(
        "{}, {} cores, kernel {}; {day}. Every client was served.\n\n\
         | system | server | OpenSSL | glibc | `hasten check` | groups | with AVX-512 | with AVX2 | handshakes | while reloaded |\n\
         |---|---|---|---|---|---|---|---|---:|---:|\n",
        results.fact("cpu"),
        results.fact("cores"),
        results.fact("kernel"),
    );
    for rows in results.rows.chunk_by(|a, b| (&a.system, &a.server) == (&b.system, &b.server)) {
        let first = &rows[0];
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let handshakes: u64 = cells().map(|cell| cell.handshakes).sum();
        let _ = writeln!(
            text,
            "| {} | {} {} | {} | {} | {} | {} | {} | {} | {handshakes} | {} |",
            first.system,
            first.server,
            first.server_version,
            first.openssl,
            first.glibc,
            first.check.decision,
            groups(cells()),
            work(rows, "avx512"),
            work(rows, "avx2"),
            reloaded(rows),
        );
    }
    text
}

/// Those that the server has, and those that it refused, with and without hasten.
fn groups<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let (mut had, mut refused) = (Vec::new(), Vec::new());
    for cell in cells {
        let list = if cell.refused { &mut refused } else { &mut had };
        let name = cell.group.to_uppercase();
        if !list.contains(&name) {
            list.push(name);
        }
    }
    let without = if refused.is_empty() { String::new() } else { format!("; no {}", refused.join(", ")) };
    had.join(", ") + &without
}

/// Who signs with which keys, and who exchanges keys.
fn work(rows: &[Row], cpu: &str) -> String {
    let rows = || rows.iter().filter(|row| row.cpu == cpu);
    let ways = |way: &str| {
        let keys = rows().filter(|row| row.signatures.way() == way).map(|row| row.cert.to_uppercase());
        let keys = keys.collect::<Vec<_>>().join(", ");
        if keys.is_empty() { None } else { Some(format!("{keys}: {way}")) }
    };
    let mut parts: Vec<_> = ["batched", "single", "OpenSSL"].into_iter().filter_map(ways).collect();
    let cells = rows().flat_map(|row| &row.cells).filter(|cell| !cell.refused);
    let exchanges: BTreeSet<_> = cells.map(|cell| cell.exchanges.way()).collect();
    if !exchanges.is_empty() {
        parts.push(format!("exchanges: {}", exchanges.into_iter().collect::<Vec<_>>().join(" or ")));
    }
    parts.join("; ")
}

fn reloaded(rows: &[Row]) -> String {
    let all: Vec<_> = rows.iter().filter_map(|row| row.while_reloaded.as_ref()).collect();
    let sum = |of: fn(&Reloaded) -> u64| all.iter().map(|one| of(one)).sum::<u64>();
    match all.is_empty() {
        true => "–".to_owned(),
        false => format!("{}, {} failed", sum(|one| one.handshakes), sum(|one| one.failures)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: &str, cert: &str, signatures: &str, complaints: &str) -> String {
        format!(
            r#"{{"system": "OpenSSL 3.1 from its source", "server": "nginx", "server_version": "1.22.1", "openssl": "3.1.4",
                "glibc": "2.36", "check": {{"decision": "apply"}}, "cpu": "{cpu}", "cert": "{cert}",
                "signatures": {signatures}, "while_reloaded": {{"handshakes": 70, "failures": 0}}, "cells": [
                {{"protocol": "tls1.3", "group": "x25519", "refused": false, "handshakes": 130, "failures": 0,
                    "exchanges": {{"batched": 0, "single": 120}}}},
                {{"protocol": "tls1.3", "group": "x25519mlkem768", "refused": true}}],
                "complaints": [{complaints}]}}"#
        )
    }

    fn results(rows: &[String]) -> Results<Row> {
        let text = format!(
            r#"{{"host": {{"cpu": "Example", "cores": "2", "kernel": "6.1", "date": "2026-01-02T03:04:05Z"}},
                "workload": "reach", "complete": true, "rows": [{}]}}"#,
            rows.join(", ")
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_server_is_one_line_whatever_its_keys() {
        let (batched, none) = (r#"{"batched": 9, "single": 2}"#, r#"{"batched": 0, "single": 0}"#);
        let rows = [
            row("avx512", "rsa-2048", batched, ""),
            row("avx512", "p-256", batched, ""),
            row("avx2", "rsa-2048", none, ""),
        ];
        let table = table(&results(&rows));
        let line = "| OpenSSL 3.1 from its source | nginx 1.22.1 | 3.1.4 | 2.36 | apply | X25519; no X25519MLKEM768 \
             | RSA-2048, P-256: batched; exchanges: single | RSA-2048: OpenSSL; exchanges: single | 390 | 210, 0 failed |\n";
        assert!(table.ends_with(line), "{table}");
        assert!(table.starts_with("Example, 2 cores, kernel 6.1; 2026-01-02. "), "{table}");
    }

    #[test]
    fn a_run_with_a_complaint_or_a_failure_is_no_result() {
        let good = row("avx2", "p-256", r#"{"batched": 0, "single": 1}"#, "");
        let is_good = |row: String| results(&[row]).rows.iter().all(Row::is_good);
        assert!(is_good(good.clone()));
        let failed =
            good.replace(r#""handshakes": 130, "failures": 0"#, r#""handshakes": 130, "failures": 1"#);
        assert!(!is_good(failed));
        assert!(!is_good(row("avx2", "p-256", r#"{"batched": 0, "single": 1}"#, r#""it is slow""#)));
    }
}
