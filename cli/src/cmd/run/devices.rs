//! What `hasten run` says of accelerator devices.

use std::path::PathBuf;

use hasten_device::engines::{qat, qatzip, qpl};
use hasten_device::root;
use hasten_names::Engine;
use hasten_plan::devices::{self, Outlook};
use hasten_plan::{Config, Plan, Reason, Side, Surroundings};
use hasten_probe::Probe;

use crate::render;

/// What comes of each engine; nothing if nobody has said a word about devices.
pub(super) fn outlooks(plan: &Plan, config: &Config, surroundings: &Surroundings) -> Vec<Outlook> {
    let root = std::env::var_os(root::VARIABLE).filter(|root| !root.is_empty());
    let probe = root.map_or_else(Probe::new, Probe::with_root);
    devices::outlooks(|| probe.devices(), plan, config, surroundings)
}

/// Adds whether the libraries can be opened. That runs code of theirs, which only somebody who wants every reason waits for.
pub(super) fn with_libraries(
    mut outlooks: Vec<Outlook>,
    config: &Config,
    surroundings: &Surroundings,
) -> Vec<Outlook> {
    let folder = devices::libraries(config, surroundings);
    for outlook in outlooks.iter_mut().filter(|outlook| outlook.is_tried()) {
        outlook.reasons.extend(library(outlook.engine, &folder));
    }
    outlooks
}

/// Every reason.
pub(super) fn details(outlook: &Outlook) -> String {
    let tried = if outlook.is_tried() { "is tried" } else { "is not tried" };
    let headline = format!("{} {tried}: {} for {}", outlook.engine, outlook.summary, outlook.accelerator);
    let lines = [headline].into_iter().chain(outlook.reasons.iter().map(render::reason));
    lines.collect::<Vec<_>>().join("\n")
}

/// A line for each engine that is tried, or that somebody has named for nothing, with the cures.
pub(super) fn summary(outlooks: &[Outlook]) -> Vec<String> {
    let told = outlooks.iter().filter(|outlook| outlook.is_tried() || outlook.is_named);
    let lines = told.flat_map(|outlook| {
        let (verb, side) =
            if outlook.is_tried() { ("is tried", Side::For) } else { ("is not tried", Side::Against) };
        let reasons = outlook.reasons.iter().filter(move |reason| reason.side == side);
        let why = reasons.map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ");
        let doubts = outlook.reasons.iter().filter(|reason| reason.side == Side::Idle);
        let doubts = doubts.map(|reason| format!("  but {}", reason.text));
        let fixes = outlook.reasons.iter().filter_map(|reason| reason.fix.as_ref());
        let line = format!("hasten: {} {verb} for {}: {why}", outlook.engine, outlook.accelerator);
        [line].into_iter().chain(doubts).chain(fixes.map(|fix| format!("  fix: {fix}"))).collect::<Vec<_>>()
    });
    lines.collect()
}

fn library(engine: &str, folder: &Option<PathBuf>) -> Option<Reason> {
    let look = match Engine::from_name(engine)? {
        Engine::Qatzip => qatzip::look(folder),
        Engine::Qpl => qpl::look(folder),
        Engine::Qat => qat::look(folder),
        _ => return None,
    };
    Some(match look {
        Ok(library) if library.is_simulated() => {
            Reason::favour(format!("{} opens, and is simulated: no device is behind it", library.name()))
        }
        Ok(library) => Reason::favour(format!("{} opens", library.name())),
        Err(error) => Reason::against(error.to_string()),
    })
}
