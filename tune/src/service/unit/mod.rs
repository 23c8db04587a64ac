//! A systemd unit, read as far as it says how its service is started: the command, its environment, its folder, its
//! user and how many files it may open. Its other settings are listed, so that nobody believes they were applied.

mod find;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hasten_units::text::{self, Assignment};
use hasten_units::words;
use thiserror::Error;

use super::launch::{Launch, User};
use crate::journal::{Held, Journal, System};

pub use self::find::SEARCH_PATH;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Such as `nginx.service`.
    pub name: String,
    /// The file and its drop-ins, in order of precedence.
    pub files: Vec<PathBuf>,
    pub command: Vec<OsString>,
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: Option<PathBuf>,
    pub user: Option<String>,
    pub group: Option<String>,
    pub open_files: Option<u64>,
    /// Settings of `[Service]` that are not applied.
    pub left_out: Vec<String>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    #[error("there is no unit {name} in {searched}")]
    NotFound { name: String, searched: String },
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: String },
    #[error("{}: {problem}", path.display())]
    Content { path: PathBuf, problem: String },
    #[error("{name} has no ExecStart= in [Service]")]
    NoCommand { name: String },
    #[error("{name} has {count} ExecStart= lines, of which only one can be tuned")]
    SeveralCommands { name: String, count: usize },
    #[error("{name} is running, and its users are served by it")]
    Active { name: String },
    #[error("{name}: {why}")]
    Systemd { name: String, why: String },
    #[error("{name} runs as {user}, who is not in /etc/passwd")]
    NoUser { name: String, user: String },
}

impl UnitError {
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "give the path of the unit's file, or see `systemctl list-unit-files`",
            Self::Read { .. } => "run as a user who may read it",
            Self::Content { .. } => "see `systemd-analyze verify`",
            Self::NoCommand { .. } | Self::SeveralCommands { .. } => {
                "give the command itself behind -- instead of --unit"
            }
            Self::Active { .. } => {
                "stop it first, or let hasten stop it and start it again with --allow-system"
            }
            Self::Systemd { .. } => "see `systemctl status` and `journalctl -u`",
            Self::NoUser { .. } => "create the user, or give the command itself behind --",
        }
    }
}

/// The settings of `[Service]` that determine how the command runs.
const APPLIED: [&str; 8] = [
    "ExecStart",
    "Environment",
    "EnvironmentFile",
    "UnsetEnvironment",
    "WorkingDirectory",
    "User",
    "Group",
    "LimitNOFILE",
];
/// Settings that concern only systemd, not the process that it starts.
const OF_SYSTEMD: [&str; 16] = [
    "Type",
    "PIDFile",
    "GuessMainPID",
    "Restart",
    "RestartSec",
    "ExecReload",
    "ExecStop",
    "ExecStopPost",
    "KillMode",
    "KillSignal",
    "TimeoutSec",
    "TimeoutStartSec",
    "TimeoutStopSec",
    "NotifyAccess",
    "SyslogIdentifier",
    "RestartPreventExitStatus",
];

impl Unit {
    /// The unit of that name in the folders, or the file at that path.
    pub fn read(name: &str, folders: &[PathBuf]) -> Result<Self, UnitError> {
        let found = find::find(name, folders)?;
        let mut assignments = Vec::new();
        for path in &found.files {
            let text = read_text(path)?;
            assignments.extend(
                text::service(&text).map_err(|problem| UnitError::Content { path: path.clone(), problem })?,
            );
        }
        let mut unit = Self { name: found.name.clone(), files: found.files, ..Self::default() };
        unit.apply(&assignments)?;
        Ok(unit)
    }

    /// Stops the unit if systemd runs it, and starts it again when the result is dropped.
    pub fn take_over(
        &self,
        system: &System,
        journal: &Journal,
        allow_system: bool,
    ) -> Result<Option<Held>, UnitError> {
        let failed =
            |error: std::io::Error| UnitError::Systemd { name: self.name.clone(), why: error.to_string() };
        if !system.is_active(&self.name).map_err(failed)? {
            return Ok(None);
        }
        if !allow_system {
            return Err(UnitError::Active { name: self.name.clone() });
        }
        Held::stop(system, journal, &self.name).map(Some).map_err(failed)
    }

    /// How to start its command without systemd.
    pub fn launch(&self, hasten: PathBuf) -> Result<Launch, UnitError> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let group = fs::read_to_string("/etc/group").unwrap_or_default();
        let own = |(name, value): (&OsString, &OsString)| (name.clone(), Some(value.clone()));
        Ok(Launch {
            directory: self.directory.clone().or_else(|| Some("/".into())),
            environment: self.environment.iter().map(own).collect(),
            bare: true,
            user: self.account(&passwd, &group)?,
            open_files: self.open_files,
            ..Launch::new(self.command.clone(), hasten)
        })
    }

    fn apply(&mut self, assignments: &[Assignment]) -> Result<(), UnitError> {
        let values = |key: &str| text::values(assignments, key);
        let last = |key: &str| values(key).last().map(|value| self.expand(value));
        let (directory, limit) = (last("WorkingDirectory"), last("LimitNOFILE"));
        let (user, group) = (last("User"), last("Group"));
        self.environment = self.variables(assignments)?;
        self.user = user;
        self.group = group;
        // A minus means that it may be missing; `~` is the user's home, which is not supported.
        self.directory = directory
            .map(|path| PathBuf::from(path.trim_start_matches('-')))
            .filter(|path| path.is_absolute());
        self.open_files = limit.and_then(|limit| open_files(&limit));
        self.command = self.command_of(&values("ExecStart"))?;
        for Assignment { key, .. } in assignments {
            let known = APPLIED.contains(&key.as_str()) || OF_SYSTEMD.contains(&key.as_str());
            if !known && !self.left_out.contains(key) {
                self.left_out.push(key.clone());
            }
        }
        Ok(())
    }

    fn command_of(&self, lines: &[String]) -> Result<Vec<OsString>, UnitError> {
        let [line] = lines else {
            let (name, count) = (self.name.clone(), lines.len());
            return Err(match count {
                0 => UnitError::NoCommand { name },
                _ => UnitError::SeveralCommands { name, count },
            });
        };
        let problem = |problem| UnitError::Content { path: self.files[0].clone(), problem };
        // Prefixes of the path concern rights and failures.
        let line = line.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let words = words::split(line).map_err(problem)?;
        let mut expanded = Vec::new();
        for word in words {
            expanded.extend(words::substitute(&self.expand(&word), &self.environment));
        }
        if expanded.is_empty() {
            return Err(UnitError::NoCommand { name: self.name.clone() });
        }
        Ok(expanded.into_iter().map(OsString::from).collect())
    }

    fn variables(&self, assignments: &[Assignment]) -> Result<BTreeMap<OsString, OsString>, UnitError> {
        let mut variables = BTreeMap::new();
        let problem = |problem| UnitError::Content { path: self.files[0].clone(), problem };
        for line in text::values(assignments, "Environment") {
            for word in words::split(&line).map_err(problem)? {
                if let Some((name, value)) = self.expand(&word).split_once('=') {
                    variables.insert(name.into(), value.into());
                }
            }
        }
        // Files take precedence over lines, regardless of position.
        for file in text::values(assignments, "EnvironmentFile") {
            let file = self.expand(&file);
            let (path, optional) = match file.strip_prefix('-') {
                Some(path) => (PathBuf::from(path), true),
                None => (PathBuf::from(&file), false),
            };
            match read_text(&path) {
                Ok(text) => variables.extend(text::environment_file(&text)),
                Err(_) if optional => {}
                Err(error) => return Err(error),
            }
        }
        for line in text::values(assignments, "UnsetEnvironment") {
            for name in words::split(&line).map_err(problem)? {
                variables.remove(&OsString::from(name));
            }
        }
        Ok(variables)
    }

    /// Expands specifiers that do not depend on the caller.
    fn expand(&self, value: &str) -> String {
        let stem = self.name.strip_suffix(".service").unwrap_or(&self.name);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        let mut expanded = String::new();
        let mut characters = value.chars();
        while let Some(c) = characters.next() {
            if c != '%' {
                expanded.push(c);
                continue;
            }
            match characters.next() {
                Some('n') => expanded += &self.name,
                Some('N') => expanded += stem,
                Some('p') => expanded += prefix,
                Some('i' | 'I') => expanded += instance,
                Some('t') => expanded += "/run",
                Some('S') => expanded += "/var/lib",
                Some('C') => expanded += "/var/cache",
                Some('L') => expanded += "/var/log",
                Some('E') => expanded += "/etc",
                Some('T') => expanded += "/tmp",
                Some('%') | None => expanded.push('%'),
                Some(other) => expanded.extend(['%', other]),
            }
        }
        expanded
    }

    /// User and group by number, if it does not run as root.
    fn account(&self, passwd: &str, groups: &str) -> Result<Option<User>, UnitError> {
        let Some(user) = self.user.as_deref().filter(|user| !matches!(*user, "root" | "0")) else {
            return Ok(None);
        };
        let unknown = |user: &str| UnitError::NoUser { name: self.name.clone(), user: user.to_owned() };
        let number = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
        let entry = |table: &str, name: &str| -> Option<Vec<u32>> {
            let lines = table.lines().map(|line| line.split(':').collect::<Vec<_>>());
            let mut found =
                lines.filter(|fields| fields.first() == Some(&name) || fields.get(2) == Some(&name));
            found
                .next()
                .map(|fields| [number(fields.get(2)), number(fields.get(3))].into_iter().flatten().collect())
        };
        let ids = entry(passwd, user).ok_or_else(|| unknown(user))?;
        let [uid, own_gid] = ids[..] else { return Err(unknown(user)) };
        let gid = match &self.group {
            Some(group) => *entry(groups, group)
                .and_then(|ids| ids.first().copied())
                .as_ref()
                .ok_or_else(|| unknown(group))?,
            None => own_gid,
        };
        Ok(Some(User { uid, gid }))
    }
}

/// `LimitNOFILE=1024:524288`: the process starts with the first.
fn open_files(limit: &str) -> Option<u64> {
    let soft = limit.split(':').next()?.trim();
    match soft {
        "infinity" => None,
        number => number.parse().ok(),
    }
}

fn read_text(path: &Path) -> Result<String, UnitError> {
    fs::read_to_string(path)
        .map_err(|error| UnitError::Read { path: path.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests;
