//! How the service is started: as its owner does it, or behind `hasten run` with a profile.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::ServiceError;
use crate::journal::Journal;
use crate::profile::Profile;

/// What `hasten run` reads beside its file, and what would change a candidate behind its profile.
const OVERRULING: [&str; 6] =
    ["HASTEN_CONFIG", "HASTEN_ONLY", "HASTEN_QUIET", "HASTEN_STRICT", "HASTEN_VERIFY", "HASTEN_WITHOUT"];

/// What systemd gives to its services.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The command with its arguments, as the owner starts it.
    pub command: Vec<OsString>,
    /// The folder to start it in; otherwise the one of this process.
    pub directory: Option<PathBuf>,
    /// Variables to set, or to remove.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// Whether it gets nothing of this environment, as a service of the system.
    pub bare: bool,
    /// Who it runs as, which takes the rights of root.
    pub user: Option<User>,
    /// How many files it may open.
    pub open_files: Option<u64>,
    /// This `hasten`, for candidates.
    pub hasten: PathBuf,
    /// What the candidate sets; an empty one starts the command as it is.
    pub profile: Profile,
    /// Settings of the kernel to write while it runs, with the rights of root; they are put back.
    pub system: BTreeMap<String, String>,
    /// Where to note what is started, so that the next hasten ends it should this one be killed.
    pub journal: Option<Journal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

impl Launch {
    /// `command` as it is; `hasten` is the command that starts candidates.
    #[must_use]
    pub fn new(command: Vec<OsString>, hasten: PathBuf) -> Self {
        Self { command, hasten, ..Self::default() }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with(&self, profile: Profile) -> Self {
        Self { profile, ..self.clone() }
    }

    /// The name to speak of it by.
    #[must_use]
    pub fn name(&self) -> String {
        let program = self.command.first().map(PathBuf::from).unwrap_or_default();
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The words that are executed; `config` is where the profile is.
    #[must_use]
    pub fn words(&self, config: &Path) -> Vec<OsString> {
        if self.profile.is_empty() {
            return self.command.clone();
        }
        let hasten = [self.hasten.as_os_str(), "run".as_ref(), "--quiet".as_ref(), "--config".as_ref()];
        let behind = [config.as_os_str(), "--".as_ref()];
        let words = hasten.into_iter().chain(behind).map(ToOwned::to_owned);
        words.chain(self.command.iter().cloned()).collect()
    }

    /// Starts it with everything that it says in `log`, in a process group of its own.
    pub(super) fn spawn(&self, log: &Path) -> Result<Child, ServiceError> {
        let config = log.with_extension("toml");
        let written = |path: &Path| {
            let path = path.to_owned();
            move |source| ServiceError::Write { path, source }
        };
        if !self.profile.is_empty() {
            std::fs::write(&config, self.profile.to_toml()).map_err(written(&config))?;
        }
        let output = File::create(log).map_err(written(log))?;
        let errors = output.try_clone().map_err(written(log))?;
        let mut command = self.prepared(&config);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let _limit = self.open_files.map(OpenFiles::limit);
        let spawned = command.spawn();
        spawned.map_err(|source| ServiceError::Spawn { program: self.name(), source })
    }

    fn prepared(&self, config: &Path) -> Command {
        let words = self.words(config);
        let mut command = Command::new(words.first().map_or(std::ffi::OsStr::new(""), |word| word));
        command.args(words.get(1..).unwrap_or_default());
        // A group of its own: Ctrl-C at the terminal is ours to handle.
        command.process_group(0);
        if self.bare {
            command.env_clear().env("PATH", SYSTEM_PATH);
            // How to find and where to note: of this hasten, not of its user.
            command.envs(
                std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HASTEN_")),
            );
        }
        for name in OVERRULING {
            command.env_remove(name);
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

/// What this process may open, changed for as long as it takes to start a child that inherits it.
struct OpenFiles(Rlimit);

impl OpenFiles {
    fn limit(limit: u64) -> io::Result<Self> {
        let before = getrlimit(Resource::Nofile);
        // Only root may raise the upper bound; it stays then, which a later start can live with.
        let maximum = before.maximum.map(|maximum| maximum.max(limit));
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum })?;
        Ok(Self(before))
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}
