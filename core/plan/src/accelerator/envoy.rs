//! What Envoy has inside it, in place.

use std::ffi::OsString;
use std::path::PathBuf;

use hasten_envoy_builds::{Build, releases};
use hasten_probe::{Cpu, Program};

use super::Accelerator;
use super::gzip::Gzip;
use crate::config::Config;
use crate::plan::{Reason, Side};
use crate::preload;
use crate::surroundings::Surroundings;

pub struct Envoy;

/// The beginning of the name of every executable that the library looks at.
const NAME: &str = "envoy";

impl Accelerator for Envoy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "gzip of long, whole bodies inside Envoy by faster engines"
    }

    fn library(&self) -> &'static str {
        "libhasten_envoy.so"
    }

    fn uses(&self) -> &'static [&'static str] {
        Gzip.uses()
    }

    fn judge_host(&self, cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Reason> {
        let off = surroundings.kill_switch(Gzip.name()).into_iter();
        off.chain(Gzip.judge_host(cpu, config, surroundings)).collect()
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        let name = program.name();
        if !is_envoy(program) {
            let waits = format!("{name} is not Envoy: the library waits for one that {name} starts");
            return vec![Reason::idle(waits).aside()];
        }
        let accepts = preload::accepts(program);
        let build = (accepts.side == Side::For).then(|| build(program, &name));
        [accepts].into_iter().chain(build).collect()
    }

    fn regards(&self, program: &Program) -> bool {
        is_envoy(program) || starts_envoy(program)
    }

    fn concerns(&self, program: &Program) -> bool {
        is_envoy(program)
    }

    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
        Gzip.environment(config, surroundings)
    }
}

/// Whether the program is Envoy by its name, as the library goes by it. What it is, its code says.
pub(super) fn is_envoy(program: &Program) -> bool {
    program.name().starts_with(NAME)
}

/// Whether it is something that may start Envoy: a script of its name, such as the one from PyPI, or a program that
/// starts others.
fn starts_envoy(program: &Program) -> bool {
    let is_named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME));
    program.is_launcher() || program.scripts.iter().any(is_named)
}

fn build(program: &Program, name: &str) -> Reason {
    let Some(id) = program.build_id() else {
        return Reason::against(format!(
            "{name} has no build-id, so nothing tells which build of Envoy it is"
        ))
        .fix(official());
    };
    match Build::of(&id) {
        Some(build) => Reason::favour(format!(
            "{name} is Envoy {}, by its build-id; the library verifies its code before it changes anything",
            build.release
        )),
        None => Reason::against(format!("this build of Envoy is not known: build-id {id}")).fix(official()),
    }
}

fn official() -> String {
    format!("use an official build of one of these releases: {}", releases())
}
