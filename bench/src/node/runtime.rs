//! Finds a Node.js by path or version, asks it for its version, and finds an npm, its own or any other.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use super::error::NodeError;
use crate::server::find_program;

/// `20.20.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = ();

    /// With or without a `v`, and without anything behind the third number.
    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Vec<u32> = numbers(text).ok_or(())?;
        let [major, minor, patch] = numbers[..] else { return Err(()) };
        Ok(Self { major, minor, patch })
    }
}

/// One Node.js of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    pub path: PathBuf,
    pub version: Version,
}

impl Runtime {
    /// The `node` in PATH.
    pub fn of_path() -> Result<Self, NodeError> {
        let path = find_program("node").map_err(|_| NodeError::NoNode { wanted: None })?;
        Self::at(&path)
    }

    /// As the user specifies it: a path, or a version such as `22` or `20.20.2` that is installed somewhere.
    pub fn find(given: &str) -> Result<Self, NodeError> {
        let Some(wanted) = numbers(given) else { return Self::at(Path::new(given)) };
        let mut found: Vec<Self> = candidates()
            .iter()
            .filter_map(|path| Self::at(path).ok())
            .filter(|runtime| {
                let Version { major, minor, patch } = runtime.version;
                [major, minor, patch].starts_with(&wanted)
            })
            .collect();
        // The newest of those that match; of two equal ones, the first in PATH.
        found.sort_by_key(|runtime| std::cmp::Reverse(runtime.version));
        found.into_iter().next().ok_or_else(|| NodeError::NoNode { wanted: Some(given.to_owned()) })
    }

    fn at(path: &Path) -> Result<Self, NodeError> {
        let error = |why: String| NodeError::NotNode { path: path.to_owned(), why };
        // Relative paths would be resolved in the workload's folder.
        let absolute = std::path::absolute(path).map_err(|why| error(why.to_string()))?;
        let output = Command::new(&absolute)
            .arg("--version")
            .env_remove("NODE_OPTIONS")
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .map_err(|why| error(why.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.trim().parse().map_err(|()| {
            error(format!("`--version` answers {:?}", text.trim().chars().take(40).collect::<String>()))
        })?;
        Ok(Self { path: absolute, version })
    }
}

/// npm, as a program for `node` to run.
pub(super) fn npm() -> Result<PathBuf, NodeError> {
    find_program("npm").map_err(|_| NodeError::NoNpm)
}

/// One to three numbers separated by dots, optionally after a `v`.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let numbers: Vec<u32> = text.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    (1..=3).contains(&numbers.len()).then_some(numbers)
}

/// Where PATH and the usual version managers keep releases.
fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> =
        env::split_paths(&path).map(|directory| directory.join("node")).collect();
    let home = env::home_dir().unwrap_or_default();
    let nvm = env::var_os("NVM_DIR").map_or_else(|| home.join(".nvm"), PathBuf::from);
    let managers = [
        (nvm.join("versions/node"), "bin/node"),
        (home.join(".local/share/fnm/node-versions"), "installation/bin/node"),
        (home.join(".volta/tools/image/node"), "bin/node"),
        (home.join(".asdf/installs/nodejs"), "bin/node"),
        (home.join(".local/share/mise/installs/node"), "bin/node"),
        (PathBuf::from("/usr/local/n/versions/node"), "bin/node"),
    ];
    for (directory, program) in managers {
        let releases = std::fs::read_dir(directory).into_iter().flatten().flatten();
        candidates.extend(releases.map(|release| release.path().join(program)));
    }
    candidates.retain(|path| path.is_file());
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_paths() {
        assert_eq!(numbers("22"), Some(vec![22]));
        assert_eq!(numbers("v20.20.2"), Some(vec![20, 20, 2]));
        for path in ["/usr/bin/node", "./node", "node", "20.x", "1.2.3.4", ""] {
            assert_eq!(numbers(path), None, "{path}");
        }
    }

    #[test]
    fn the_answer_of_node_is_a_version() {
        assert_eq!("v24.21.0".parse(), Ok(Version { major: 24, minor: 21, patch: 0 }));
        assert_eq!("24.21".parse::<Version>(), Err(()));
        assert_eq!("v24.0.0-nightly2025".parse::<Version>(), Err(()));
    }

    #[test]
    fn what_is_not_node_is_named_with_its_answer() {
        let error = Runtime::find("/bin/echo").unwrap_err();
        assert!(
            error.to_string().contains("/bin/echo") && error.to_string().contains("--version"),
            "{error}"
        );
        let error = Runtime::find("99.1").unwrap_err();
        assert!(error.to_string().contains("99.1"), "{error}");
        assert!(!error.fix().is_empty());
    }
}
