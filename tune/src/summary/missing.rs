//! What a profile removes: accelerators that `hasten run` loads without a profile.

use super::Summary;
use crate::knob::Choices;
use crate::service::Launch;
use crate::session::{Findings, Settings};
use crate::space::Space;

/// Accelerators that the profile keeps from being loaded, why, and how to have them anyway.
#[must_use]
pub fn missing(findings: &Findings, choices: &Choices, settings: &Settings) -> Vec<String> {
    let Some((winner, _)) = findings.proven() else { return Vec::new() };
    let profile = choices.launch(winner, &Launch::default()).profile;
    let listed = profile.get("run", "only").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let listed: Vec<&str> = listed.iter().filter_map(toml::Value::as_str).collect();
    let missing = choices.by_default.iter().filter(|name| !listed.contains(name));
    let space = choices.space();
    let tell = |name: &&str| {
        let all: Vec<String> = listed.iter().chain([name]).map(|name| format!("\"{name}\"")).collect();
        let why = why_missing(findings, choices, settings, &space, name);
        format!(
            "{name} is not loaded with this profile: {why}. `hasten run` without the profile loads it; to have it here, \
             too, write only = [{}]",
            all.join(", ")
        )
    };
    missing.map(tell).collect()
}

fn why_missing(
    findings: &Findings,
    choices: &Choices,
    settings: &Settings,
    space: &Space,
    name: &str,
) -> String {
    if let Some(left_out) = choices.left_out.iter().find(|left_out| left_out.name == name) {
        return format!("it was not tried ({})", left_out.why);
    }
    let summary = Summary { longer: "", findings, settings, choices, space };
    let knob = space.dimensions.iter().position(|dimension| dimension.name == name);
    let row = findings.screened.iter().find(|row| Some(row.knob) == knob);
    row.map_or_else(
        || "it was not tried".to_owned(),
        |row| format!("its verdict is \"{}\"", summary.fate(row).as_str()),
    )
}
