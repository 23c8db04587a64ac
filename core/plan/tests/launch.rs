//! The outcome of a plan: the command line, the variables and the file that is executed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hasten_plan::process::CpuList;
use hasten_plan::{Config, Launch, Plan, Surroundings};
use hasten_probe::program::elf::Machine;
use hasten_probe::program::kind::Kind;
use hasten_probe::{Environment, Probe, Program};

const FILE: &str = "[run]\nonly = []\n[process]\ncpus = '0'\nthp = 'never'\nmalloc_arenas = 2\n\
                    [node]\noptions = ['--max-semi-space-size=32', '--maglev']\n[environment]\nA = 'b'\n";

/// A dynamically linked program of every machine, as if it were Node.js.
fn node() -> Program {
    let program = Program::inspect(OsStr::new("sleep"), &Environment::current()).unwrap();
    Program { kind: Kind::Node, ..program }
}

fn launch(program: &Program, file: &str, surroundings: &Surroundings) -> Launch {
    let mut config = Config::parse(file, Path::new("hasten.toml")).unwrap();
    config.named = true;
    let plan = Plan::new(&Probe::new().cpu(), program, &config, surroundings);
    plan.launch(program, &["node", "app.js"].map(OsString::from))
}

#[test]
fn it_holds_all_that_is_set() {
    let surroundings =
        Surroundings { ld_preload: Some("/usr/lib/hasten/libhasten.so".into()), ..Surroundings::default() };
    let launch = launch(&node(), FILE, &surroundings);
    assert_eq!(launch.argv, ["node", "--maglev", "app.js"]);
    assert_eq!((launch.cpus, launch.no_thp, launch.file), (CpuList::parse("0"), true, None));
    let variables: Vec<_> =
        launch.env.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    let set = |value: &'static str| Some(OsStr::new(value));
    // Composed variables come first; a variable that only hasten had set is removed.
    let expected = [
        ("LD_PRELOAD", None),
        ("NODE_OPTIONS", set("--max-semi-space-size=32")),
        ("A", set("b")),
        ("MALLOC_ARENA_MAX", set("2")),
    ];
    assert_eq!(variables, expected);
}

#[test]
fn without_anything_to_set_the_command_stays_as_it_is() {
    let launch = launch(&node(), "[run]\nonly = []", &Surroundings::default());
    assert_eq!(launch, Launch { argv: ["node", "app.js"].map(OsString::from).into(), ..Launch::default() });
}

/// A shell would read it as a script, but what to do with a script is up to a shell.
#[test]
fn a_program_for_another_machine_is_executed_by_its_file() {
    let foreign = Program { machine: Machine::Aarch64, ..node() };
    let file = |program: &Program| launch(program, "", &Surroundings::default()).file;
    assert_eq!(file(&foreign).as_deref(), Some(foreign.file.as_path()));
    assert_eq!(file(&Program { scripts: vec!["/app/start".into()], ..foreign }), None);
}
