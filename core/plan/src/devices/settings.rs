//! Device settings as they are written: what is accepted, and what is wrong with the rest.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hasten_names::Engine;

use super::engines;
use crate::suggestion;

/// `off`, `auto`, or the engines that may be used.
pub const SWITCH: &str = "HASTEN_DEVICES";
/// How long one operation may take, in milliseconds.
pub const TIMEOUT: &str = "HASTEN_DEVICE_TIMEOUT_MS";
/// The initial and the longest delay between a fault and the next attempt to use a device.
pub const RETRY: &str = "HASTEN_DEVICE_RETRY_MS";
/// A folder with the device libraries, in place of the loader's search path.
pub const LIBRARIES: &str = "HASTEN_DEVICE_LIBRARIES";

/// The limit of the libraries (`preload/gzip/src/config.rs`).
const MOST_TIMEOUT_MS: u64 = 10_000;
const MOST_RETRY_MS: u64 = 3_600_000;

/// Engines to which no accelerator hands work, so that naming them would have no effect.
const IDLE: [&str; 2] = [Engine::Dml.as_str(), Engine::Dlb.as_str()];

/// What is wrong, and what to do.
type Complaint = (String, String);

/// Which devices are to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Off,
    /// Those that are found and worth using.
    Auto,
    /// These, whether or not they are worth using.
    Only(Vec<String>),
}

impl Asked {
    /// From a value that has been validated.
    pub(super) fn from_variable(value: &str) -> Self {
        match value.trim() {
            "" | "off" | "0" => Self::Off,
            "auto" => Self::Auto,
            list => Self::Only(names(list).map(str::to_owned).collect()),
        }
    }

    pub(super) fn names(&self, engine: &str) -> bool {
        matches!(self, Self::Only(named) if named.iter().any(|name| name == engine))
    }

    pub(super) fn as_variable(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Auto => "auto".to_owned(),
            Self::Only(names) => names.join(","),
        }
    }
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

pub(crate) fn check_switch(value: &str) -> Result<(), Complaint> {
    if matches!(value.trim(), "" | "off" | "0" | "auto") {
        return Ok(());
    }
    if names(value).next().is_none() {
        return Err((format!("`{value}` names no engine"), "write off to use no device".to_owned()));
    }
    names(value).try_for_each(check_engine)
}

/// A name in a list.
pub(crate) fn check_engine(name: &str) -> Result<(), Complaint> {
    let known: Vec<_> = engines().map(|(entry, _)| entry.engine.as_str()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    if IDLE.contains(&name) {
        let problem = format!("no accelerator hands work to `{name}`");
        return Err((problem, format!("use one of {}", known.join(", "))));
    }
    if matches!(name, "off" | "auto") {
        let problem = format!("`{name}` stands among engines");
        return Err((problem, format!("write either {name} alone, or names of engines")));
    }
    let valid: Vec<_> = known.into_iter().chain(["auto", "off"]).collect();
    Err((format!("unknown engine `{name}`"), suggestion(name, &valid)))
}

pub(crate) fn check_timeout(value: &str) -> Result<(), Complaint> {
    if value.trim().is_empty() || value.trim().parse().ok().and_then(timeout).is_some() {
        return Ok(());
    }
    let problem = format!("`{value}` is no number of milliseconds from 1 to {MOST_TIMEOUT_MS}");
    Err((problem, "write such a number, or unset it for the default".to_owned()))
}

pub(crate) fn check_retry(value: &str) -> Result<(), Complaint> {
    let range = value.trim().split_once('-').and_then(|(first, longest)| {
        let number = |text: &str| text.trim().parse().ok();
        retry(number(first)?, number(longest)?)
    });
    if value.trim().is_empty() || range.is_some() {
        return Ok(());
    }
    let problem = format!(
        "`{value}` is not FIRST-LONGEST: two numbers of milliseconds from 1 to {MOST_RETRY_MS}, the smaller one first"
    );
    Err((problem, "write such as 250-30000, or unset it for that default".to_owned()))
}

/// The time-out, if the libraries accept it.
pub(crate) fn timeout(ms: u64) -> Option<u64> {
    (1..=MOST_TIMEOUT_MS).contains(&ms).then_some(ms)
}

/// The pair of intervals, if the libraries accept it.
pub(crate) fn retry(first: u64, longest: u64) -> Option<(u64, u64)> {
    let is_good = first >= 1 && first <= longest && longest <= MOST_RETRY_MS;
    is_good.then_some((first, longest))
}

pub(crate) fn check_libraries(value: &str) -> Result<(), Complaint> {
    if value.is_empty() {
        return Ok(());
    }
    if !Path::new(value).is_absolute() {
        let problem =
            format!("`{value}` is not an absolute path, and servers change their working directory");
        return Err((problem, "write the whole path, from /".to_owned()));
    }
    library_folder(Path::new(value)).map(|_| ())
}

/// The folder with links resolved, if it exists and nobody else can put a library there.
pub(crate) fn library_folder(path: &Path) -> Result<PathBuf, Complaint> {
    let shown = path.display();
    let fix = "name a folder with the devices' libraries, or unset it to use the system's".to_owned();
    let real = path.canonicalize().map_err(|error| (format!("cannot find {shown}: {error}"), fix.clone()))?;
    if !real.is_dir() {
        return Err((format!("{shown} is not a folder"), fix));
    }
    real.ancestors().try_for_each(|folder| nobody_else_writes(folder, folder == real))?;
    Ok(real)
}

/// Anyone who can put a file where libraries are loaded from can run code in the server.
fn nobody_else_writes(folder: &Path, is_the_one: bool) -> Result<(), Complaint> {
    const WRITABLE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let shown = folder.display();
    let found = std::fs::metadata(folder)
        .map_err(|error| (format!("cannot look at {shown}: {error}"), "make it readable".to_owned()))?;
    let us = std::fs::metadata("/proc/self").map(|us| us.uid()).unwrap_or(0);
    if found.uid() != 0 && found.uid() != us {
        let problem =
            format!("{shown} belongs to another user, who could put code of theirs into the server");
        return Err((problem, format!("chown root {shown}, or use another folder")));
    }
    // In a sticky parent folder, others cannot rename anything of ours.
    let is_writable = found.mode() & WRITABLE != 0 && (is_the_one || found.mode() & STICKY == 0);
    if is_writable {
        let mode = found.mode() & 0o7777;
        let problem = format!(
            "others may write to {shown} (mode {mode:04o}), and so put code of theirs into the server"
        );
        return Err((problem, format!("chmod go-w {shown}")));
    }
    Ok(())
}
