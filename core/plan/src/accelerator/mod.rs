//! The accelerators that hasten knows, one file each.

pub mod tls;

use std::ffi::OsString;

use hasten_probe::{Cpu, Program};

use crate::config::Config;
use crate::plan::Reason;
use crate::surroundings::Surroundings;

/// Every accelerator, in the order in which plans show them.
pub const ACCELERATORS: &[&dyn Accelerator] = &[&tls::Tls];

/// One preload library, and the knowledge of when it helps.
pub trait Accelerator: Sync {
    /// The name on the command line, in `HASTEN_DISABLE` and in reports.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn summary(&self) -> &'static str;

    /// The file name of its preload library.
    fn library(&self) -> &'static str;

    /// Everything that speaks for or against it; all of it, not just the first hindrance.
    fn judge(&self, context: &Context<'_>) -> Vec<Reason>;

    /// The variables that carry its configuration into the process.
    fn environment(&self, context: &Context<'_>) -> Vec<(&'static str, Option<OsString>)>;
}

/// What a judgement is based on.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub cpu: &'a Cpu,
    pub program: &'a Program,
    pub config: &'a Config,
    pub surroundings: &'a Surroundings,
}

impl Context<'_> {
    /// Whether the user wants this accelerator.
    pub(crate) fn choice(&self, name: &str) -> Reason {
        if self.surroundings.disables(name) {
            let value = self.surroundings.disable.as_deref().unwrap_or_default();
            return Reason::against(format!("HASTEN_DISABLE={value} switches it off"))
                .fix("unset HASTEN_DISABLE");
        }
        self.config.choice(name)
    }
}

/// The names of all accelerators.
pub fn names() -> impl Iterator<Item = &'static str> {
    ACCELERATORS.iter().map(|accelerator| accelerator.name())
}
