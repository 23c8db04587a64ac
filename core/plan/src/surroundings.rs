//! The environment variables and places that a plan depends on, taken once so that a plan is a function of
//! its inputs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::accelerator::ACCELERATORS;

#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `HASTEN_DISABLE`: accelerators to leave out, separated by commas; `all` means every one.
    pub disable: Option<String>,
    /// `HASTEN_LIBDIR`: where the preload libraries are, before any other place.
    pub library_directory: Option<PathBuf>,
    /// `HASTEN_TLS_BREAK_EVEN`, which wins over the configuration file.
    pub tls_break_even: Option<OsString>,
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
            deny_ifma: variable("HASTEN_CPU_DISABLE_IFMA").is_some_and(|value| value != OsStr::new("0")),
            ld_preload: variable("LD_PRELOAD"),
            executable: std::env::current_exe().ok().and_then(|path| path.canonicalize().ok()),
        }
    }

    /// Whether the kill switch names this accelerator.
    pub(crate) fn disables(&self, accelerator: &str) -> bool {
        self.disabled().any(|name| name == "all" || name == accelerator)
    }

    /// Names in the kill switch that mean nothing, so that a misspelt one does not fail silently.
    pub fn unknown_disabled(&self) -> Vec<&str> {
        let known = |name: &str| name == "all" || ACCELERATORS.iter().any(|known| known.name() == name);
        self.disabled().filter(|name| !known(name)).collect()
    }

    fn disabled(&self) -> impl Iterator<Item = &str> {
        let names = self.disable.as_deref().unwrap_or_default().split(',');
        names.map(str::trim).filter(|name| !name.is_empty())
    }
}
