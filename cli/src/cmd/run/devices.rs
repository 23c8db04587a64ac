//! What `hasten run` says about accelerator devices.

use std::path::PathBuf;

use hasten_device::engines::Entry;
use hasten_device::root;
use hasten_plan::devices::{self, Opened, Outlook};
use hasten_plan::{Config, Plan, Side, Surroundings};
use hasten_probe::Probe;

use crate::render;

/// Looks for devices, if anything about devices is configured.
pub(super) fn look(plan: &mut Plan, config: &Config, surroundings: &Surroundings) {
    let root = std::env::var_os(root::VARIABLE).filter(|root| !root.is_empty());
    let probe = root.map_or_else(Probe::new, Probe::with_root);
    plan.look_at_devices(|| probe.devices(), config, surroundings);
}

/// Opens the libraries. That runs their code, which is worth waiting for only if the user wants every reason.
pub(super) fn open_libraries(plan: &mut Plan, config: &Config, surroundings: &Surroundings) {
    let folder = devices::libraries(config, surroundings);
    plan.look_at_libraries(|engine| open(engine, &folder));
}

/// Every reason.
pub(super) fn details(outlook: &Outlook) -> String {
    let tried = if outlook.is_tried() { "is tried" } else { "is not tried" };
    let headline = format!("{} {tried}: {} for {}", outlook.engine, outlook.summary, outlook.accelerator);
    let lines = [headline].into_iter().chain(outlook.reasons.iter().map(render::reason));
    lines.collect::<Vec<_>>().join("\n")
}

/// A line for each engine that concerns the user, with the fixes.
pub(super) fn summary(outlooks: &[Outlook]) -> Vec<String> {
    let reported = outlooks.iter().filter(|outlook| outlook.concerns());
    let lines = reported.flat_map(|outlook| {
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

fn open(engine: &str, folder: &Option<PathBuf>) -> Option<Result<Opened, String>> {
    let look = Entry::named(engine)?.look;
    let opened =
        look(folder).map(|library| Opened { name: library.name(), is_simulated: library.is_simulated() });
    Some(opened.map_err(|error| error.to_string()))
}
