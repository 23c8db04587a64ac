//! How the service is started: as its owner does it, or through `hasten run` with a profile.

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

/// What `hasten run` reads besides its file, and what would override the candidate's profile.
const OVERRULING: [&str; 6] =
    ["HASTEN_CONFIG", "HASTEN_ONLY", "HASTEN_QUIET", "HASTEN_STRICT", "HASTEN_VERIFY", "HASTEN_WITHOUT"];

/// systemd's `PATH` for its services.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The command with its arguments, as the owner starts it.
    pub command: Vec<OsString>,
    /// The folder to start it in; by default this process's.
    pub directory: Option<PathBuf>,
    /// Variables to set, or to remove.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// Whether it inherits nothing of this environment, like a system service.
    pub bare: bool,
    /// The account it runs as, which requires root.
    pub user: Option<User>,
    /// How many files it may open.
    pub open_files: Option<u64>,
    /// This `hasten`, for candidates.
    pub hasten: PathBuf,
    /// The candidate's settings; an empty profile starts the command as it is.
    pub profile: Profile,
    /// Kernel settings to write while it runs, which requires root; they are restored.
    pub system: BTreeMap<String, String>,
    /// Where to record what is started, so that the next hasten ends it should this one be killed.
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

    /// The name to use in messages.
    #[must_use]
    pub fn name(&self) -> String {
        let program = self.command.first().map(PathBuf::from).unwrap_or_default();
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The words to execute; `config` is the path of the profile.
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

    /// Starts it in its own process group, with all its output in `log`.
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
            // How to find programs and where to keep records: for this hasten, not for its user.
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

/// This process's limit of open files, changed while a child that inherits it is being started.
struct OpenFiles(Rlimit);

impl OpenFiles {
    fn limit(limit: u64) -> io::Result<Self> {
        let before = getrlimit(Resource::Nofile);
        // Only root may raise the hard limit; it then stays raised, which does no harm to later starts.
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
