//! The rows of a report, one after the other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hasten_evidence::report::{Case, Report, Row, Saved};
use hasten_evidence::warning::Warning;

use crate::error::BenchError;
use crate::progress::Progress;

/// What came of a case: its rows, none if the user interrupted; and what may have disturbed it.
pub(crate) type Measured<C> = Result<(Vec<Row<C>>, Option<Warning>), BenchError>;

/// Measures all cases, or as many as finish before `interrupted`, in about `estimate`; the report is saved after each.
pub(crate) fn measure<C: Case + Copy>(
    mut report: Report<C>,
    cases: &[C],
    estimate: Duration,
    out: &Path,
    interrupted: &AtomicBool,
    mut rows: impl FnMut(C, &Progress, &dyn Fn() -> bool) -> Measured<C>,
) -> Result<(Report<C>, Saved), BenchError> {
    let mut saved = report.save(out)?;
    let mut progress = Progress::start(cases.len(), estimate);
    let stopped = || interrupted.load(Ordering::Relaxed);
    let mut finished = 0;
    for case in cases {
        if stopped() {
            break;
        }
        progress.row(&case.title());
        let (rows, warning) = rows(*case, &progress, &stopped)?;
        report.warnings.extend(warning.filter(|warning| !report.warnings.contains(warning)));
        if rows.is_empty() {
            break;
        }
        progress.finish_rows(&rows);
        report.rows.extend(rows);
        finished += 1;
        saved = report.save(out)?;
    }
    progress.finish();
    report.complete = finished == cases.len();
    saved = report.save(out).unwrap_or(saved);
    Ok((report, saved))
}
