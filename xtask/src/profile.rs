//! The tables of docs/performance.md about where the time goes, from docs/results/profile-*.json.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::error::Error;
use crate::workspace::Workspace;

/// A profile, and the columns of its table in the order in which an operation passes through them.
#[derive(Debug)]
pub(crate) struct Subject {
    file: &'static str,
    what: &'static str,
    case: &'static str,
    parts: &'static [&'static str],
}

pub(crate) const HANDSHAKE: Subject = Subject {
    file: "docs/results/profile-tls.json",
    what: "handshake and request, nginx, TLS 1.3",
    case: "certificate",
    parts: &["kernel", "nginx", "libssl", "libcrypto", "libc", "hasten: hooks", "hasten: lanes", "other"],
};

pub(crate) const RESPONSE: Subject = Subject {
    file: "docs/results/profile-gzip.json",
    what: "response of 100 KB of HTML, nginx",
    case: "case",
    parts: &[
        "kernel",
        "nginx",
        "libz",
        "libc",
        "hasten: streams",
        "hasten: checksum",
        "hasten: engine",
        "other",
    ],
};

#[derive(Debug, Deserialize)]
struct Profile {
    concurrency: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    case: String,
    side: String,
    server_cpu_us_per_op: f64,
    parts: BTreeMap<String, f64>,
}

impl Subject {
    /// The table, or a sentence that explains how to get it.
    pub(crate) fn table(&self, workspace: &Workspace) -> Result<String, Error> {
        let path = workspace.root.join(self.file);
        let Ok(text) = fs::read(&path) else {
            return Ok(format!("No profile is kept in {} yet: `make profile` takes one.\n", self.file));
        };
        let profile: Profile =
            serde_json::from_slice(&text).map_err(|error| Error::Content { path, why: error.to_string() })?;
        Ok(self.render(&profile))
    }

    fn render(&self, profile: &Profile) -> String {
        let mut text = format!(
            "Microseconds of server CPU per {}, {} connections, by samples of perf.\n\n\
             | {} | side | total | {} |\n|---|---|---:|{}\n",
            self.what,
            profile.concurrency,
            self.case,
            self.parts.join(" | "),
            "---:|".repeat(self.parts.len())
        );
        for row in &profile.rows {
            let part = |part: &&str| format!("{:.1}", row.parts.get(*part).copied().unwrap_or_default());
            let parts: Vec<_> = self.parts.iter().map(part).collect();
            let total = row.server_cpu_us_per_op;
            text += &format!("| {} | {} | {total:.0} | {} |\n", case(&row.case), row.side, parts.join(" | "));
        }
        text
    }
}

/// Names of algorithms are capitalised.
fn case(case: &str) -> String {
    if case.starts_with("level") { case.to_owned() } else { case.to_uppercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_column() {
        let profile: Profile = serde_json::from_str(
            r#"{"concurrency": 256, "rows": [{"case": "p-256", "side": "hasten", "server_cpu_us_per_op": 140.4,
                "parts": {"kernel": 60.25, "hasten: lanes": 17.0}}]}"#,
        )
        .unwrap();
        let table = HANDSHAKE.render(&profile);
        assert!(
            table.ends_with("| P-256 | hasten | 140 | 60.2 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 17.0 | 0.0 |\n"),
            "{table}"
        );
    }
}
