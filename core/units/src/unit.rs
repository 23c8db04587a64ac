//! A service as systemd has it loaded.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::{self, Variables};
use crate::error::UnitError;
use crate::properties::Properties;

/// Parts of the paths of our libraries, and of our plugin for Node.js, wherever they are installed.
const LIBRARY: &str = "/libhasten";
const PLUGIN: &str = "/hasten/node/register.js";

/// What is asked of `systemctl show`.
pub(crate) const ASKED: [&str; 22] = [
    "Id",
    "LoadState",
    "ActiveState",
    "Type",
    "MainPID",
    "ControlGroup",
    "NRestarts",
    "CPUUsageNSec",
    "MemoryCurrent",
    "ExecStart",
    "Environment",
    "EnvironmentFiles",
    "UnsetEnvironment",
    "User",
    "DynamicUser",
    "RootDirectory",
    "RootImage",
    "ProtectHome",
    "PrivateTmp",
    "TemporaryFileSystem",
    "InaccessiblePaths",
    "TriggeredBy",
];

#[derive(Clone, Debug)]
pub struct Unit {
    /// Such as `nginx.service`; of an alias, the name that it stands for.
    pub name: String,
    pub activity: Activity,
    pub main_pid: Option<u32>,
    /// How often systemd has restarted it by itself.
    pub restarts: u64,
    /// CPU time of all its processes since it was started, where systemd accounts for it.
    pub cpu: Option<Duration>,
    /// The file of its first `ExecStart=`.
    pub executable: Option<PathBuf>,
    /// The variables with which it starts, those of `EnvironmentFile=` included.
    pub environment: Variables,
    pub(crate) properties: Properties,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Running,
    /// On the way to running, or reloading.
    Starting,
    Stopping,
    Stopped,
    Failed,
}

impl Activity {
    fn parse(text: &str) -> Self {
        match text {
            "active" => Self::Running,
            "activating" | "reloading" | "refreshing" => Self::Starting,
            "deactivating" => Self::Stopping,
            "failed" => Self::Failed,
            _ => Self::Stopped,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Starting => "starting",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl Unit {
    pub(crate) fn new(properties: Properties) -> Result<Self, UnitError> {
        let name = properties.get("Id").to_owned();
        match properties.get("LoadState") {
            "not-found" => return Err(UnitError::NotFound { name }),
            "masked" => return Err(UnitError::Masked { name }),
            _ => {}
        }
        Ok(Self {
            name,
            activity: Activity::parse(properties.get("ActiveState")),
            main_pid: properties
                .number("MainPID")
                .and_then(|pid| u32::try_from(pid).ok())
                .filter(|pid| *pid > 0),
            restarts: properties.number("NRestarts").unwrap_or_default(),
            cpu: properties.number("CPUUsageNSec").map(Duration::from_nanos),
            executable: properties.executable("ExecStart").map(PathBuf::from),
            environment: environment::of(&properties),
            properties,
        })
    }

    /// `nginx` of `nginx.service`, which is what people type.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.strip_suffix(".service").unwrap_or(&self.name)
    }

    /// Its main process. systemd may not know that of a service that has left its parent; any of its group will do then.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        const HIERARCHIES: [&str; 3] = ["", "/systemd", "/unified"];
        let group = self.properties.get("ControlGroup");
        let members = |hierarchy: &&str| {
            let list = fs::read_to_string(format!("/sys/fs/cgroup{hierarchy}{group}/cgroup.procs")).ok()?;
            list.lines().filter_map(|line| line.parse().ok()).min()
        };
        self.main_pid.or_else(|| HIERARCHIES.iter().filter(|_| !group.is_empty()).find_map(members))
    }

    /// The program of its main process, or the one that it would start. They differ if it starts with a script.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        let running = self.process().and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
        running.filter(|path| path.exists()).or_else(|| self.executable.clone())
    }

    /// Whether its main process has mapped a library of ours, or loads our plugin for Node.js; `None` if this user may
    /// not see it.
    #[must_use]
    pub fn has_loaded(&self) -> Option<bool> {
        let Some(pid) = self.process() else { return Some(false) };
        let of_process = |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok();
        let is_plugin = |variable: &[u8]| variable.starts_with(b"NODE_OPTIONS=") && holds(variable, PLUGIN);
        let has_mapped = holds(&of_process("maps")?, LIBRARY);
        Some(has_mapped || of_process("environ")?.split(|byte| *byte == 0).any(is_plugin))
    }

    /// Whether its unit loads hasten by any line, or starts it with `hasten run`.
    #[must_use]
    pub fn names_hasten(&self) -> bool {
        let names =
            |variable, part| self.variable(variable).is_some_and(|value| holds(value.as_bytes(), part));
        let starts = self.executable.as_deref().and_then(Path::file_name) == Some(OsStr::new("hasten"));
        names("LD_PRELOAD", LIBRARY) || names("NODE_OPTIONS", PLUGIN) || starts
    }

    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.get(OsStr::new(name)).map(AsRef::as_ref)
    }

    /// Whether systemd itself consists of it.
    #[must_use]
    pub fn is_of_systemd(&self) -> bool {
        let own = ["/lib/systemd/", "/usr/lib/systemd/"];
        self.executable.as_deref().is_some_and(|file| own.iter().any(|folder| file.starts_with(folder)))
    }
}

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}
