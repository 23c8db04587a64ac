//! The CPU profile beside the collections: on the terminal, and as a file for Chrome's DevTools.

use std::path::{Path, PathBuf};

use hasten_v8::export;
use hasten_v8::profile::Profile;
use hasten_v8::summary::Summary;
use hasten_v8::units;
use hasten_v8::words::shortened;

use super::error::GcError;
use super::report::line;
use super::screen::{Screen, harmless};
use super::{output, source};

const FUNCTIONS: usize = 15;
const NAME: usize = 48;
const PLACE: usize = 80;

/// Writes the CPU profile of the only file, which is read apart: only this needs every sample. Returns its path.
pub(super) fn export(files: &[PathBuf], path: &Path) -> Result<PathBuf, GcError> {
    let [file] = files else { return Err(GcError::SeveralProfiles) };
    if source::is_stdin(file) {
        return Err(GcError::ProfileOfStdin);
    }
    let (source, bar) = source::open(file)?;
    bar.finish_and_clear();
    let profile = export::cpuprofile(source, &file.to_string_lossy());
    let text = profile.map_err(|source| GcError::Profile { path: file.clone(), source })?;
    let failed = |source| GcError::WriteProfile { path: path.to_owned(), source };
    output::replace(path, &text).map_err(failed)?;
    Ok(path.to_owned())
}

/// Where the time of the program's thread went, and its functions by self time.
pub(super) fn report(text: &mut String, trace: &Summary, screen: Screen) {
    let busiest = trace.busiest().filter(|heap| heap.profile.is_some());
    let Some(heap) = busiest.or_else(|| trace.profiled()) else { return };
    let Some(profile) = &heap.profile else { return };
    line(text, &format!("\n{}", screen.bold("CPU profile of the main thread")));
    line(text, &screen.wrapped("", &format!("{}.", profile.overview(heap.unseen_ms > 0.0))));
    for remark in profile.remarks() {
        line(text, &screen.wrapped("", &remark));
    }
    if !profile.functions.is_empty() {
        line(text, &format!("\n{}", functions(profile, screen)));
    }
    let more = profile.functions.len().saturating_sub(FUNCTIONS);
    if more > 0 {
        let at_least = if profile.rest_ms > 0.0 { "at least " } else { "" };
        line(text, &format!("and {at_least}{more} more functions with less"));
    }
}

fn functions(profile: &Profile, screen: Screen) -> String {
    let mut table = screen.table(&["function", "self time", "of CPU time", "where"]);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for one in profile.functions.iter().take(FUNCTIONS) {
        table.add_row([
            harmless(&shortened(one.title(), NAME)),
            units::pause(one.self_ms),
            units::percent(one.share),
            harmless(&shortened(&one.place(), PLACE)),
        ]);
    }
    table.to_string()
}
