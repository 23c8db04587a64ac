//! Server settings that only a configuration file can make: suggested with the line to write, never changed.

mod conf;
mod envoy;
mod haproxy;
mod nginx;

use std::path::PathBuf;

use hasten_probe::program::kind::Kind;
use serde::Serialize;

use super::Facts;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// What to do, in a few words.
    pub text: String,
    pub why: String,
    /// The file, with the number of an existing line: `/etc/nginx/nginx.conf:7`.
    pub file: String,
    /// The line as it should be.
    pub line: String,
}

/// A suggestion as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    file: PathBuf,
    /// The existing line to change, if any.
    number: Option<usize>,
    /// The block that it belongs to; empty at the top level.
    within: String,
    line: String,
    why: String,
}

/// Improvements to the configuration that the command names. None of them is proven: try one, and tune again.
#[must_use]
pub fn suggest(facts: &Facts) -> Vec<Suggestion> {
    let arguments: Vec<_> =
        facts.command.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cpus = facts.machine.cpus.len();
    let findings = match facts.program.kind {
        Kind::Nginx => nginx::suggest(&arguments, cpus),
        Kind::Haproxy => haproxy::suggest(&arguments, cpus),
        // What it cannot read, Envoy itself will complain of.
        Kind::Envoy => envoy::suggest(&arguments, cpus).unwrap_or_default(),
        _ => Vec::new(),
    };
    findings.into_iter().map(Suggestion::from).collect()
}

/// The same for an Envoy with these arguments. An error says what cannot be read of its configuration.
pub fn suggest_for_envoy(arguments: &[String], cpus: usize) -> Result<Vec<Suggestion>, String> {
    let findings = envoy::suggest(arguments, cpus)?;
    Ok(findings.into_iter().map(Suggestion::from).collect())
}

impl From<Finding> for Suggestion {
    fn from(finding: Finding) -> Self {
        let Finding { file, number, within, line, why } = finding;
        let block =
            if within.is_empty() { "outside of all blocks".to_owned() } else { format!("in `{within}`") };
        let (text, at) = match number {
            Some(number) => (format!("change line {number}, {block}"), format!(":{number}")),
            None => (format!("add {block}"), String::new()),
        };
        Self { text, why, file: format!("{}{at}", file.display()), line }
    }
}

/// The value of an option, separate or attached: `-c FILE`, `-cFILE`.
fn option<'a>(arguments: &'a [String], name: &str) -> impl Iterator<Item = &'a str> {
    let name = name.to_owned();
    arguments.iter().enumerate().filter_map(move |(at, word)| match word.strip_prefix(&name)? {
        "" => arguments.get(at + 1).map(String::as_str),
        value => Some(value),
    })
}

#[cfg(test)]
mod tests;
