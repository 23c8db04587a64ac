//! The machine to change; in tests, a folder and a script.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hasten_units::Systemd;

#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
    systemd: Systemd,
}

impl Default for System {
    fn default() -> Self {
        Self { root: PathBuf::from("/"), systemd: Systemd::by(Path::new("systemctl")) }
    }
}

impl System {
    /// Another machine.
    #[must_use]
    pub fn at(root: &Path, systemctl: &Path) -> Self {
        Self { root: root.to_owned(), systemd: Systemd::by(systemctl) }
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
        self.systemd.is_active(unit).map_err(io::Error::other)
    }

    pub fn stop_unit(&self, unit: &str) -> io::Result<()> {
        self.systemd.stop(unit).map_err(io::Error::other)
    }

    pub fn start_unit(&self, unit: &str) -> io::Result<()> {
        self.systemd.start(unit).map_err(io::Error::other)
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
