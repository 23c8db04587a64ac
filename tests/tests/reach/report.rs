//! The report: a row for each server, key and class of CPU.

use std::fs;
use std::path::PathBuf;

use hasten_bench::affinity::Placement;
use hasten_bench::host;
use hasten_tests::product;
use serde_json::{Value, json};

use crate::case::{Case, Cell, CpuClass, Findings, Work};

pub(crate) struct Report {
    rows: Vec<Value>,
    complaints: Vec<String>,
}

impl Report {
    /// The last one without the systems that now run again: those whose name contains `wanted`.
    pub(crate) fn without(wanted: &str) -> Self {
        let text = fs::read_to_string(file()).unwrap_or_default();
        let last: Value = serde_json::from_str(&text).unwrap_or_default();
        let rows = last["rows"].as_array().cloned().unwrap_or_default();
        let is_kept = |row: &Value| row["system"].as_str().is_some_and(|name| !name.contains(wanted));
        Self { rows: rows.into_iter().filter(is_kept).collect(), complaints: Vec::new() }
    }

    pub(crate) fn add(&mut self, case: &Case, findings: &Findings) {
        let new = findings.complaints.iter().map(|what| format!("{case}: {what}"));
        new.clone().for_each(|complaint| eprintln!("{complaint}"));
        self.complaints.extend(new);
        self.rows.push(row(case, findings));
        // Whatever happens to the next one.
        self.keep(false);
    }

    /// Writes it beside the builds and returns what is wrong. It is complete with rows of all these systems.
    pub(crate) fn finish(mut self, systems: &[String]) -> Vec<String> {
        let place = |row: &Value| systems.iter().position(|name| row["system"] == **name);
        self.rows.retain(|row| place(row).is_some());
        self.rows.sort_by_key(place);
        let is_there = |name: &String| self.rows.iter().any(|row| row["system"] == **name);
        self.keep(systems.iter().all(is_there));
        let file = file().display().to_string();
        eprintln!("the report: {file}; `cargo xtask results --add {file}` keeps it");
        self.complaints
    }

    fn keep(&self, is_finished: bool) {
        fs::create_dir_all(file().parent().expect("a directory")).expect("a directory for the report");
        let text = serde_json::to_string_pretty(&self.document(is_finished)).expect("JSON") + "\n";
        fs::write(file(), text).expect("a report");
    }

    fn document(&self, is_finished: bool) -> Value {
        let facts = host::facts(&[], &Placement::of_this_machine());
        let facts = facts.0.into_iter().filter(|(name, _)| *name != "placement");
        let host: serde_json::Map<_, _> =
            facts.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        json!({
            "workload": "reach",
            "complete": is_finished && CpuClass::here().count() == CpuClass::BOTH.len(),
            "host": host,
            "rows": self.rows,
        })
    }
}

fn file() -> PathBuf {
    product::target_directory().join("reach/hasten-report.json")
}

fn row(case: &Case, findings: &Findings) -> Value {
    let Findings { check, cells, signatures, note, reloaded, complaints } = findings;
    json!({
        "system": case.system.name,
        "server": case.server.name(),
        "server_version": case.system.version(case.server),
        "openssl": check.openssl,
        "glibc": check.libc,
        "check": { "decision": check.decision, "reasons": check.reasons },
        "cpu": case.cpu.name(),
        "cert": case.kind.as_str(),
        "signatures": work(*signatures),
        "cells": cells.iter().map(cell).collect::<Vec<_>>(),
        "note": note,
        "while_reloaded": reloaded.map(|(handshakes, failures)| json!({ "handshakes": handshakes, "failures": failures })),
        "complaints": complaints,
    })
}

fn cell(cell: &Cell) -> Value {
    let (protocol, group) = (cell.protocol.as_str(), cell.group.as_str());
    if cell.is_refused {
        return json!({ "protocol": protocol, "group": group, "refused": true });
    }
    json!({
        "protocol": protocol,
        "group": group,
        "refused": false,
        "handshakes": cell.handshakes,
        "failures": cell.failures,
        "resumed": cell.is_resumed,
        "exchanges": work(cell.exchanges),
        "hybrids": cell.hybrids,
    })
}

fn work(work: Work) -> Value {
    json!({ "batched": work.batched, "single": work.single })
}
