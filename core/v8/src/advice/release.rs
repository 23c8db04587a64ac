//! A newer release of Node that is installed already.

use super::{Advice, Facts, Id, major};
use crate::summary::IsolateSummary;
use crate::units;

/// Scavenges of three programs at each release's own size, in milliseconds, from docs/results/gc-model.json.
const PAUSES: [(u32, [f64; 3]); 4] = [
    (20, [353.1, 364.5, 322.4]),
    (22, [190.6, 404.2, 271.5]),
    (24, [63.5, 150.3, 196.0]),
    (26, [90.8, 242.5, 266.0]),
];

pub(super) fn upgrade(heaps: &[IsolateSummary], facts: &Facts) -> Option<Advice> {
    let heap = heaps.first()?;
    let current = major(heap, facts)?;
    // Odd releases are supported for only half a year.
    let newer =
        facts.installed.iter().filter_map(|version| release(version).map(|release| (release, version)));
    let (release, version) = newer
        .filter(|(release, _)| release % 2 == 0 && *release > current)
        .max_by_key(|(release, _)| *release)?;
    Some(Advice {
        id: Id::Upgrade,
        isolate: None,
        title: format!("Try Node {version}, which is installed"),
        reason: format!("The trace is one of Node {current}. Newer releases carry a newer V8 and larger defaults."),
        effect: effect(current, release),
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

/// The least and the greatest effect among the three programs.
fn effect(current: u32, release: u32) -> String {
    let of = |wanted: u32| PAUSES.iter().find(|(major, _)| *major == wanted).map(|(_, pauses)| pauses);
    let Some((now, then)) = of(current).zip(of(release)) else { return String::new() };
    let ratios = now.iter().zip(then).map(|(now, then)| then / now);
    let (least, most) =
        ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    format!(
        "In three programs that allocate much, scavenges took {} to {} of the time that they took on Node {current}, each \
         release at its own sizes.",
        units::percent(least),
        units::percent(most),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_report() {
        let report = include_str!("../../../../docs/results/gc-model.json");
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        let cells = report["cells"].as_array().unwrap();
        for (major, pauses) in PAUSES {
            for (workload, pause) in ["api", "ast", "cache"].iter().zip(pauses) {
                let is_it = |cell: &&serde_json::Value| {
                    (cell["node"].as_u64(), cell["workload"].as_str()) == (Some(major.into()), Some(workload))
                        && cell["format"] == "trace-gc-nvp"
                        && cell["size"] == cell["from"]
                };
                let measured = cells.iter().find(is_it).unwrap()["pause_ms"]["measured"].as_f64().unwrap();
                assert!((measured - pause).abs() <= 0.1, "{workload} on {major}: {measured}");
            }
        }
    }

    #[test]
    fn an_effect_is_told_only_of_what_was_measured() {
        assert!(effect(20, 24).contains("of the time that they took on Node 20"));
        assert_eq!(effect(18, 24), "");
        assert_eq!(effect(20, 28), "");
    }
}
