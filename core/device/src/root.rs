//! Files of `/sys` and `/proc` below a root that tests can choose.
//!
//! A missing or unreadable file is a fact like any other, so nothing here fails. Nor is anything trusted: reads are
//! bounded, whatever the file contains.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// More than any file read from `/proc`; the largest is `cpuinfo`.
const LONGEST: u64 = 8 << 20;

/// More entries than any sysfs folder that is read.
const MOST_NAMES: usize = 65_536;

/// Sysfs attributes meant for people are one or a few words.
const LONGEST_WORD: usize = 64;

#[derive(Debug, Clone)]
pub struct Root(PathBuf);

/// A tree to read instead of this machine's, for tests.
pub const VARIABLE: &str = "HASTEN_SYSFS_ROOT";

impl Root {
    /// This machine, or what [`VARIABLE`] names.
    pub fn from_environment() -> Self {
        let root = std::env::var_os(VARIABLE).filter(|root| !root.is_empty());
        Self(root.map_or_else(|| PathBuf::from("/"), PathBuf::from))
    }

    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The file's text without surrounding white space.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        // A pipe in somebody's hand-made tree must not block us.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(path)).ok()?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned())
    }

    /// A short value for people: the first line, without control characters. `None` if there is nothing to read.
    pub fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let word = printable(text.lines().next()?);
        (!word.is_empty()).then_some(word)
    }

    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A number written `0x8086`.
    pub fn hex(&self, path: impl AsRef<Path>) -> Option<u64> {
        u64::from_str_radix(self.text(path)?.strip_prefix("0x")?, 16).ok()
    }

    /// The last component of a symbolic link's target: how sysfs names a driver.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(printable(&target.file_name()?.to_string_lossy()))
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.take(MOST_NAMES).collect();
        names.sort();
        names
    }
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST_WORD).collect()
}
