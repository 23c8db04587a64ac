//! The machine to change; in tests, a folder and a script.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
    systemctl: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self { root: PathBuf::from("/"), systemctl: PathBuf::from("systemctl") }
    }
}

impl System {
    /// Another machine.
    #[must_use]
    pub fn at(root: &Path, systemctl: &Path) -> Self {
        Self { root: root.to_owned(), systemctl: systemctl.to_owned() }
    }

    /// The contents of a kernel file; for a choice, the selected word: `always [madvise] never`.
    pub fn setting(&self, path: &str) -> io::Result<String> {
        let text = fs::read_to_string(self.file(path))?;
        let chosen =
            text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
        Ok(chosen.unwrap_or(&text).trim().to_owned())
    }

    pub fn set(&self, path: &str, value: &str) -> io::Result<()> {
        fs::write(self.file(path), value)
    }

    /// Whether systemd runs a unit; false without systemd.
    pub fn is_active(&self, unit: &str) -> io::Result<bool> {
        match self.systemctl(&["is-active", "--quiet", unit]) {
            Ok(output) => Ok(output.status.success()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub fn stop_unit(&self, unit: &str) -> io::Result<()> {
        self.succeed(&["stop", unit])
    }

    pub fn start_unit(&self, unit: &str) -> io::Result<()> {
        self.succeed(&["start", unit])
    }

    fn succeed(&self, arguments: &[&str]) -> io::Result<()> {
        let output = self.systemctl(arguments)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(io::Error::other(format!(
            "`systemctl {}` ends with {}: {said}",
            arguments.join(" "),
            output.status
        )))
    }

    fn systemctl(&self, arguments: &[&str]) -> io::Result<Output> {
        Command::new(&self.systemctl).args(arguments).stdin(Stdio::null()).output()
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
