//! The drop-in that accelerates a service: variables and nothing else. systemd has a folder of them for each unit; OpenRC one for
//! all services, whose files are parts of a shell's script.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::UnitError;

/// Behind most drop-ins, so that its variables win over theirs, and before what people number 90 and above.
const FILE: &str = "50-hasten.conf";
/// Of the file for OpenRC, the name before and behind that of the service.
const PREFIX: &str = "50-hasten-";
const SUFFIX: &str = ".conf";
/// In it, before each variable.
const EXPORT: &str = "    export ";
/// The first line: by this we know our own.
const MARK: &str = "# Written by `hasten enable`";

/// Whose rules it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Systemd,
    OpenRc,
}

/// The drop-in of one unit, whether it is there or not.
#[derive(Clone, Debug)]
pub struct DropIn {
    style: Style,
    path: PathBuf,
    unit: String,
}

/// What is in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// It is ours.
    Ours,
    /// Somebody else's file.
    Foreign,
}

impl DropIn {
    pub(crate) fn of(style: Style, folder: &Path, unit: &str) -> Self {
        let path = match style {
            Style::Systemd => folder.join(format!("{unit}.d")).join(FILE),
            Style::OpenRc => folder.join(format!("{PREFIX}{unit}{SUFFIX}")),
        };
        Self { style, path, unit: unit.to_owned() }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text that sets these variables.
    #[must_use]
    pub fn text(&self, variables: &[(String, OsString)]) -> String {
        let short = self.unit.strip_suffix(".service").unwrap_or(&self.unit);
        let head = format!("{MARK}; `hasten disable {short}` removes it.\n");
        match self.style {
            Style::Systemd => {
                let line =
                    |(name, value): &(String, OsString)| format!("Environment={}\n", quoted(name, value));
                format!("{head}[Service]\n{}", variables.iter().map(line).collect::<String>())
            }
            Style::OpenRc => {
                let line =
                    |(name, value): &(String, OsString)| format!("{EXPORT}{name}={}\n", in_shell(value));
                let lines: String = variables.iter().map(line).collect();
                format!("{head}if [ \"$RC_SVCNAME\" = {short} ]; then\n{lines}    :\nfi\n")
            }
        }
    }

    /// The names of the variables that it sets.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let lines = text.lines().filter(|_| text.starts_with(MARK));
        let start = match self.style {
            Style::Systemd => "Environment=",
            Style::OpenRc => EXPORT,
        };
        let assignments = lines.filter_map(|line| line.strip_prefix(start));
        let name = |assignment: &str| Some(assignment.trim_start_matches('"').split_once('=')?.0.to_owned());
        assignments.filter_map(name).collect()
    }

    pub fn found(&self) -> Result<Found, UnitError> {
        match fs::read_to_string(&self.path) {
            Ok(text) if text.starts_with(MARK) => Ok(Found::Ours),
            Ok(_) => Ok(Found::Foreign),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(why) => Err(UnitError::Read { path: self.path.clone(), why }),
        }
    }

    /// Writes it, whole or not at all; false if it was there already, word for word.
    pub fn write(&self, text: &str) -> Result<bool, UnitError> {
        match self.found()? {
            Found::Foreign => return Err(UnitError::Foreign { path: self.path.clone() }),
            Found::Ours if fs::read_to_string(&self.path).is_ok_and(|present| present == text) => {
                return Ok(false);
            }
            Found::Ours | Found::Nothing => {}
        }
        self.replace(text).map_err(|why| UnitError::Write { path: self.path.clone(), why })?;
        Ok(true)
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Both read only names that end in .conf.
        let part = folder.join(format!(".{FILE}.part"));
        let mut file = fs::File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(part, &self.path)
    }

    /// Removes it, and its folder if nothing else is in there; false if there was none.
    pub fn remove(&self) -> Result<bool, UnitError> {
        match self.found()? {
            Found::Nothing => return Ok(false),
            Found::Foreign => return Err(UnitError::Foreign { path: self.path.clone() }),
            Found::Ours => {}
        }
        fs::remove_file(&self.path).map_err(|why| UnitError::Write { path: self.path.clone(), why })?;
        if self.style == Style::Systemd {
            // It stays if it has other files, which is no failure.
            let _ = self.path.parent().map(fs::remove_dir);
        }
        Ok(true)
    }

    /// The units that have one in this folder.
    pub(crate) fn units(style: Style, folder: &Path) -> Vec<String> {
        let unit = |name: &str| match style {
            Style::Systemd => name.strip_suffix(".d").map(str::to_owned),
            Style::OpenRc => Some(name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned()),
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| unit(entry.file_name().to_str()?));
        let is_ours =
            |unit: &String| Self::of(style, folder, unit).found().is_ok_and(|found| found == Found::Ours);
        let mut names: Vec<_> = names.filter(is_ours).collect();
        names.sort();
        names
    }
}

/// An assignment in systemd's quotes where it needs them; a per cent sign would begin a specifier.
pub(crate) fn quoted(name: &str, value: &OsStr) -> String {
    let assignment = format!("{name}={}", value.to_string_lossy()).replace('%', "%%");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=/.:,_-+@%".contains(c);
    if assignment.chars().all(is_plain) {
        return assignment;
    }
    format!("\"{}\"", assignment.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A value as a shell has it.
fn in_shell(value: &OsStr) -> String {
    let value = value.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=/.:,_-+@%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.into_owned();
    }
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    fn drop_in() -> (tempfile::TempDir, DropIn) {
        let folder = tempfile::tempdir().unwrap();
        let drop_in = DropIn::of(Style::Systemd, folder.path(), "nginx.service");
        (folder, drop_in)
    }

    #[test]
    fn it_is_written_once_and_removed_with_its_folder() {
        let (folder, drop_in) = drop_in();
        let text = drop_in.text(&[("LD_PRELOAD".into(), "/usr/lib/hasten/libhasten.so".into())]);
        assert!(text.ends_with("[Service]\nEnvironment=LD_PRELOAD=/usr/lib/hasten/libhasten.so\n"), "{text}");
        assert!(drop_in.write(&text).unwrap() && !drop_in.write(&text).unwrap());
        assert_eq!(DropIn::units(Style::Systemd, folder.path()), ["nginx.service"]);
        assert_eq!(drop_in.names(), ["LD_PRELOAD"]);
        assert!(drop_in.remove().unwrap() && !drop_in.remove().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn other_drop_ins_stay() {
        let (folder, drop_in) = drop_in();
        drop_in.write(&drop_in.text(&[])).unwrap();
        let other = folder.path().join("nginx.service.d/limits.conf");
        fs::write(&other, "[Service]\nLimitNOFILE=9\n").unwrap();
        assert!(drop_in.remove().unwrap() && other.exists());
    }

    #[test]
    fn the_file_of_somebody_else_is_left_alone() {
        let (folder, drop_in) = drop_in();
        fs::create_dir_all(drop_in.path().parent().unwrap()).unwrap();
        fs::write(drop_in.path(), "[Service]\n").unwrap();
        assert!(matches!(drop_in.write("x"), Err(UnitError::Foreign { .. })));
        assert!(matches!(drop_in.remove(), Err(UnitError::Foreign { .. })));
        assert_eq!(fs::read_to_string(drop_in.path()).unwrap(), "[Service]\n");
        assert!(DropIn::units(Style::Systemd, folder.path()).is_empty());
    }

    /// For each service that OpenRC starts, a shell reads all files of the folder.
    #[test]
    fn that_of_openrc_is_for_its_service_only() {
        let folder = tempfile::tempdir().unwrap();
        let drop_in = DropIn::of(Style::OpenRc, folder.path(), "nginx");
        let value = "/a.so:/b's $HOME \"x\"";
        assert!(drop_in.write(&drop_in.text(&[("LD_PRELOAD".into(), value.into())])).unwrap());
        assert_eq!(DropIn::units(Style::OpenRc, folder.path()), ["nginx"]);
        assert_eq!(drop_in.names(), ["LD_PRELOAD"]);
        for (service, expected) in [("nginx", value), ("nginx.other", "none")] {
            let script = ". \"$FILE\" || exit 7; unset RC_SVCNAME; printf %s \"${LD_PRELOAD:-none}\"";
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", script]).env("RC_SVCNAME", service).env("FILE", drop_in.path());
            let output = shell.env_remove("LD_PRELOAD").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{service}");
        }
        assert!(drop_in.remove().unwrap() && folder.path().is_dir());
    }

    #[test]
    fn values_come_back_as_they_were() {
        for value in ["/a.so:/b.so", "--require /a b.js", "quote \" and \\ here", "50%"] {
            let written = quoted("NAME", OsStr::new(value));
            let read = words::split(&written.replace("%%", "%")).unwrap();
            assert_eq!(read, [format!("NAME={value}")], "{written}");
        }
    }
}
