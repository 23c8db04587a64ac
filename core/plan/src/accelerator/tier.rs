//! Two kinds of memory for one heap. Which, and in which parts, only the user can say.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hasten_probe::{Cpu, Probe, Program};

use super::Accelerator;
use crate::config::Config;
use crate::plan::Reason;
use crate::preload;
use crate::process::Allocator;
use crate::surroundings::Surroundings;

pub struct Tier;

pub(crate) const TIER: &str = "HASTEN_TIER";

/// The only allocator that can be told where an object is to be.
const JEMALLOC: &str = "libjemalloc.so.2";

impl Accelerator for Tier {
    fn name(&self) -> &'static str {
        "tier"
    }

    fn summary(&self) -> &'static str {
        "large objects are on another NUMA node, in a kept share of all bytes"
    }

    fn library(&self) -> &'static str {
        "libhasten_tier.so"
    }

    fn uses(&self) -> &'static [&'static str] {
        &[]
    }

    fn needs_asking(&self) -> bool {
        true
    }

    fn judge_host(&self, _: &Cpu, config: &Config, _: &Surroundings) -> Vec<Reason> {
        let Some(tier) = &config.tier else {
            let example = "hasten run --tier 0:2=1:3 -- COMMAND";
            return vec![Reason::against("it needs two nodes and their shares from you").fix(example)];
        };
        if let Some((problem, fix)) = tier.complaint(&Probe::new().nodes()) {
            return vec![Reason::against(problem).fix(fix)];
        }
        vec![Reason::favour(match tier.is_of_one_node() {
            true => format!(
                "{:.0} % of all bytes are apart, on the same node: for tests and measurements",
                tier.percent()
            ),
            false => format!(
                "{:.0} % of all bytes are to be on node {}; node {} is near",
                tier.percent(),
                tier.far,
                tier.near
            ),
        })]
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        vec![preload::accepts(program)]
    }

    fn judge_surroundings(
        &self,
        program: &Program,
        config: &Config,
        surroundings: &Surroundings,
    ) -> Option<Reason> {
        let is_linked = program.libraries.iter().any(|library| library.name == JEMALLOC);
        let is_set =
            config.process.allocator == Some(Allocator::Jemalloc) && Allocator::Jemalloc.library().is_some();
        Some(if is_linked {
            Reason::favour(format!("its allocator is {JEMALLOC}, which it is linked with"))
        } else if is_preloaded(surroundings) {
            Reason::favour(format!("its allocator is {JEMALLOC}, which LD_PRELOAD names"))
        } else if is_set {
            Reason::favour(format!("its allocator is {JEMALLOC}, as [process] allocator says"))
        } else {
            Reason::against(format!("its allocator is not {JEMALLOC}, the only one that can be told where an object is to be")).fix(
                "if it has none of its own, start it with jemalloc (Debian: libjemalloc2): `allocator = \"jemalloc\"` in [process] of hasten.toml",
            )
        })
    }

    fn regards(&self, _: &Program) -> bool {
        false
    }

    fn follow_up(&self, _: &Config, _: &Surroundings) -> String {
        "`hasten top --once --json` has the share".into()
    }

    fn environment(&self, config: &Config, _: &Surroundings) -> Vec<(&'static str, OsString)> {
        config.tier.iter().map(|tier| (TIER, tier.to_string().into())).collect()
    }
}

fn is_preloaded(surroundings: &Surroundings) -> bool {
    let list = surroundings.ld_preload.as_deref().unwrap_or_default().as_bytes();
    let mut entries =
        list.split(|byte| b" :".contains(byte)).map(|entry| Path::new(std::ffi::OsStr::from_bytes(entry)));
    entries.any(|entry| entry.file_name().is_some_and(|name| name == JEMALLOC))
}
