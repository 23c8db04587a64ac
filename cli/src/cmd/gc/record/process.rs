//! What /proc says about a process without a control channel, or without one yet.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::RecordError;
use super::runtime;

/// The plugin opens its channel a second after the start; on a busy machine it takes longer.
const YOUNG_SECONDS: f64 = 3.0;

pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The environment that a process was started with; `None` if it may not be read.
pub(super) fn environment(pid: u32) -> Option<HashMap<OsString, OsString>> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables = bytes.split(|&byte| byte == 0).filter_map(|variable| {
        let equals = variable.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&variable[..equals], &variable[equals + 1..]);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    });
    Some(variables.collect())
}

/// Why this process has no socket.
pub(super) fn why_not(pid: u32) -> RecordError {
    let Ok(metadata) = fs::metadata(format!("/proc/{pid}")) else {
        return RecordError::NoProcess(pid);
    };
    if metadata.uid() != own_user() {
        return RecordError::OtherUser { pid, uid: metadata.uid() };
    }
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    if !is_node(&program) {
        let program = program.file_name().unwrap_or(OsStr::new("something else"));
        return RecordError::NotNode { pid, program: program.display().to_string() };
    }
    match plugin(pid) {
        Plugin::Absent => RecordError::NoPlugin(pid),
        Plugin::Off => RecordError::SwitchedOff(pid),
        Plugin::Present if age(pid).is_some_and(|age| age < YOUNG_SECONDS) => RecordError::TooYoung(pid),
        Plugin::Present => {
            let folder = runtime::home(pid);
            match runtime::obstacle(&folder) {
                Some(why) => RecordError::NoChannel { pid, folder, why },
                None => RecordError::Loading(pid),
            }
        }
    }
}

/// Processes of this user with the plugin, whose channels would be where we look for them.
pub(super) fn with_plugin() -> Vec<u32> {
    let home = runtime::own_home();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = numbers
        .filter(|&pid| {
            fs::metadata(format!("/proc/{pid}")).is_ok_and(|metadata| metadata.uid() == own_user())
        })
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| is_node(&program)))
        .filter(|&pid| matches!(plugin(pid), Plugin::Present) && runtime::home(pid) == home)
        .collect();
    found.sort_unstable();
    found
}

/// Distributions call it nodejs, version managers node-22.
fn is_node(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.as_bytes().starts_with(b"node"))
}

enum Plugin {
    Absent,
    Off,
    Present,
}

/// Whether the plugin was requested, in the environment or on the command line.
fn plugin(pid: u32) -> Plugin {
    let environment = environment(pid).unwrap_or_default();
    let variable = |name: &str| environment.get(OsStr::new(name)).map(|value| value.to_string_lossy());
    let options = variable("NODE_OPTIONS").unwrap_or_default().into_owned();
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).into_owned();
    let disabled = variable("HASTEN_DISABLE").unwrap_or_default().into_owned();
    let is_off = hasten_plan::disables(&disabled, "node");
    match () {
        () if ![options, command].iter().any(|text| text.contains("register")) => Plugin::Absent,
        () if is_off || variable("HASTEN_NODE_GC").as_deref() == Some("0") => Plugin::Off,
        () => Plugin::Present,
    }
}

/// Seconds since the process was started.
fn age(pid: u32) -> Option<f64> {
    /// What the kernel reports to programs, whatever it uses internally.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let start: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(uptime - start / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_of_this_process_what_it_is() {
        let pid = std::process::id();
        assert!(age(pid).is_some_and(|age| age >= 0.0));
        assert!(environment(pid).is_some_and(|environment| environment.contains_key(OsStr::new("PATH"))));
        assert!(matches!(why_not(pid), RecordError::NotNode { .. }));
        assert!(matches!(why_not(u32::MAX / 2), RecordError::NoProcess(_)));
    }
}
