//! systemd itself, by way of `systemctl`.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::drop_in::{DropIn, Style};
use crate::error::UnitError;
use crate::manager::{Copies, Manager, Phrases};
use crate::properties::Properties;
use crate::trial::{Sandbox, TrialError};
use crate::unit::{ASKED, Unit};

/// Where an administrator's drop-ins are.
const ADMINISTRATOR: &str = "/etc/systemd/system";
/// There while systemd is the system's manager (sd_booted(3)).
pub(crate) const BOOTED: &str = "/run/systemd/system";

#[derive(Clone, Debug)]
pub struct Systemd {
    systemctl: PathBuf,
    drop_ins: PathBuf,
}

impl Systemd {
    /// The one that manages this host.
    pub fn of_host() -> Result<Self, UnitError> {
        if !Path::new(BOOTED).is_dir() {
            return Err(UnitError::NoManager);
        }
        Ok(Self { systemctl: "systemctl".into(), drop_ins: ADMINISTRATOR.into() })
    }

    /// Through another program, which stands in for `systemctl`; whether systemd runs here is not asked.
    #[must_use]
    pub fn by(systemctl: &Path) -> Self {
        Self { systemctl: systemctl.to_owned(), drop_ins: ADMINISTRATOR.into() }
    }

    /// Whether systemd runs a unit; false where there is no systemctl.
    pub fn is_active(&self, unit: &str) -> Result<bool, UnitError> {
        match self.call(&["is-active", "--quiet", "--", unit]) {
            Ok(output) => Ok(output.status.success()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(UnitError::Unavailable { program: self.systemctl.clone(), why }),
        }
    }

    /// The service of that name, with or without `.service`; an alias is resolved.
    pub fn unit(&self, name: &str) -> Result<Unit, UnitError> {
        let name = full_name(name)?;
        let [unit] = <[Unit; 1]>::try_from(self.show(&[&name])?.into_iter().collect::<Result<Vec<_>, _>>()?)
            .map_err(|_| UnitError::NotFound { name })?;
        Ok(unit)
    }

    /// Every service that systemd has loaded, and those with a drop-in of ours.
    pub fn services(&self) -> Result<Vec<Unit>, UnitError> {
        let mut units: Vec<Unit> = self.show(&["*.service"])?.into_iter().flatten().collect();
        for name in self.enabled() {
            if !units.iter().any(|unit| unit.name == name) {
                units.extend(self.show(&[&name])?.into_iter().flatten());
            }
        }
        units.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(units)
    }

    /// The units with a drop-in of ours, whether or not they still exist.
    #[must_use]
    pub fn enabled(&self) -> Vec<String> {
        DropIn::units(Style::Systemd, &self.drop_ins)
    }

    /// The drop-in of a unit, which may be gone.
    #[must_use]
    pub fn drop_in(&self, unit: &str) -> DropIn {
        DropIn::of(Style::Systemd, &self.drop_ins, unit)
    }

    /// Reads all unit files again.
    pub fn reload(&self) -> Result<(), UnitError> {
        self.succeed(&["daemon-reload"]).map(drop)
    }

    /// Restarts it, and waits until systemd says that it is up.
    pub fn restart(&self, unit: &str) -> Result<(), UnitError> {
        self.succeed(&["restart", "--", unit]).map(drop)
    }

    pub fn start(&self, unit: &str) -> Result<(), UnitError> {
        self.succeed(&["start", "--", unit]).map(drop)
    }

    pub fn stop(&self, unit: &str) -> Result<(), UnitError> {
        self.succeed(&["stop", "--", unit]).map(drop)
    }

    /// Its files, one behind the other.
    pub(crate) fn text(&self, unit: &Unit) -> Result<String, UnitError> {
        let output = self.succeed(&["cat", "--no-pager", "--", &unit.name])?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Without this, a unit that was started too often is not started again. One that never was has nothing to forgive.
    pub(crate) fn forgive(&self, unit: &str) -> Result<(), UnitError> {
        match self.succeed(&["reset-failed", "--", unit]) {
            Ok(_) | Err(UnitError::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A line in the journal of a unit. Where there is no journal, nobody reads it.
    pub fn note(&self, unit: &str, line: &str) {
        const JOURNAL: &str = "/run/systemd/journal/socket";
        let entry =
            format!("MESSAGE={line}\nPRIORITY=4\nSYSLOG_IDENTIFIER=hasten\nOBJECT_SYSTEMD_UNIT={unit}\n");
        let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(entry.as_bytes(), JOURNAL));
    }

    /// The last lines that it wrote to the journal; empty if they cannot be had.
    #[must_use]
    pub fn last_words(&self, unit: &str, lines: usize) -> Vec<String> {
        let count = format!("--lines={lines}");
        let journal = Command::new("journalctl")
            .args(["--unit", unit, &count, "--no-pager", "--output=cat", "--quiet"])
            .stdin(Stdio::null())
            .output();
        let text = journal.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    fn show(&self, names: &[&str]) -> Result<Vec<Result<Unit, UnitError>>, UnitError> {
        let property = format!("--property={}", ASKED.join(","));
        let mut arguments = vec!["show", "--no-pager", &property, "--"];
        arguments.extend(names);
        let output = self.succeed(&arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Properties::parse_all(&text).into_iter().map(Unit::new).collect())
    }

    fn succeed(&self, arguments: &[&str]) -> Result<Output, UnitError> {
        let output = self
            .call(arguments)
            .map_err(|why| UnitError::Unavailable { program: self.systemctl.clone(), why })?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr)
            .trim()
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches('.')
            .to_owned();
        let words = arguments.iter().filter(|word| !word.starts_with("--")).copied();
        let command = format!("systemctl {}", words.collect::<Vec<_>>().join(" "));
        Err(UnitError::Refused { command, said })
    }

    fn call(&self, arguments: &[&str]) -> io::Result<Output> {
        Command::new(&self.systemctl).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output()
    }
}

impl Manager for Systemd {
    fn unit(&self, name: &str) -> Result<Unit, UnitError> {
        self.unit(name)
    }

    fn services(&self) -> Result<Vec<Unit>, UnitError> {
        self.services()
    }

    fn enabled(&self) -> Vec<String> {
        self.enabled()
    }

    fn drop_in(&self, unit: &str) -> DropIn {
        self.drop_in(unit)
    }

    fn reload(&self) -> Result<(), UnitError> {
        self.reload()
    }

    fn restart(&self, unit: &str) -> Result<(), UnitError> {
        // A service that was restarted often is not started again otherwise.
        self.forgive(unit)?;
        self.restart(unit)
    }

    fn note(&self, unit: &str, line: &str) {
        self.note(unit, line);
    }

    fn last_words(&self, unit: &str, lines: usize) -> Vec<String> {
        self.last_words(unit, lines)
    }

    fn copies<'a>(&'a self, unit: &'a Unit) -> Result<Box<dyn Copies + 'a>, TrialError> {
        Ok(Box::new(Sandbox::new(self, unit)?))
    }

    fn phrases(&self) -> &'static Phrases {
        &Phrases { restart: "systemctl restart {}", show: "systemctl cat {}", log: "journalctl -u {}" }
    }
}

fn full_name(name: &str) -> Result<String, UnitError> {
    const OTHERS: [&str; 8] =
        [".socket", ".target", ".timer", ".mount", ".path", ".slice", ".scope", ".device"];
    if name.contains('/') || OTHERS.iter().any(|other| name.ends_with(other)) {
        return Err(UnitError::NotAService { name: name.to_owned() });
    }
    Ok(if name.ends_with(".service") { name.to_owned() } else { format!("{name}.service") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_and_other_units_refused() {
        assert_eq!(full_name("nginx").unwrap(), "nginx.service");
        assert_eq!(full_name("postgresql@15-main.service").unwrap(), "postgresql@15-main.service");
        assert!(full_name("nginx.socket").is_err() && full_name("/usr/sbin/nginx").is_err());
    }
}
