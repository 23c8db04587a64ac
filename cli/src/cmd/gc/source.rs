//! Traces from files and from standard input, with a progress bar for long ones.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use hasten_v8::parse;
use hasten_v8::summary::{Lines, Summary};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::error::GcError;
use super::screen::harmless;

/// A smaller file is read before a bar would be visible.
const WORTH_A_BAR: u64 = 32 << 20;

pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<Summary>, GcError> {
    let mut seen = HashSet::new();
    // Before anything is read: standard input can be read only once.
    if files.iter().filter(|path| is_stdin(path)).any(|path| !seen.insert(path)) {
        return Err(GcError::StdinTwice);
    }
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Summary, GcError> {
    let name = path.to_string_lossy();
    let (source, bar) = open(path)?;
    let outcome = parse::read(source, &name, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let summary = outcome.map_err(|source| GcError::Trace { path: path.to_owned(), source })?;
    if summary.lines.bytes == 0 {
        return Err(GcError::Empty { path: path.to_owned() });
    }
    if summary.busiest().or_else(|| summary.profiled()).is_none() {
        return Err(GcError::NoCollections { path: path.to_owned(), what: nothing_in(&summary.lines) });
    }
    Ok(summary)
}

pub(super) fn open(path: &Path) -> Result<(Box<dyn Read>, ProgressBar), GcError> {
    if is_stdin(path) {
        if io::stdin().is_terminal() {
            return Err(GcError::Terminal);
        }
        return Ok((Box::new(io::stdin().lock()), ProgressBar::hidden()));
    }
    let error = |source| GcError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(error)?;
    let metadata = file.metadata().map_err(error)?;
    if metadata.is_dir() {
        return Err(error(io::ErrorKind::IsADirectory.into()));
    }
    let bar = if metadata.len() >= WORTH_A_BAR { bar(metadata.len(), path) } else { ProgressBar::hidden() };
    Ok((Box::new(file), bar))
}

/// Visible on a terminal only.
fn bar(bytes: u64, path: &Path) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:24} {binary_bytes} of {binary_total_bytes}, {eta} left {wide_msg}",
    )
    .expect("the template is valid");
    ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr())
        .with_style(style)
        .with_message(path.display().to_string())
}

fn nothing_in(lines: &Lines) -> String {
    if lines.unknown == 0 {
        return format!("none of its {} lines reports a collection", lines.total);
    }
    let sample = lines.samples.first().map(|sample| format!(", such as: {}", harmless(sample)));
    let Lines { total, unknown, .. } = lines;
    format!("lines of V8: {unknown} of {total}, and none is understood{}", sample.unwrap_or_default())
}

pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
