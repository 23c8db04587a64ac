//! The environment variables and places that a plan depends on, captured once so that a plan is a function of its
//! inputs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hasten_openssl::LIBSSL;
use hasten_probe::program::Library;

use crate::accelerator::{self, gzip, node, storage, tier, tls};
use crate::config::ConfigError;
use crate::devices;
use crate::gc_advice::Setting;
use crate::plan::Reason;
use crate::preload::CHOSEN;
use crate::process::CpuList;
use crate::{nearest, node_options};

/// Leaves accelerators out, in every process that inherits it.
pub(crate) const DISABLE: &str = "HASTEN_DISABLE";

/// Values that switch off every accelerator, as in the preload libraries.
const EVERY: [&str; 2] = ["all", "1"];

/// Whether a value of `HASTEN_DISABLE` names an accelerator.
pub fn disables(value: &str, accelerator: &str) -> bool {
    words(value)
        .any(|word| EVERY.into_iter().chain([accelerator]).any(|name| name.eq_ignore_ascii_case(word)))
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split([',', ' ', '\t', '\n', '\x0b', '\x0c', '\r']).filter(|word| !word.is_empty())
}

/// Every variable that `hasten` or one of its libraries reads.
const VARIABLES: [&str; 39] = [
    "HASTEN_CACHE_DIR",
    "HASTEN_CONFIG",
    "HASTEN_CPU_DISABLE_ADX",
    "HASTEN_CPU_DISABLE_IFMA",
    "HASTEN_DEVICES",
    "HASTEN_DEVICE_LIBRARIES",
    "HASTEN_DEVICE_RETRY_MS",
    "HASTEN_DEVICE_TIMEOUT_MS",
    DISABLE,
    "HASTEN_GZIP_ENGINES",
    "HASTEN_GZIP_VERIFY",
    "HASTEN_GZIP_WINDOW",
    "HASTEN_LIBDIR",
    "HASTEN_NODE_CACHE",
    "HASTEN_NODE_CACHE_LIMIT",
    "HASTEN_NODE_GC",
    "HASTEN_NODE_STATS",
    "HASTEN_ONLY",
    CHOSEN,
    "HASTEN_QUIET",
    storage::READ_CACHE,
    "HASTEN_READ_CACHE_EAGER",
    "HASTEN_READ_CACHE_FILES",
    "HASTEN_READ_CACHE_STABLE",
    "HASTEN_READ_CACHE_WRITES",
    "HASTEN_RUNTIME_DIR",
    "HASTEN_SIMULATED_DEVICES",
    "HASTEN_STRICT",
    "HASTEN_SYSFS_ROOT",
    "HASTEN_TLS_BREAK_EVEN",
    "HASTEN_TLS_EAGER",
    "HASTEN_TLS_NO_SHORTCUTS",
    "HASTEN_TLS_TRIAL",
    "HASTEN_TLS_SUSPEND_ONLY",
    tier::TIER,
    "HASTEN_TIER_DECOMMIT",
    storage::WAL,
    "HASTEN_WAL_EPHEMERAL",
    "HASTEN_WITHOUT",
];

/// The known variable that `name` seems to misspell. Other variables with our prefix are not ours to judge.
pub fn misspelt_variable(name: &str) -> Option<&'static str> {
    (name.starts_with("HASTEN") && !VARIABLES.contains(&name)).then(|| nearest(name, VARIABLES)).flatten()
}

/// As the plugin determines it: relative paths are ignored, as the standard for `XDG_CACHE_HOME` requires.
fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("HASTEN_CACHE_DIR")
        .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("hasten")))
        .or_else(|| Some(absolute("HOME")?.join(".cache/hasten")))
}

#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `HASTEN_DISABLE`: accelerators to leave out, in any case, separated by commas or white space; `all` or `1` means
    /// every one.
    pub disable: Option<String>,
    /// `HASTEN_LIBDIR`: where the preload libraries are, before any other place.
    pub library_directory: Option<PathBuf>,
    /// `HASTEN_TLS_BREAK_EVEN`, which wins over the configuration file.
    pub tls_break_even: Option<OsString>,
    /// `HASTEN_GZIP_VERIFY`, which wins over the configuration file.
    pub gzip_verify: Option<OsString>,
    /// `HASTEN_GZIP_ENGINES`, which wins over the configuration file.
    pub gzip_engines: Option<OsString>,
    /// `HASTEN_GZIP_WINDOW`, which wins over the configuration file.
    pub gzip_window: Option<OsString>,
    /// `HASTEN_DEVICES` and the settings beside it, each of which wins over the configuration file.
    pub devices: Option<OsString>,
    pub device_timeout: Option<OsString>,
    pub device_retry: Option<OsString>,
    pub device_libraries: Option<OsString>,
    /// `HASTEN_NODE_CACHE`, which wins over the configuration file.
    pub node_cache: Option<OsString>,
    /// `HASTEN_NODE_CACHE_LIMIT`: MiB.
    pub node_cache_limit: Option<OsString>,
    /// `HASTEN_NODE_GC`, which wins over the configuration file.
    pub node_gc: Option<OsString>,
    /// This user's cache directory: `HASTEN_CACHE_DIR`, or a place below `XDG_CACHE_HOME` or `HOME`.
    pub cache_directory: Option<PathBuf>,
    /// `HASTEN_CPU_DISABLE_IFMA`: behave as on a CPU without IFMA.
    pub deny_ifma: bool,
    /// `HASTEN_CPU_DISABLE_ADX`: behave as on a CPU without ADX.
    pub deny_adx: bool,
    /// `HASTEN_PRELOAD` as it is now.
    pub chosen: Option<OsString>,
    /// `LD_PRELOAD` as it is now.
    pub ld_preload: Option<OsString>,
    /// `NODE_COMPILE_CACHE`: Node's own cache of compiled code.
    pub node_compile_cache: Option<OsString>,
    /// `NODE_OPTIONS` as it is now.
    pub node_options: Option<OsString>,
    /// Every variable that is set and not empty.
    pub environment: BTreeMap<OsString, OsString>,
    /// The name of every variable, in order, including empty ones.
    pub names: Vec<OsString>,
    /// The CPUs that this process may use.
    pub cpus: Option<CpuList>,
    /// The libssl that this host's programs get, or that there is none; the outer `None` if nobody has looked.
    pub libssl: Option<Option<Library>>,
    /// The process's memory limit, in bytes.
    pub memory_limit: Option<u64>,
    /// The command's own arguments.
    pub arguments: Vec<OsString>,
    /// The running `hasten`, beside or near which the libraries are installed.
    pub executable: Option<PathBuf>,
}

impl Surroundings {
    pub fn current() -> Self {
        Self::of(std::env::vars_os().collect())
    }

    /// Those of a process that starts with these variables.
    pub fn of(mut environment: BTreeMap<OsString, OsString>) -> Self {
        let names = environment.keys().cloned().collect();
        environment.retain(|_, value| !value.is_empty());
        let variable = |name: &str| environment.get(OsStr::new(name)).cloned();
        Self {
            disable: variable(DISABLE).map(|value| value.to_string_lossy().into_owned()),
            library_directory: variable("HASTEN_LIBDIR").map(PathBuf::from),
            tls_break_even: variable("HASTEN_TLS_BREAK_EVEN"),
            gzip_verify: variable(gzip::VERIFY),
            gzip_engines: variable(gzip::ENGINE_LIST),
            gzip_window: variable(gzip::WINDOW),
            devices: variable(devices::SWITCH),
            device_timeout: variable(devices::TIMEOUT),
            device_retry: variable(devices::RETRY),
            device_libraries: variable(devices::LIBRARIES),
            node_cache: variable(node::CACHE),
            node_cache_limit: variable(node::CACHE_LIMIT),
            node_gc: variable(node::GC),
            cache_directory: cache_directory(variable),
            deny_ifma: variable("HASTEN_CPU_DISABLE_IFMA").is_some_and(|value| value == "1"),
            deny_adx: variable("HASTEN_CPU_DISABLE_ADX").is_some_and(|value| value == "1"),
            chosen: variable(CHOSEN),
            ld_preload: variable("LD_PRELOAD"),
            node_compile_cache: variable("NODE_COMPILE_CACHE"),
            node_options: variable("NODE_OPTIONS"),
            names,
            cpus: None,
            libssl: None,
            memory_limit: None,
            arguments: Vec::new(),
            executable: std::env::current_exe().ok().and_then(|path| path.canonicalize().ok()),
            environment,
        }
    }

    /// Also looks at what only an answer about the host needs.
    #[must_use]
    pub fn with_libraries(self) -> Self {
        Self { libssl: Some(LIBSSL.into_iter().find_map(Library::of_host)), ..self }
    }

    /// Rejects values that the libraries would silently ignore.
    pub fn validate(&self) -> Result<(), ConfigError> {
        type Check = fn(&str) -> Result<(), (String, String)>;
        let checks: [(&'static str, &Option<OsString>, Check); 11] = [
            ("HASTEN_TLS_BREAK_EVEN", &self.tls_break_even, tls::check_break_even),
            (gzip::VERIFY, &self.gzip_verify, gzip::check_verify),
            (gzip::ENGINE_LIST, &self.gzip_engines, gzip::check_engines),
            (gzip::WINDOW, &self.gzip_window, gzip::check_window),
            (devices::SWITCH, &self.devices, devices::check_switch),
            (devices::TIMEOUT, &self.device_timeout, devices::check_timeout),
            (devices::RETRY, &self.device_retry, devices::check_retry),
            (devices::LIBRARIES, &self.device_libraries, devices::check_libraries),
            (node::CACHE, &self.node_cache, node::check_cache),
            (node::CACHE_LIMIT, &self.node_cache_limit, node::check_cache_limit),
            (node::GC, &self.node_gc, node::check_gc),
        ];
        checks.into_iter().try_for_each(|(variable, value, check)| {
            let value = value.as_deref().unwrap_or_default().to_string_lossy();
            check(&value).map_err(|(problem, fix)| ConfigError::Variable { variable, problem, fix })
        })
    }

    /// Where the user has already decided what an advised option decides, if anywhere.
    pub(crate) fn sets(&self, setting: &Setting) -> Option<String> {
        let decides = |word: &[u8]| node_options::sets(word, setting.same());
        let words = node_options::texts(self.node_options.as_deref().unwrap_or_default());
        if let Some(word) = words.iter().find(|word| decides(word)) {
            return Some(format!("NODE_OPTIONS says {} already", String::from_utf8_lossy(word)));
        }
        let word = self.words().find(|word| decides(word))?;
        Some(format!("the command line says {} already", String::from_utf8_lossy(word)))
    }

    /// Whether the user gives Node.js one of these options, including in a shell line (`sh -c 'node --permission
    /// app.js'`).
    pub(crate) fn gives_node(&self, names: &[&str]) -> bool {
        let variable = node_options::texts(self.node_options.as_deref().unwrap_or_default());
        let is_one = |word: &[u8]| node_options::sets(word, names);
        let mut given = self.words().flat_map(|word| word.split(u8::is_ascii_whitespace));
        variable.iter().any(|word| is_one(word)) || given.any(is_one)
    }

    /// The command's own arguments up to `--`: the rest is for the application.
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.arguments.iter().map(|word| word.as_bytes()).take_while(|word| *word != b"--")
    }

    /// Whether the kill switch names an accelerator.
    #[must_use]
    pub fn disables(&self, accelerator: &str) -> bool {
        self.disable.as_deref().is_some_and(|value| disables(value, accelerator))
    }

    /// The reason against an accelerator that the kill switch names.
    pub(crate) fn kill_switch(&self, accelerator: &str) -> Option<Reason> {
        let value = self.disable.as_deref()?;
        self.disables(accelerator).then(|| {
            Reason::against(format!("HASTEN_DISABLE={value} switches it off")).fix("unset HASTEN_DISABLE")
        })
    }

    /// Unknown names in the kill switch, so that a misspelt one does not fail silently.
    pub fn unknown_disabled(&self) -> Vec<&str> {
        let known = |name: &&str| {
            EVERY.into_iter().chain(accelerator::names()).any(|known| known.eq_ignore_ascii_case(name))
        };
        words(self.disable.as_deref().unwrap_or_default()).filter(|name| !known(name)).collect()
    }
}
