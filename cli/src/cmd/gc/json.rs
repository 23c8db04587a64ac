//! `hasten gc --json`: names are stable and documented in docs/gc.md.

use hasten_v8::advice::Advice;
use hasten_v8::compare::Comparison;
use hasten_v8::summary::Summary;
use serde::Serialize;

use super::Findings;

/// Raised when a name is removed or changes its meaning; not when one is added.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    hasten: &'static str,
    traces: &'a [Summary],
    comparison: Option<&'a Comparison>,
    advice: &'a [Advice],
}

pub(super) fn render(findings: &Findings) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: SCHEMA,
        hasten: env!("CARGO_PKG_VERSION"),
        traces: &findings.traces,
        comparison: findings.comparison.as_ref(),
        advice: &findings.advice,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
