//! What Node.js's knobs have in common.

use std::os::unix::ffi::OsStrExt;

use hasten_plan::process;

use super::Facts;
use super::facts::NodeFacts;
use crate::service::Launch;

/// The Node.js that the command starts.
pub(super) fn of(facts: &Facts) -> Result<&NodeFacts, String> {
    may_run(facts)?;
    let name = facts.program.name();
    facts.node.as_ref().ok_or_else(|| format!("{name} is not Node.js itself, so its release is not known"))
}

/// Whether `NODE_OPTIONS` and variables reach a Node.js.
pub(super) fn may_run(facts: &Facts) -> Result<(), String> {
    facts.no_node.clone().map_or(Ok(()), Err)
}

/// Options that only the command line may set.
pub(super) fn takes_argument<'a>(facts: &'a Facts, option: &str) -> Result<&'a NodeFacts, String> {
    let node = of(facts)?;
    undecided(facts, option)?;
    if !node.takes_arguments {
        return Err(format!(
            "{option} is not allowed in NODE_OPTIONS, and the command does not call node itself"
        ));
    }
    Ok(node)
}

/// Whether the user has left an option to us.
pub(super) fn undecided(facts: &Facts, option: &str) -> Result<(), String> {
    let options = facts.environment.get(std::ffi::OsStr::new("NODE_OPTIONS"));
    let own = facts.command.iter().skip(1).take_while(|word| word.as_bytes() != b"--");
    match process::decided(option, options.map(AsRef::as_ref), own.map(AsRef::as_ref)) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

pub(super) fn option(launch: &mut Launch, name: &str, value: Option<u64>) {
    let option = value.map_or(name.to_owned(), |value| format!("{name}={value}"));
    launch.profile.add("node", "options", &option);
}
