//! The table of docs/performance.md that says where the time goes, from docs/results/profile.json.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::error::Error;
use crate::workspace::Workspace;

const FILE: &str = "docs/results/profile.json";

/// Columns of the table, in the order in which a handshake meets them.
const PARTS: [&str; 8] =
    ["kernel", "nginx", "libssl", "libcrypto", "libc", "hasten: hooks", "hasten: lanes", "other"];

#[derive(Debug, Deserialize)]
struct Profile {
    concurrency: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    cert: String,
    side: String,
    server_cpu_us_per_op: f64,
    parts: BTreeMap<String, f64>,
}

/// The table, or a sentence that says how to get it.
pub(crate) fn table(workspace: &Workspace) -> Result<String, Error> {
    let path = workspace.root.join(FILE);
    let Ok(text) = fs::read(&path) else {
        return Ok(format!("No profile is kept in {FILE} yet: `make profile` takes one.\n"));
    };
    let profile: Profile =
        serde_json::from_slice(&text).map_err(|error| Error::Content { path, why: error.to_string() })?;
    Ok(render(&profile))
}

fn render(profile: &Profile) -> String {
    let mut text = format!(
        "Microseconds of server CPU per handshake and request, nginx, TLS 1.3, {} connections, by samples of perf.\n\n\
         | certificate | side | total | {} |\n|---|---|---:|{}\n",
        profile.concurrency,
        PARTS.join(" | "),
        "---:|".repeat(PARTS.len())
    );
    for row in &profile.rows {
        let parts = PARTS.map(|part| format!("{:.1}", row.parts.get(part).copied().unwrap_or_default()));
        let (cert, total) = (row.cert.to_uppercase(), row.server_cpu_us_per_op);
        text += &format!("| {cert} | {} | {total:.0} | {} |\n", row.side, parts.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_column() {
        let profile: Profile = serde_json::from_str(
            r#"{"concurrency": 256, "rows": [{"cert": "p-256", "side": "hasten", "server_cpu_us_per_op": 140.4,
                "parts": {"kernel": 60.25, "hasten: lanes": 17.0}}]}"#,
        )
        .unwrap();
        let table = render(&profile);
        assert!(
            table.ends_with("| P-256 | hasten | 140 | 60.2 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 17.0 | 0.0 |\n"),
            "{table}"
        );
    }
}
