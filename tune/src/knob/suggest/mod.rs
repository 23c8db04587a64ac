//! Settings of servers that only their configuration can make: suggested with the line to write, never changed.

mod conf;
mod haproxy;
mod nginx;

use std::path::PathBuf;

use hasten_probe::program::kind::Kind;
use serde::Serialize;

use super::Facts;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    pub file: PathBuf,
    /// The line that it is about, if there is one already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What to write there.
    pub text: String,
    /// Where in the file it belongs, such as `http`.
    pub within: String,
    pub why: String,
}

/// What the configuration that the command names leaves to be had. Nothing of it is proven: try it, and tune again.
#[must_use]
pub fn suggest(facts: &Facts) -> Vec<Suggestion> {
    let arguments: Vec<_> =
        facts.command.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cpus = facts.machine.cpus.len();
    match facts.program.kind {
        Kind::Nginx => nginx::suggest(&arguments, cpus),
        Kind::Haproxy => haproxy::suggest(&arguments, cpus),
        _ => Vec::new(),
    }
}

/// The value of an option that stands behind it or is a part of it: `-c FILE`, `-cFILE`.
fn option<'a>(arguments: &'a [String], name: &str) -> impl Iterator<Item = &'a str> {
    let name = name.to_owned();
    arguments.iter().enumerate().filter_map(move |(at, word)| match word.strip_prefix(&name)? {
        "" => arguments.get(at + 1).map(String::as_str),
        value => Some(value),
    })
}

#[cfg(test)]
mod tests;
