//! What to change, why, and the effect: derived from traces and from the model of [`crate::model`].
//!
//! Advice without a significant predicted effect is not given; `nothing` says so instead, with the figures.

mod defaults;
mod heap;
mod release;
mod young;

use serde::Serialize;

use crate::event::Isolate;
use crate::summary::{IsolateSummary, Summary};
use crate::units;

/// Facts that traces do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The memory that the container, or else the machine, gives the program.
    pub memory_limit_bytes: Option<u64>,
    /// `20.20.2`, or as much of it as is known.
    pub node_version: Option<String>,
    /// Versions of Node on this host.
    pub installed: Vec<String>,
    /// The `--max-semi-space-size` under which the traces were recorded, in bytes.
    pub semi_space_max: Option<u64>,
}

/// Stable names, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Id {
    SemiSpace,
    /// Like `semi-space`, where V8 itself chose a small young generation because memory is limited.
    ContainerDefault,
    OldSpace,
    Leak,
    Upgrade,
    /// No change is worthwhile.
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    pub id: Id,
    /// The heap concerned; `None` for all of them.
    pub isolate: Option<Isolate>,
    pub title: String,
    pub reason: String,
    /// The predicted change, with figures; empty if nothing is predicted.
    pub effect: String,
    /// Facts that would change the decision but that a trace does not show.
    pub unknowns: Vec<String>,
    /// For NODE_OPTIONS.
    pub node_options: Vec<String>,
}

/// The advice that the traces justify, most effective first.
///
/// Sizes are advised for the first trace, the reference for the others; growth is looked for in all of them.
#[must_use]
pub fn advise(summaries: &[Summary], facts: &Facts) -> Vec<Advice> {
    let Some(first) = summaries.first().filter(|summary| !summary.isolates.is_empty()) else {
        return Vec::new();
    };
    let leaks =
        summaries.iter().flat_map(|summary| &summary.isolates).filter_map(|heap| heap::leak(heap, facts));
    let mut advice: Vec<Advice> = leaks.collect();
    let young = young::advise(first, facts);
    let is_young_option = !young.node_options.is_empty();
    if is_young_option {
        advice.push(young.clone());
    }
    advice.extend(heap::old_space(first, facts, young::size_of(&young.node_options)));
    advice.extend(release::upgrade(&first.isolates, facts));
    if advice.is_empty() {
        advice.push(young);
    }
    advice
}

/// Heaps that live at the same time share the memory: those of cluster processes and of worker threads.
fn heaps(summary: &Summary) -> u64 {
    summary.isolates.len().max(1) as u64
}

/// Between the first and the last collection, as far as it was observed.
fn wall_ms(heap: &IsolateSummary) -> f64 {
    heap.observed_ms()
}

/// The major release of Node: as stated, else what the trace looks like, if that is unambiguous.
fn major(heap: &IsolateSummary, facts: &Facts) -> Option<u32> {
    let recorded = heap.process.as_ref().and_then(|process| process.node.as_deref());
    let version = facts.node_version.as_deref().or(recorded).or(heap.node.as_deref())?;
    version.trim_start_matches('v').split('.').next()?.trim().parse().ok()
}

const MIB: u64 = 1 << 20;

fn size_text(bytes: u64) -> String {
    units::bytes(bytes as f64)
}
