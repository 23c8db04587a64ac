//! The environment variables and places that a plan depends on, taken once so that a plan is a function of
//! its inputs.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::accelerator::{self, gzip, tls};
use crate::config::ConfigError;
use crate::nearest;
use crate::plan::Reason;

/// What the kill switch takes for every accelerator, as the preload libraries themselves do.
const EVERY: [&str; 2] = ["all", "1"];

/// Every variable that `hasten` or one of its libraries reads.
const VARIABLES: [&str; 14] = [
    "HASTEN_CONFIG",
    "HASTEN_CPU_DISABLE_IFMA",
    "HASTEN_DISABLE",
    "HASTEN_GZIP_ENGINES",
    "HASTEN_GZIP_VERIFY",
    "HASTEN_LIBDIR",
    "HASTEN_ONLY",
    "HASTEN_QUIET",
    "HASTEN_STRICT",
    "HASTEN_TLS_BREAK_EVEN",
    "HASTEN_TLS_EAGER",
    "HASTEN_TLS_NO_SHORTCUTS",
    "HASTEN_TLS_SUSPEND_ONLY",
    "HASTEN_WITHOUT",
];

/// What only our build reads: everything that cargo starts has them.
const OF_THE_BUILD: [&str; 3] = ["HASTEN_CRYPTO_MB", "HASTEN_ISAL", "HASTEN_LIBDEFLATE"];

/// The known variable that `name` looks like a misspelling of. Others with our prefix are none of our business.
pub fn misspelt_variable(name: &str) -> Option<&'static str> {
    let is_known = VARIABLES.contains(&name) || OF_THE_BUILD.contains(&name);
    (name.starts_with("HASTEN") && !is_known).then(|| nearest(name, VARIABLES)).flatten()
}

#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `HASTEN_DISABLE`: accelerators to leave out, separated by commas; `all` or `1` means every one.
    pub disable: Option<String>,
    /// `HASTEN_LIBDIR`: where the preload libraries are, before any other place.
    pub library_directory: Option<PathBuf>,
    /// `HASTEN_TLS_BREAK_EVEN`, which wins over the configuration file.
    pub tls_break_even: Option<OsString>,
    /// `HASTEN_GZIP_VERIFY`, which wins over the configuration file.
    pub gzip_verify: Option<OsString>,
    /// `HASTEN_GZIP_ENGINES`, which wins over the configuration file.
    pub gzip_engines: Option<OsString>,
    /// `HASTEN_CPU_DISABLE_IFMA`: behave as on a CPU without IFMA.
    pub deny_ifma: bool,
    /// `LD_PRELOAD` as it is now.
    pub ld_preload: Option<OsString>,
    /// The running `hasten`, beside or near which the libraries are installed.
    pub executable: Option<PathBuf>,
}

impl Surroundings {
    pub fn current() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            disable: variable("HASTEN_DISABLE").map(|value| value.to_string_lossy().into_owned()),
            library_directory: variable("HASTEN_LIBDIR").map(PathBuf::from),
            tls_break_even: variable("HASTEN_TLS_BREAK_EVEN"),
            gzip_verify: variable(gzip::VERIFY),
            gzip_engines: variable(gzip::ENGINE_LIST),
            deny_ifma: variable("HASTEN_CPU_DISABLE_IFMA").is_some_and(|value| value == "1"),
            ld_preload: variable("LD_PRELOAD"),
            executable: std::env::current_exe().ok().and_then(|path| path.canonicalize().ok()),
        }
    }

    /// Refuses variables that the libraries would ignore in silence.
    pub fn validate(&self) -> Result<(), ConfigError> {
        type Check = fn(&str) -> Result<(), (String, String)>;
        let checks: [(&'static str, &Option<OsString>, Check); 3] = [
            ("HASTEN_TLS_BREAK_EVEN", &self.tls_break_even, tls::check_break_even),
            (gzip::VERIFY, &self.gzip_verify, gzip::check_verify),
            (gzip::ENGINE_LIST, &self.gzip_engines, gzip::check_engines),
        ];
        checks.into_iter().try_for_each(|(variable, value, check)| {
            let value = value.as_deref().unwrap_or_default().to_string_lossy();
            check(&value).map_err(|(problem, fix)| ConfigError::Variable { variable, problem, fix })
        })
    }

    /// The reason against an accelerator that the kill switch names.
    pub(crate) fn kill_switch(&self, accelerator: &str) -> Option<Reason> {
        let value = self.disable.as_deref()?;
        let named = self.disabled().any(|name| EVERY.contains(&name) || name == accelerator);
        named.then(|| {
            Reason::against(format!("HASTEN_DISABLE={value} switches it off")).fix("unset HASTEN_DISABLE")
        })
    }

    /// Names in the kill switch that mean nothing, so that a misspelt one does not fail silently.
    pub fn unknown_disabled(&self) -> Vec<&str> {
        let known = |name: &str| EVERY.contains(&name) || accelerator::names().any(|known| known == name);
        self.disabled().filter(|name| !known(name)).collect()
    }

    fn disabled(&self) -> impl Iterator<Item = &str> {
        let names = self.disable.as_deref().unwrap_or_default().split(',');
        names.map(str::trim).filter(|name| !name.is_empty())
    }
}
