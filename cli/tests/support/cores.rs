//! Core files of programs for Node.js, and what `hasten core` tells of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "nodes.rs"]
mod nodes;

pub(crate) use nodes::{here, node};

const HASTEN: &str = env!("CARGO_BIN_EXE_hasten");

/// Runs a program with options of Node.js until a signal ends it, and returns the core file; nothing where the system puts those
/// elsewhere.
pub(crate) fn core_of(
    release: &str,
    options: &[&str],
    program: &str,
    signal: i32,
    folder: &Path,
) -> Option<PathBuf> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
    if pattern.starts_with(['|', '/']) {
        println!("core files go elsewhere: {pattern}");
        return None;
    }
    fs::write(folder.join("app.js"), program).unwrap();
    let script = "ulimit -c unlimited && exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(node(release)).args(options).arg("app.js").current_dir(folder);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.signal(), Some(signal), "{status}");
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core")))
}

/// What `hasten core` prints.
pub(crate) fn hasten(arguments: &[&OsStr]) -> Vec<u8> {
    let output = Command::new(HASTEN).arg("core").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
