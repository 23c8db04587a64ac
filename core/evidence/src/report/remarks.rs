//! Failures and warnings in words, each once, with the cases they concern.

use std::fmt;

use super::{Case, Report};
use crate::warning::Warning;

/// Something that the reader must know before believing a number.
#[derive(Debug)]
pub(super) struct Remark {
    pub(super) failure: bool,
    pub(super) text: String,
    /// Which cases; empty for the whole run.
    pub(super) cases: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, text, cases } = self;
        write!(f, "{}: {text}", if *failure { "failed" } else { "warning" })?;
        if cases.is_empty() { Ok(()) } else { write!(f, " ({cases})") }
    }
}

/// Failures first.
pub(super) fn remarks<C: Case>(report: &Report<C>) -> Vec<Remark> {
    failures(report).into_iter().chain(warnings(report)).collect()
}

fn failures<C: Case>(report: &Report<C>) -> Vec<Remark> {
    let mut failures = Vec::new();
    for row in &report.rows {
        for (name, side) in [("stock", &row.stock), ("hasten", &row.hasten)] {
            failures.extend(side.failure_details.iter().map(|detail| Remark {
                failure: true,
                text: format!("{name}: {detail}"),
                cases: row.case.cells().join(" "),
            }));
        }
    }
    failures
}

/// Warnings that differ only in a number become one, with the worst number.
fn warnings<C: Case>(report: &Report<C>) -> Vec<Remark> {
    let of_run = report.warnings.iter().map(|warning| (warning, None));
    let of_rows =
        report.rows.iter().flat_map(|row| row.warnings.iter().map(move |warning| (warning, Some(row))));
    let mut groups: Vec<(&Warning, Vec<String>)> = Vec::new();
    for (warning, row) in of_run.chain(of_rows) {
        let case = row.map(|row| row.case.cells().join(" "));
        match groups.iter_mut().find(|(known, _)| known.is_like(warning)) {
            Some((worst, cases)) => {
                cases.extend(case);
                if warning.severity() > worst.severity() {
                    *worst = warning;
                }
            }
            None => groups.push((warning, case.into_iter().collect())),
        }
    }
    let cases = |cases: Vec<String>| match cases.len() {
        count if count > 1 && count == report.rows.len() => "all cases, this is the worst".to_owned(),
        _ => cases.join("; "),
    };
    let remark = |(warning, concerned): (&Warning, _)| Remark {
        failure: false,
        text: warning.to_string(),
        cases: cases(concerned),
    };
    groups.into_iter().map(remark).collect()
}
