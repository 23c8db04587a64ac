//! What can be wrong with a configuration file.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{place}: not TOML: {message}")]
    Syntax { place: Place, message: String },
    #[error("{place}: unknown {what} `{name}`{within}")]
    Unknown {
        place: Place,
        what: &'static str,
        name: String,
        /// The table, if `what` alone does not identify it.
        within: &'static str,
        fix: String,
    },
    #[error("{place}: `{key}` must be {expected}, not {found}")]
    Value { place: Place, key: String, expected: &'static str, found: String },
    #[error("{place}: `{key}`: {problem}")]
    Key { place: Place, key: String, problem: String, fix: String },
    #[error("{variable}: {problem}")]
    Variable { variable: &'static str, problem: String, fix: String },
}

impl ConfigError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::Read { .. } => "check --config and HASTEN_CONFIG, and who may read the file".into(),
            Self::Syntax { .. } => {
                "docs/configuration.md (in /usr/share/doc/hasten) has an example to start from".into()
            }
            Self::Unknown { fix, .. } | Self::Key { fix, .. } | Self::Variable { fix, .. } => fix.clone(),
            Self::Value { key, expected, .. } => format!("write {expected} after `{key} =`"),
        }
    }
}
