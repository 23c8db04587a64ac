//! The accelerators that hasten knows, one file each.

pub mod gzip;
pub mod tls;

use std::ffi::OsString;

use hasten_probe::{Cpu, Program};

use crate::config::Config;
use crate::plan::Reason;
use crate::surroundings::Surroundings;

/// Every accelerator, in the order in which plans show them.
pub const ACCELERATORS: &[&dyn Accelerator] = &[&tls::Tls, &gzip::Gzip];

/// One preload library, and the knowledge of when it helps.
pub trait Accelerator: Sync {
    /// The name on the command line, in `HASTEN_DISABLE` and in reports.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn summary(&self) -> &'static str;

    /// The file name of its preload library.
    fn library(&self) -> &'static str;

    /// The features of the host that it makes use of, by the identifiers of [`crate::findings`].
    fn uses(&self) -> &'static [&'static str];

    /// What speaks for or against it on this host.
    fn judge_host(&self, cpu: &Cpu, surroundings: &Surroundings) -> Vec<Reason>;

    /// What speaks for or against it in this program; all of it, not just the first hindrance.
    fn judge_program(&self, program: &Program) -> Vec<Reason>;

    /// The variables that carry its configuration into the process.
    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)>;
}

/// The names of all accelerators.
pub fn names() -> impl Iterator<Item = &'static str> {
    ACCELERATORS.iter().map(|accelerator| accelerator.name())
}
