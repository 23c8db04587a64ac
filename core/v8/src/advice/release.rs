//! A newer release of Node that is installed already.

use super::{Advice, Facts, Id, major};
use crate::summary::IsolateSummary;

pub(super) fn upgrade(heaps: &[IsolateSummary], facts: &Facts) -> Option<Advice> {
    let heap = heaps.first()?;
    let current = major(heap, facts)?;
    // Odd releases live for half a year.
    let newer =
        facts.installed.iter().filter_map(|version| release(version).map(|release| (release, version)));
    let (_, version) = newer
        .filter(|(release, _)| release % 2 == 0 && *release > current)
        .max_by_key(|(release, _)| *release)?;
    Some(Advice {
        id: Id::Upgrade,
        isolate: None,
        title: format!("Try Node {version}, which is installed"),
        reason: format!("The trace is one of Node {current}. Newer releases carry a newer V8 and larger defaults."),
        effect: String::new(),
        unknowns: vec![
            "What the program's own code gains: that differs more between programs than any option does, and is not in a \
             trace. Measure CPU time for the same work on both."
                .to_owned(),
            "Whether native addons and dependencies run on it.".to_owned(),
        ],
        node_options: Vec::new(),
    })
}

fn release(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}
