//! What Envoy has inside it, in place.

use std::ffi::OsString;
use std::path::PathBuf;

use hasten_envoy_builds::{Build, releases};
use hasten_probe::{Cpu, Program};

use super::Accelerator;
use super::gzip::{self, Gzip};
use super::tls::{self, Tls};
use crate::config::Config;
use crate::plan::{Reason, Side};
use crate::preload;
use crate::surroundings::{DISABLE, Surroundings};

pub struct Envoy;

/// What its halves use; some of it twice.
const USES: [&str; tls::USES.len() + gzip::USES.len()] = {
    let mut uses = [""; tls::USES.len() + gzip::USES.len()];
    let (handshakes, compression) = uses.split_at_mut(tls::USES.len());
    handshakes.copy_from_slice(&tls::USES);
    compression.copy_from_slice(&gzip::USES);
    uses
};

/// The beginning of the name of every executable that the library looks at.
const NAME: &str = "envoy";

/// Programs that start Envoy and are linked statically: no library is ever in them. (Envoy Gateway's begins like Envoy's name.)
const STARTERS: [&str; 4] = ["func-e", "pilot-agent", "consul", "consul-dataplane"];

impl Accelerator for Envoy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Envoy's TLS handshakes in batches of eight, and its gzip and gunzip by faster engines"
    }

    fn library(&self) -> &'static str {
        "libhasten_envoy.so"
    }

    fn uses(&self) -> &'static [&'static str] {
        &USES
    }

    fn judge_host(&self, cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Reason> {
        let switch = |half| surroundings.kill_switch(half).or_else(|| config.leaves_out(half));
        let handshakes = switch(Tls.name())
            .map_or_else(|| vec![tls::lanes(cpu, surroundings.deny_ifma)], |switch| vec![switch]);
        let compression = switch(Gzip.name())
            .map_or_else(|| Gzip.judge_host(cpu, config, surroundings), |switch| vec![switch]);
        match (obstacle(&handshakes), obstacle(&compression)) {
            (Some(why), None) => [vec![without("its handshakes", &why)], compression].concat(),
            (None, Some(why)) => [handshakes, vec![without("its compression", &why)]].concat(),
            // One switch for both is one reason.
            (Some(one), Some(other)) if one == other => handshakes,
            _ => [handshakes, compression].concat(),
        }
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        let name = program.name();
        if !is_envoy(program) {
            let waits =
                Reason::idle(format!("{name} is not Envoy: the library waits for one that {name} starts"));
            return vec![if leads_to_envoy(program) { waits } else { waits.aside() }];
        }
        let accepts = preload::accepts(program);
        let build = (accepts.side == Side::For).then(|| build(program, &name));
        [accepts].into_iter().chain(build).collect()
    }

    fn regards(&self, program: &Program) -> bool {
        starts_envoy(program)
    }

    fn concerns(&self, program: &Program) -> bool {
        leads_to_envoy(program)
    }

    fn environment(&self, config: &Config, surroundings: &Surroundings) -> Vec<(&'static str, OsString)> {
        let halves: [&dyn Accelerator; 2] = [&Tls, &Gzip];
        let (left_out, wanted): (Vec<_>, Vec<_>) =
            halves.into_iter().partition(|half| config.leaves_out(half.name()).is_some());
        let settings = wanted.into_iter().flat_map(|half| half.environment(config, surroundings));
        let mut variables: Vec<_> = settings.collect();
        if !left_out.is_empty() {
            // They have no libraries of their own in Envoy that could be left out.
            let names = left_out.iter().map(|half| half.name().to_owned());
            let all: Vec<_> = surroundings.disable.iter().cloned().chain(names).collect();
            variables.push((DISABLE, all.join(",").into()));
        }
        variables
    }
}

/// What keeps one half from working.
fn obstacle(reasons: &[Reason]) -> Option<String> {
    reasons.iter().find(|reason| reason.side == Side::Against).map(|reason| reason.text.clone())
}

/// The other half works without it.
fn without(half: &str, why: &str) -> Reason {
    Reason::favour(format!("without {half}: {why}"))
}

/// Whether the program is Envoy by its name, as the library goes by it. What it is, its code says.
pub(super) fn is_envoy(program: &Program) -> bool {
    program.name().starts_with(NAME)
}

/// Whether Envoy is what its user wants.
pub(super) fn leads_to_envoy(program: &Program) -> bool {
    is_envoy(program) || STARTERS.contains(&program.name().as_str())
}

/// Whether it may start Envoy: a script of its name, such as the one from PyPI, a program for that, or one that starts others.
fn starts_envoy(program: &Program) -> bool {
    let is_named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME));
    program.is_launcher() || leads_to_envoy(program) || program.scripts.iter().any(is_named)
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
