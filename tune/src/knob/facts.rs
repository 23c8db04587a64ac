//! What knobs need to know about the service and the machine, gathered once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use hasten_bench::affinity;
use hasten_plan::process::{self, Allocator};
use hasten_plan::tunings::{Measurements, Subject, TuningState, tunings};
use hasten_plan::{Config, Decision, Plan, Surroundings, Verdict};
use hasten_probe::program::kind::Kind;
use hasten_probe::program::node::NodeBuild;
use hasten_probe::program::{Libc, Linkage};
use hasten_probe::{Environment, Probe, Program, ProgramError};

use crate::journal::System;
use crate::service::Launch;

const MIB: u64 = 1 << 20;

/// The tunings of `hasten check -- node` that are knobs, by name.
const TUNINGS: [(&str, &str); 4] = [
    ("semi-space", "semi-space"),
    ("huge-pages", "large-pages"),
    ("bytecode-cache", "node"),
    ("cpuset", "cpus"),
];
pub(super) const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

#[derive(Debug)]
pub struct Facts {
    pub command: Vec<OsString>,
    pub program: Program,
    /// The environment that the service would see.
    pub environment: BTreeMap<OsString, OsString>,
    pub accelerators: Vec<Verdict>,
    /// If the command itself is Node.js, or a script for it.
    pub node: Option<NodeFacts>,
    /// Why neither the command nor what it starts is a Node.js that `NODE_OPTIONS` reaches.
    pub no_node: Option<String>,
    /// Names of the knobs from which `hasten check` expects a benefit.
    pub promising: Vec<&'static str>,
    pub machine: Machine,
    pub allow_system: bool,
    /// Whether the load opens TLS connections, if that is known.
    pub tls_load: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub release: String,
    pub major: u32,
    pub semi_space_mib: u64,
    pub old_space_mib: u64,
    /// Whether options can follow the command's first word: it is `node`, not `npm`.
    pub takes_arguments: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that the service may use.
    pub cpus: Vec<usize>,
    /// The CPUs of each node that has any.
    pub numa_nodes: Vec<Vec<usize>>,
    pub memory_mib: Option<u64>,
    /// Those that can be preloaded.
    pub allocators: Vec<Allocator>,
    /// `always`, `madvise` or `never`.
    pub thp: Option<String>,
    pub is_root: bool,
}

impl Facts {
    /// Examines the command, and asks a Node.js how it was built.
    pub fn of(launch: &Launch, allow_system: bool) -> Result<Self, ProgramError> {
        let environment = environment(launch);
        let variable = |name: &str| environment.get(OsStr::new(name)).cloned();
        let paths = Environment { path: variable("PATH"), library_path: variable("LD_LIBRARY_PATH") };
        let first = launch.command.first().map_or(OsStr::new(""), |word| word);
        let program = Program::inspect(first, &paths)?;
        let arguments = launch.command.get(1..).unwrap_or_default().to_vec();
        // The libraries are this command's, the rest is the service's: a unit has an environment of its own.
        let surroundings = Surroundings {
            arguments,
            library_directory: Surroundings::current().library_directory,
            ..Surroundings::of(environment.clone())
        };
        let plan = Plan::new(&Probe::new().cpu(), &program, &Config::default(), &surroundings);
        let no_node = process::reaches_node(&program).err();
        let is_node = program.kind == Kind::Node && no_node.is_none();
        let build = is_node.then(|| NodeBuild::ask(&program, &paths).ok()).flatten();
        let promising = promising(&plan, build.as_ref(), &surroundings);
        let node = build.map(|build| NodeFacts {
            major: build.major(),
            semi_space_mib: build.semi_space_bytes / MIB,
            old_space_mib: build.old_space_bytes() / MIB,
            release: build.release,
            takes_arguments: program.scripts.is_empty(),
        });
        Ok(Self {
            command: launch.command.clone(),
            no_node,
            program,
            environment,
            accelerators: plan.accelerators,
            promising,
            node,
            machine: Machine::read(&System::default()),
            allow_system,
            tls_load: None,
        })
    }

    /// Why a knob that sets a variable has no effect here.
    pub(super) fn unset(&self, variables: &[&str]) -> Result<(), String> {
        match variables.iter().find(|name| self.environment.contains_key(OsStr::new(name))) {
            Some(name) => Err(format!("{name} is set already, and what its user says wins")),
            None => Ok(()),
        }
    }

    pub(super) fn accelerator(&self, name: &str) -> Option<&Verdict> {
        self.accelerators.iter().find(|verdict| verdict.name == name)
    }

    /// Why no library can be preloaded into the service.
    pub(super) fn takes_preload(&self) -> Result<(), String> {
        let name = self.program.name();
        match self.program.linkage {
            _ if self.program.privilege.secure_exec => {
                Err(format!("{name} gains privileges at start, so it ignores LD_PRELOAD"))
            }
            Linkage::Dynamic { libc: Libc::Glibc, .. } => Ok(()),
            Linkage::Dynamic { .. } => Err(format!("{name} is not linked with glibc")),
            Linkage::Static => Err(format!("{name} is statically linked")),
            Linkage::Unknown { ref why } => Err(format!("cannot tell what {name} is: {why}")),
        }
    }
}

impl Machine {
    fn read(system: &System) -> Self {
        let cpus = affinity::allowed();
        let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
        let is_node = |path: &PathBuf| {
            path.file_name()
                .and_then(OsStr::to_str)
                .and_then(|name| name.strip_prefix("node"))
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut nodes: Vec<_> = nodes.map(|entry| entry.path()).filter(is_node).collect();
        nodes.sort();
        let cpus_of = |node: &PathBuf| {
            let list = fs::read_to_string(node.join("cpulist")).unwrap_or_default();
            let all = process::CpuList::parse(list.trim()).map(|list| list.0).unwrap_or_default();
            all.into_iter().filter(|cpu| cpus.contains(cpu)).collect::<Vec<_>>()
        };
        Self {
            numa_nodes: nodes.iter().map(cpus_of).filter(|cpus| !cpus.is_empty()).collect(),
            memory_mib: Probe::new().memory_limit_bytes().map(|bytes| bytes / MIB),
            allocators: Allocator::ALL
                .into_iter()
                .filter(|allocator| allocator.library().is_some())
                .collect(),
            thp: system.setting(THP).ok(),
            is_root: fs::metadata("/proc/self")
                .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0),
            cpus,
        }
    }
}

/// What `hasten check` recommends: accelerators that work on this program, and tunings that can be applied to it.
fn promising(plan: &Plan, build: Option<&NodeBuild>, surroundings: &Surroundings) -> Vec<&'static str> {
    let works = plan.accelerators.iter().filter(|verdict| verdict.decision == Decision::Apply);
    let mut names: Vec<&'static str> = works.map(|verdict| verdict.name).collect();
    if let Some(build) = build {
        let (host, cpus_allowed) = (Probe::new().host(), Probe::new().cpus_allowed());
        let measurements = &Measurements::kept();
        let subject = Subject { build, host: &host, plan, surroundings, cpus_allowed, measurements };
        let applicable = tunings(&subject).into_iter().filter(|one| one.state == TuningState::Applicable);
        let knob = |id: &str| TUNINGS.iter().find(|(tuning, _)| *tuning == id).map(|(_, knob)| *knob);
        names.extend(applicable.filter_map(|one| knob(one.id)));
    }
    names
}

fn environment(launch: &Launch) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<_, _> =
        if launch.bare { BTreeMap::new() } else { std::env::vars_os().collect() };
    for (name, value) in &launch.environment {
        match value {
            Some(value) => variables.insert(name.clone(), value.clone()),
            None => variables.remove(name),
        };
    }
    variables.retain(|_, value| !value.is_empty());
    variables
}

#[cfg(test)]
impl Facts {
    /// A program of the test's machine, and a machine of the test's choice.
    pub(super) fn fake(command: &[&str], machine: Machine, node: Option<NodeFacts>) -> Self {
        let mut launch = Launch::new(command.iter().map(OsString::from).collect(), PathBuf::new());
        // Whether or not their libraries were built beside the tests.
        launch.environment.insert("HASTEN_DISABLE".into(), Some("tls,gzip,envoy".into()));
        let facts = Self::of(&launch, false).unwrap();
        let no_node = node.is_none().then(|| format!("{} neither is Node.js nor starts it", command[0]));
        Self { machine, node, no_node, environment: BTreeMap::new(), ..facts }
    }
}

/// Whether an accelerator would be loaded.
pub(super) fn is_useful(verdict: &Verdict) -> bool {
    verdict.decision != Decision::Skip
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a systemd unit says of hasten counts; what the shell of `hasten tune` says does not.
    #[test]
    fn plan_is_of_the_services_environment() {
        let decision = |disable: Option<&str>| {
            let mut launch = Launch::new(vec![OsString::from("/bin/sh")], PathBuf::new());
            launch.bare = true;
            launch.environment = disable
                .map(|list| (OsString::from("HASTEN_DISABLE"), Some(OsString::from(list))))
                .into_iter()
                .collect();
            let facts = Facts::of(&launch, false).unwrap();
            let verdict = facts.accelerator("gzip").unwrap();
            verdict.reasons.iter().map(|reason| reason.text.clone()).collect::<Vec<_>>().join("\n")
        };
        assert!(decision(Some("gzip")).contains("HASTEN_DISABLE"), "{}", decision(Some("gzip")));
        assert!(!decision(None).contains("HASTEN_DISABLE"), "{}", decision(None));
    }
}
