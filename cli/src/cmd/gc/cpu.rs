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
/// Worker threads that are told, and functions of each.
const WORKERS: usize = 8;
const OF_WORKERS: usize = 5;
const NAME: usize = 48;
const PLACE: usize = 80;

/// Writes the CPU profiles of the only file, which is read apart: only this needs every sample. Returns their paths.
pub(super) fn export(files: &[PathBuf], path: &Path) -> Result<Vec<PathBuf>, GcError> {
    let [file] = files else { return Err(GcError::SeveralProfiles) };
    if source::is_stdin(file) {
        return Err(GcError::ProfileOfStdin);
    }
    let (source, bar) = source::open(file)?;
    bar.finish_and_clear();
    let profiles = export::cpuprofiles(source, &file.to_string_lossy());
    let profiles = profiles.map_err(|source| GcError::Profile { path: file.clone(), source })?;
    let write = |one: &export::Exported| {
        let path = one.worker.map_or(path.to_owned(), |worker| of_worker(path, worker));
        match output::replace(&path, &one.text) {
            Ok(()) => Ok(path),
            Err(source) => Err(GcError::WriteProfile { path, source }),
        }
    };
    profiles.iter().map(write).collect()
}

/// `app.worker-3.cpuprofile` beside `app.cpuprofile`: DevTools opens files with that ending.
fn of_worker(path: &Path, worker: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".worker-{worker}"));
    if let Some(end) = path.extension() {
        name.push(".");
        name.push(end);
    }
    path.with_file_name(name)
}

/// Where the time of the program's threads went, and their functions by self time.
pub(super) fn report(text: &mut String, trace: &Summary, screen: Screen) {
    let busiest = trace.busiest().filter(|heap| heap.profile.is_some());
    let Some(heap) = busiest.or_else(|| trace.profiled()) else { return };
    let has_gaps = heap.unseen_ms > 0.0;
    if let Some(profile) = &heap.profile {
        thread(text, profile, has_gaps, FUNCTIONS, screen);
    }
    for profile in heap.workers.iter().take(WORKERS) {
        thread(text, profile, has_gaps, OF_WORKERS, screen);
    }
    if let more @ 1.. = heap.workers.len().saturating_sub(WORKERS) {
        line(text, &format!("\n{more} more worker threads did less: --json has them."));
    }
}

/// One thread, with as many functions.
fn thread(text: &mut String, profile: &Profile, has_gaps: bool, most: usize, screen: Screen) {
    let title = format!("CPU profile of {}", harmless(&shortened(&profile.thread(), NAME)));
    line(text, &format!("\n{}", screen.bold(&title)));
    line(text, &screen.wrapped("", &format!("{}.", profile.overview(has_gaps))));
    for remark in profile.remarks() {
        line(text, &screen.wrapped("", &remark));
    }
    if !profile.functions.is_empty() {
        line(text, &format!("\n{}", functions(profile, most, screen)));
    }
    let more = profile.functions.len().saturating_sub(most);
    if more > 0 {
        let at_least = if profile.rest_ms > 0.0 { "at least " } else { "" };
        line(text, &format!("and {at_least}{more} more functions with less"));
    }
}

fn functions(profile: &Profile, most: usize, screen: Screen) -> String {
    let mut table = screen.table(&["function", "self time", "of CPU time", "where"]);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for one in profile.functions.iter().take(most) {
        table.add_row([
            harmless(&shortened(one.title(), NAME)),
            units::pause(one.self_ms),
            units::percent(one.share),
            harmless(&shortened(&one.place(), PLACE)),
        ]);
    }
    table.to_string()
}
