//! The user's wishes: `hasten.toml`, overridden by the command line and its environment variables.

mod devices;
mod error;
mod file;
mod process;
pub mod storage;
pub mod tier;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::devices::Asked;
use crate::gc_advice::GcAdvice;
use crate::plan::{Reason, Side};
use crate::process::{NodeOption, ProcessConfig};

pub use self::error::{ConfigError, Place};
pub use self::storage::StorageConfig;
pub use self::tier::Tier;

/// Searched in this order if no file is named.
pub const DEFAULT_FILES: [&str; 2] = ["hasten.toml", "/etc/hasten/hasten.toml"];

/// Everything that can be configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Whether the user named that file, rather than it being found in a default place.
    pub named: bool,
    /// Refuse to run a command that cannot be accelerated.
    pub strict: bool,
    pub tls: TlsConfig,
    pub gzip: GzipConfig,
    pub devices: DevicesConfig,
    pub node: NodeConfig,
    pub process: ProcessConfig,
    pub storage: StorageConfig,
    /// The two kinds of memory.
    pub tier: Option<Tier>,
    /// Variables for the command, unless its user has set them.
    pub environment: BTreeMap<String, String>,
    /// The options from `node.gc_advice` or the command line.
    pub gc_advice: Option<GcAdvice>,
    /// Requests for accelerators from all sources, strongest first.
    requests: Vec<Request>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// The smallest group worth a batch, for each operation.
    pub break_even: BTreeMap<String, u8>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GzipConfig {
    /// Decompress and compare what the engines compress; the environment may say otherwise.
    pub verify: bool,
    /// The same from the command line, which takes precedence over the environment.
    pub verify_always: bool,
    /// The engines that may be used; all of them if none is named.
    pub engines: Vec<String>,
    /// Whether Envoy's bodies may be compressed in a window of 32 KiB where its configuration says less.
    pub full_window: bool,
}

/// The file's settings; the environment may override them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DevicesConfig {
    /// The devices to use.
    pub asked: Option<Asked>,
    /// How long one operation may take.
    pub timeout_ms: Option<u64>,
    /// The initial and the longest delay between a fault and the next attempt to use a device.
    pub retry_ms: Option<(u64, u64)>,
    /// Where libraries are looked for, in place of the system's own places.
    pub libraries: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeConfig {
    pub cache: NodeCache,
    /// Record garbage collections from the start.
    pub gc_record: bool,
    /// A file written by `hasten gc --json`.
    pub gc_advice: Option<PathBuf>,
    /// Options of Node.js and V8.
    pub options: Vec<NodeOption>,
    /// Threads of libuv.
    pub threadpool: Option<u64>,
    /// Use Node's own cache of compiled code.
    pub compile_cache: bool,
}

/// What the plugin does with the start-up cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeCache {
    #[default]
    On,
    /// Use what exists, and record nothing.
    Read,
    Off,
}

/// One source's choice of accelerators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The source's name in a reason, such as `--only`.
    pub only_source: String,
    pub without_source: String,
    /// Nothing but these.
    pub only: Option<Vec<String>>,
    /// Everything but these.
    pub without: Vec<String>,
}

impl Config {
    /// Reads `file`; without one, the first of [`DEFAULT_FILES`] that exists.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let default = || DEFAULT_FILES.iter().map(Path::new).find(|path| path.exists());
        let Some(path) = file.or_else(default) else { return Ok(Self::default()) };
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Self { named: file.is_some(), ..file::parse(&text, path)? })
    }

    /// Reads a configuration from memory; `path` is only named in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        file::parse(text, path)
    }

    /// Puts the command line's request before the file's.
    pub fn prefer(&mut self, request: Request) {
        self.requests.insert(0, request);
    }

    /// Whether it is `only` in the file that leaves an accelerator out: the user who wrote the list, or had `hasten
    /// tune` write it, need not be told at every start.
    #[must_use]
    pub fn file_leaves_out(&self, name: &str) -> bool {
        let deciding = self.requests.iter().position(|request| request.choice(name).is_some());
        // The file's request is the last, if there is a file.
        let of_file = self
            .file
            .as_ref()
            .and_then(|_| Some((self.requests.len().checked_sub(1)?, self.requests.last()?)));
        of_file.is_some_and(|(last, request)| {
            let listed = |names: &[String]| names.iter().any(|listed| listed == name);
            deciding == Some(last)
                && !listed(&request.without)
                && request.only.as_deref().is_some_and(|only| !listed(only))
        })
    }

    /// Whether an accelerator that needs something from the user has it.
    fn has_settings_for(&self, name: &str) -> bool {
        self.storage.asks_for(name) || name == "tier" && self.tier.is_some()
    }

    /// Whether any source names an accelerator as one to apply.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.has_settings_for(name)
            || self
                .requests
                .iter()
                .flat_map(|request| request.only.iter().flatten())
                .any(|listed| listed == name)
    }

    /// Whether an accelerator is wanted: the strongest source that mentions it decides.
    pub(crate) fn choice(&self, name: &str) -> Reason {
        self.requests.iter().find_map(|request| request.choice(name)).unwrap_or_else(|| {
            Reason::favour(match name {
                _ if !self.has_settings_for(name) => "on by default",
                "tier" => "nodes are named for it",
                _ => "a directory is named for it",
            })
        })
    }

    /// Whether the sources leave an accelerator out.
    pub(crate) fn refuses(&self, name: &str) -> bool {
        self.choice(name).side == Side::Against
    }
}

impl Config {
    /// Why an accelerator is left out by name, if it is.
    pub(crate) fn leaves_out(&self, name: &str) -> Option<Reason> {
        let named = |request: &Request| request.without.iter().any(|listed| listed == name);
        self.requests.iter().find(|request| named(request))?.choice(name)
    }
}

impl NodeCache {
    /// The names in the configuration file.
    pub const NAMES: [&str; 3] = ["on", "read", "off"];

    fn from_name(name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|known| *known == name)?;
        Some([Self::On, Self::Read, Self::Off][at])
    }

    pub(crate) fn from_variable(value: &str) -> Option<Self> {
        [Self::On, Self::Read, Self::Off].into_iter().find(|cache| cache.as_variable() == value)
    }

    pub(crate) fn as_variable(self) -> &'static str {
        match self {
            Self::On => "1",
            Self::Read => "read",
            Self::Off => "0",
        }
    }
}

impl Request {
    fn choice(&self, name: &str) -> Option<Reason> {
        let listed = |names: &[String]| names.iter().any(|listed| listed == name);
        if listed(&self.without) {
            let source = &self.without_source;
            return Some(
                Reason::against(format!("{source} leaves it out")).fix(format!("drop {name} from {source}")),
            );
        }
        let only = self.only.as_deref()?;
        let source = &self.only_source;
        Some(if listed(only) {
            Reason::favour(format!("{source} asks for it"))
        } else {
            Reason::against(format!("{source} does not name it")).fix(format!("add {name} to {source}"))
        })
    }
}
