//! The accelerators that hasten knows, one file each.

pub mod envoy;
pub mod gzip;
pub mod node;
pub mod storage;
pub mod tier;
pub mod tls;

use std::ffi::OsString;

use hasten_probe::{Cpu, Program};

use crate::config::Config;
use crate::plan::{Proof, Reason};
use crate::surroundings::Surroundings;

/// Every accelerator, in the order in which plans show them.
pub const ACCELERATORS: &[&dyn Accelerator] =
    &[&tls::Tls, &gzip::Gzip, &envoy::Envoy, &node::Node, &storage::ReadCache, &storage::Wal, &tier::Tier];

/// Of arm64, on which everything has run in an emulator, and nothing on hardware.
const UNMEASURED: &str = "no gain is claimed on arm64, because none has been measured on hardware";

/// How an accelerator gets into a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A shared library that the dynamic loader maps first.
    LdPreload,
    /// A module that Node.js loads first.
    NodeOptions,
}

/// One library or plugin, and the knowledge of when it helps.
pub trait Accelerator: Sync {
    /// The name on the command line, in `HASTEN_DISABLE` and in reports.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn summary(&self) -> &'static str;

    /// The file loaded into the process, relative to the directory of the libraries.
    fn library(&self) -> &'static str;

    fn carrier(&self) -> Carrier {
        Carrier::LdPreload
    }

    /// Whether there is a library for programs of musl, too.
    fn is_for_musl(&self) -> bool {
        false
    }

    /// Whether there is a library for arm64, too.
    fn is_for_arm64(&self) -> bool {
        false
    }

    /// The host features that it uses, by the identifiers of [`crate::findings`].
    fn uses(&self) -> &'static [&'static str];

    /// What speaks for or against it on this host.
    fn judge_host(&self, cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Reason>;

    /// What speaks for or against it in this program; everything, not just the first obstacle.
    fn judge_program(&self, program: &Program) -> Vec<Reason>;

    /// What this host's libraries say for or against it, if no program is named that may bring its own.
    fn judge_libraries(&self, _: &Surroundings) -> Option<Reason> {
        None
    }

    /// What the surroundings and settings of others say for or against it in this program.
    fn judge_surroundings(&self, _: &Program, _: &Config, _: &Surroundings) -> Option<Reason> {
        None
    }

    /// The evidence behind a yes for this program; `None` if there is nothing to add to the yes.
    fn proof(&self, _: &Program) -> Option<Proof> {
        None
    }

    /// Whether it has any place in a plan for this program. One that is for a single server has none in others.
    fn regards(&self, _: &Program) -> bool {
        true
    }

    /// Whether it needs something from the user first, so that it has no place in a plan that does not ask for it.
    fn needs_asking(&self) -> bool {
        false
    }

    /// Whether a user who starts this program expects to be told when it is left out.
    fn concerns(&self, _: &Program) -> bool {
        true
    }

    /// Where to see its effect.
    fn follow_up(&self, _: &Config, _: &Surroundings) -> String {
        "watch it with `hasten top`".into()
    }

    /// The variables that carry its configuration into the process.
    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)>;
}

/// The accelerators that get into a process this way.
pub(crate) fn carried_by(carrier: Carrier) -> impl Iterator<Item = &'static dyn Accelerator> {
    ACCELERATORS.iter().copied().filter(move |accelerator| accelerator.carrier() == carrier)
}

/// The names of all accelerators.
pub fn names() -> impl Iterator<Item = &'static str> {
    ACCELERATORS.iter().map(|accelerator| accelerator.name())
}
