//! Settings of the process: applied, or left out with a reason.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hasten_plan::process::CpuList;
use hasten_plan::{Config, Plan, Surroundings};
use hasten_probe::program::kind::Kind;
use hasten_probe::{Environment, Probe, Program};

/// A dynamically linked program of every machine, as if it were Node.js.
fn program(kind: Kind) -> Program {
    let program = Program::inspect(OsStr::new("sleep"), &Environment::current()).unwrap();
    Program { kind, ..program }
}

fn config(text: &str) -> Config {
    let mut config = Config::parse(&format!("[run]\nonly = []\n{text}"), Path::new("hasten.toml")).unwrap();
    config.named = true;
    config
}

fn plan(kind: Kind, text: &str, surroundings: &Surroundings) -> Plan {
    Plan::new(&Probe::new().cpu(), &program(kind), &config(text), surroundings)
}

/// The keys that are left out, with the reason.
fn left_out(plan: &Plan) -> Vec<(&str, &str)> {
    let settings = plan.settings.list.iter();
    settings.filter_map(|setting| Some((setting.key.as_str(), setting.left_out.as_deref()?))).collect()
}

fn variable<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    plan.settings.variables.get(name).map(|value| value.to_str().unwrap())
}

fn node_options(plan: &Plan) -> Option<&OsString> {
    plan.environment.iter().find(|(name, _)| *name == "NODE_OPTIONS").and_then(|(_, value)| value.as_ref())
}

const ALL: &str = "[process]\ncpus = '0'\nthp = 'never'\nmalloc_arenas = 2\nmalloc_hugepages = true\nmalloc_keep = 64\n\
                   [node]\noptions = ['--max-semi-space-size=32', '--maglev']\nthreadpool = 8\n[environment]\nA = 'b c'\n";

#[test]
fn what_is_configured_is_applied() {
    let plan = plan(Kind::Node, ALL, &Surroundings::default());
    assert_eq!(left_out(&plan), []);
    assert!(plan.applies() && plan.promises());
    let settings = &plan.settings;
    assert_eq!((settings.cpus.clone(), settings.no_thp), (CpuList::parse("0"), true));
    assert_eq!(settings.arguments, ["--maglev"]);
    assert_eq!(node_options(&plan).unwrap(), "--max-semi-space-size=32");
    for (name, value) in [
        ("MALLOC_ARENA_MAX", "2"),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        ("MALLOC_TRIM_THRESHOLD_", "67108864"),
        ("MALLOC_MMAP_THRESHOLD_", "33554432"),
        ("UV_THREADPOOL_SIZE", "8"),
        ("A", "b c"),
    ] {
        assert_eq!(variable(&plan, name), Some(value), "{name}");
    }
}

#[test]
fn the_users_own_word_wins() {
    let set = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let surroundings = Surroundings {
        environment: [set("MALLOC_ARENA_MAX", "1"), set("A", "own")].into(),
        node_options: Some("--max_semi_space_size=4".into()),
        arguments: vec!["--no-maglev".into(), "app.js".into()],
        ..Surroundings::default()
    };
    let plan = plan(Kind::Node, ALL, &surroundings);
    assert_eq!(
        left_out(&plan),
        [
            ("[process] malloc_arenas", "MALLOC_ARENA_MAX=1 in the environment wins"),
            ("[node] options", "NODE_OPTIONS says --max_semi_space_size=4 already"),
            ("[node] options", "the command line says --no-maglev already"),
            ("[environment]", "A=own in the environment wins"),
        ]
    );
    assert_eq!((node_options(&plan), variable(&plan, "A")), (None, None));
    // Everything after `--` is for the application.
    let arguments = vec!["--".into(), "--no-maglev".into()];
    let plan = self::plan(Kind::Node, ALL, &Surroundings { arguments, ..Surroundings::default() });
    assert_eq!(left_out(&plan), []);
}

#[test]
fn what_does_not_fit_the_machine_is_left_out() {
    let surroundings =
        Surroundings { cpus: CpuList::parse("1-2"), memory_limit: Some(64 << 20), ..Surroundings::default() };
    let plan = plan(Kind::Node, ALL, &surroundings);
    assert_eq!(
        left_out(&plan),
        [
            ("[process] cpus", "CPU 0 is not one of those that may be used here (1-2)"),
            ("[node] options", "it may take 96 MiB, and 64 MiB are all that there are"),
        ]
    );
    assert_eq!(plan.settings.cpus, None);
}

#[test]
fn options_of_node_are_for_node() {
    let plan_of = |kind| plan(kind, ALL, &Surroundings::default());
    let nginx = plan_of(Kind::Nginx);
    let why = "sleep neither is Node.js nor starts it";
    let expected = [("[node] options", why), ("[node] options", why), ("[node] threadpool", why)];
    assert_eq!(left_out(&nginx), expected);
    let other = plan_of(Kind::Other);
    let why = "NODE_OPTIONS may not hold it, and sleep is not node itself";
    assert_eq!(left_out(&other), [("[node] options", why)]);
}

#[test]
fn variables_of_a_file_that_nobody_named_are_left_out() {
    let mut unnamed = config(ALL);
    unnamed.named = false;
    let surroundings = Surroundings::default();
    let plan = Plan::new(&Probe::new().cpu(), &program(Kind::Node), &unnamed, &surroundings);
    assert_eq!(left_out(&plan), [("[environment]", "it counts only in a file that --config names")]);
}

#[test]
fn the_kill_switch_leaves_out_everything() {
    let disable = |names: &str| Surroundings { disable: Some(names.into()), ..Surroundings::default() };
    let all = plan(Kind::Node, ALL, &disable("all"));
    assert_eq!(left_out(&all).len(), all.settings.list.len());
    assert!(!all.applies() && all.settings.variables.is_empty());
    let node = plan(Kind::Node, ALL, &disable("node"));
    assert!(left_out(&node).iter().all(|(key, _)| key.starts_with("[node]")), "{:?}", left_out(&node));
    assert_eq!(left_out(&node).len(), 3);
}
