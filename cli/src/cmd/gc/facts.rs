//! Facts needed for advice besides the traces: memory, and the available releases of Node.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hasten_probe::Probe;
use hasten_v8::advice::Facts;
use hasten_v8::summary::Summary;

/// A program that takes longer to state its version is ignored.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most programs that are asked.
const PROGRAMS: usize = 4;

pub(super) fn of(traces: &[Summary], memory_limit: Option<Size>, node: Option<String>) -> Facts {
    // What the recorder saw in the process is more accurate than this host.
    let recorded = traces.iter().flat_map(|trace| &trace.isolates).filter_map(|heap| heap.process.as_ref());
    let recorded_limit = recorded.clone().find_map(|process| process.memory_limit);
    Facts {
        memory_limit_bytes: memory_limit
            .map(|size| size.0)
            .or(recorded_limit)
            .or_else(|| Probe::new().memory_limit_bytes()),
        node_version: node.or_else(|| recorded.clone().find_map(|process| process.node.clone())),
        installed: installed(),
        semi_space_max: recorded.clone().find_map(|process| process.semi_space_max),
    }
}

/// A number of bytes in the notation of systemd and Docker: 512M, 1.5G, 2GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no size; write 512M or 2G");
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match lower[digits.len()..].trim_end_matches('b').trim_end_matches('i') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return Err(wrong()),
        };
        let number: f64 = digits.trim_end().parse().map_err(|_| wrong())?;
        let bytes = number * (1_u64 << shift) as f64;
        let smallest = f64::from(1 << 20);
        // A range check also rejects NaN.
        if (smallest..=2_f64.powi(50)).contains(&bytes) {
            Ok(Self(bytes as u64))
        } else {
            Err(format!("`{text}` is not between 1M and 1024T"))
        }
    }
}

/// `20`, `v20.20.2`: without the v.
pub(super) fn parse_version(text: &str) -> Result<String, String> {
    let version = text.strip_prefix('v').unwrap_or(text);
    let parts: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
    match parts.len() {
        1..=3 if parts.iter().all(Result::is_ok) => Ok(version.to_owned()),
        _ => Err(format!("`{text}` is no version of Node; write 20 or 20.20.2")),
    }
}

/// Releases of Node on this host: in PATH, and where the common version managers keep theirs.
fn installed() -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let programs = programs.flat_map(|folder| ["node", "nodejs"].map(|name| folder.join(name)));
    let programs: BTreeSet<PathBuf> = programs.filter_map(|program| program.canonicalize().ok()).collect();
    let mut versions: BTreeSet<String> = programs.iter().take(PROGRAMS).filter_map(|one| ask(one)).collect();
    versions.extend(managed().iter().flat_map(|folder| versions_in(folder)));
    versions.into_iter().collect()
}

/// A program's answer to `--version`.
fn ask(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    // Neither the user's hooks nor ours belong in there.
    command.arg("--version").env_remove("NODE_OPTIONS").env_remove("LD_PRELOAD");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let started = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(2));
    }
    let text = String::from_utf8(child.wait_with_output().ok()?.stdout).ok()?;
    parse_version(text.trim()).ok()
}

/// Folders whose entries are named after versions: nvm, n, volta, fnm.
fn managed() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let mut folders = vec![PathBuf::from("/usr/local/n/versions/node")];
    if let Some(home) = home {
        for folder in [".nvm/versions/node", ".volta/tools/image/node", ".local/share/fnm/node-versions"] {
            folders.push(home.join(folder));
        }
    }
    folders
}

fn versions_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| parse_version(entry.file_name().to_str()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_as_people_write_it() {
        let mib = 1 << 20;
        for (text, bytes) in [
            ("512M", 512 * mib),
            ("512MiB", 512 * mib),
            ("1.5g", 1536 * mib),
            ("2Gi", 2048 * mib),
            ("1048576", mib),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for bad in ["", "M", "1X", "-1G", "0", "12", "NaN", "inf", "9999T", "1 0M"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_version_is_one_to_three_numbers() {
        assert_eq!(parse_version("v20.20.2"), Ok("20.20.2".to_owned()));
        assert_eq!(parse_version("24"), Ok("24".to_owned()));
        for bad in ["", "v", "lts", "20.x", "1.2.3.4", "-20"] {
            assert!(parse_version(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_found_by_the_names_of_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["v20.20.2", "24.1.0", "alias"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut found = versions_in(folder.path());
        found.sort();
        assert_eq!(found, ["20.20.2", "24.1.0"]);
        assert_eq!(versions_in(&folder.path().join("none")), [""; 0]);
    }

    #[test]
    fn a_program_that_hangs_or_babbles_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ask(&folder.path().join("none")), None);
        assert_eq!(ask(Path::new("/bin/true")), None);
    }
}
