use std::io;
use std::path::PathBuf;

/// Why a task did not succeed, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{} broken {}:\n{}", .0.len(), if .0.len() == 1 { "rule" } else { "rules" }, .0.join("\n"))]
    Rules(Vec<String>),
    #[error("{path} is not up to date: run `{command}` and commit the result")]
    Stale { path: PathBuf, command: &'static str },
    #[error("{0}")]
    Symbols(String),
    #[error("{path} cannot be put into the documents: {why}")]
    Result { path: PathBuf, why: String },
    #[error("{0} {noun} failed: see above", noun = if *.0 == 1 { "test" } else { "tests" })]
    Tests(usize),
    #[error("`{0}` failed; its own message is above")]
    Command(&'static str),
    #[error("cannot start `{0}`: {1}")]
    Start(&'static str, io::Error),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not what it should be: {why}")]
    Content { path: PathBuf, why: String },
}
