//! Writes the page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Findings;
use super::error::GcError;

/// Writes the page, so that a reader never sees half of one. Returns its path.
pub(super) fn page(path: &Path, findings: &Findings) -> Result<PathBuf, GcError> {
    let text = hasten_v8::page::page(&findings.traces, &findings.advice)?;
    replace(path, &text).map_err(|source| GcError::Write { path: path.to_owned(), source })?;
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// An existing page stays in place until the new one is complete; if that fails, nothing is left behind.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}.tmp", std::process::id()));
    let outcome = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    outcome
}
