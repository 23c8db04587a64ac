//! Process settings that need no accelerator: CPUs, allocator, huge pages, options of Node.js, variables.
//!
//! `hasten tune` writes them into a profile once they are proven. Each is applied or left out with a reason; what the
//! user has set in the environment or on the command line takes precedence.

mod allocator;
mod cpus;
mod options;
mod settle;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use hasten_probe::Program;
use serde::Serialize;

use crate::accelerator::node;
use crate::plan::Side;

pub use self::allocator::Allocator;
pub use self::cpus::CpuList;
pub use self::options::{NodeOption, decided};
pub(crate) use self::settle::settle;

/// `[process]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessConfig {
    /// The only CPUs that the process may use.
    pub cpus: Option<CpuList>,
    /// No transparent huge pages for the process and what it starts.
    pub no_thp: bool,
    /// Preloaded in place of the C library's malloc.
    pub allocator: Option<Allocator>,
    pub malloc_arenas: Option<u64>,
    /// malloc asks for transparent huge pages.
    pub malloc_hugepages: bool,
    /// MiB that malloc keeps before it returns memory, and the size from which it maps blocks separately.
    pub malloc_keep: Option<u64>,
}

/// The settings as they apply to one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// All of them, applied or not.
    pub list: Vec<Setting>,
    #[serde(skip)]
    pub cpus: Option<CpuList>,
    #[serde(skip)]
    pub no_thp: bool,
    /// To preload before any hasten library.
    #[serde(skip)]
    pub(crate) preload: Vec<PathBuf>,
    /// For `NODE_OPTIONS`.
    #[serde(skip)]
    pub(crate) node_options: Vec<String>,
    /// For the command line, after its first word.
    #[serde(skip)]
    pub arguments: Vec<String>,
    #[serde(skip)]
    pub variables: BTreeMap<String, OsString>,
}

/// One setting, as written in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Such as `[process] cpus`.
    pub key: String,
    pub value: String,
    /// Why it is not applied; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl Settings {
    /// Whether anything is applied.
    #[must_use]
    pub fn applies(&self) -> bool {
        self.list.iter().any(|setting| setting.left_out.is_none())
    }
}

/// Whether `NODE_OPTIONS` reaches a Node.js in this program or its children; the reason if not.
pub fn reaches_node(program: &Program) -> Result<(), String> {
    let reason = node::heeds(program);
    if reason.side == Side::Against { Err(reason.text) } else { Ok(()) }
}

/// Variables that `[environment]` may not set: other tables of ours set them, or they would make any program run other
/// code.
#[must_use]
pub fn is_reserved(variable: &str) -> bool {
    const SET_ELSEWHERE: [&str; 8] = [
        "GLIBC_TUNABLES",
        "MALLOC_ARENA_MAX",
        "MALLOC_MMAP_THRESHOLD_",
        "MALLOC_TRIM_THRESHOLD_",
        "NODE_COMPILE_CACHE",
        "NODE_OPTIONS",
        "PATH",
        "UV_THREADPOOL_SIZE",
    ];
    SET_ELSEWHERE.contains(&variable) || variable.starts_with("LD_") || variable.starts_with("HASTEN_")
}

/// The sentence that the environment wins, if it sets the variable to something.
fn is_set(environment: &BTreeMap<OsString, OsString>, name: &str) -> Option<String> {
    let value = environment.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
    Some(format!("{name}={} in the environment wins", value.to_string_lossy()))
}
