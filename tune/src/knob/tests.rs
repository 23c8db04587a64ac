use super::*;
use crate::profile::Profile;
use crate::space::Candidate;
use hasten_plan::Config;
use hasten_plan::process::Allocator;
use std::collections::BTreeSet;

fn machine() -> Machine {
    Machine {
        cpus: vec![0, 1, 2, 3],
        numa_nodes: vec![vec![0, 1], vec![2, 3]],
        memory_mib: Some(8192),
        allocators: vec![Allocator::Jemalloc],
        thp: Some("madvise".into()),
        is_root: true,
    }
}

fn node(major: u32) -> NodeFacts {
    NodeFacts {
        release: format!("{major}.1.0"),
        major,
        semi_space_mib: 16,
        old_space_mib: 2096,
        takes_arguments: true,
    }
}

/// A program that every machine has, as if it were Node.js.
fn of_node(major: u32) -> Facts {
    Facts::fake(&["sh", "app.js"], machine(), Some(node(major)))
}

fn levels(facts: &Facts, name: &str) -> Result<Vec<String>, String> {
    let knob = registry().iter().find(|knob| knob.name() == name).unwrap();
    knob.levels(facts).map(|levels| levels.iter().map(ToString::to_string).collect())
}

#[test]
fn knobs_have_names_of_their_own_and_say_what_they_are() {
    let names: BTreeSet<_> = registry().iter().map(|knob| knob.name()).collect();
    assert_eq!(names.len(), registry().len());
    for knob in registry() {
        for text in [knob.about(), knob.scope(), knob.cost(), knob.risk().why] {
            assert!(!text.is_empty(), "{}", knob.name());
        }
    }
}

#[test]
fn every_level_of_every_knob_is_a_configuration_that_is_read() {
    let mut facts = of_node(22);
    facts.allow_system = true;
    let mut choices = Choices::of(&facts, vec!["pool=env:POOL=a b,c".parse().unwrap()]);
    // Knobs that depend on the program's libraries do not help a shell, but their settings serve the test.
    choices.knobs.extend(["tls", "gzip"].map(|name| {
        let knob = registry().iter().find(|knob| knob.name() == name).unwrap();
        Choice { knob: Box::new(*knob), levels: vec![Value::stock("off"), Value::On], promising: true }
    }));
    let space = choices.space();
    let stock = Launch::new(facts.command, "hasten".into());
    for (at, choice) in choices.knobs.iter().enumerate() {
        for level in 1..choice.levels.len() {
            let candidate = space.baseline().with(at, level);
            let launch = choices.explained(&candidate, &stock, |_| Some("−1 %".into()));
            let text = launch.profile.to_toml();
            let what = space.describe(&candidate);
            Config::parse(&text, "hasten.toml".as_ref())
                .unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
            let changed = !launch.profile.is_empty() || !launch.system.is_empty();
            assert!(changed, "{what}");
            assert!(
                launch.profile.is_empty() || text.contains(&format!("# {what}: −1 %\n")),
                "{what}\n{text}"
            );
        }
    }
    assert_eq!(choices.launch(&space.baseline(), &stock).profile, Profile::default());
}

#[test]
fn levels_of_v8_follow_from_its_defaults_and_the_memory() {
    let facts = of_node(20);
    assert_eq!(levels(&facts, "semi-space").unwrap(), ["16M (default)", "8M", "32M", "64M", "128M"]);
    assert_eq!(levels(&facts, "old-space").unwrap(), ["2096M (default)", "4096M", "6144M"]);
    assert_eq!(levels(&facts, "maglev").unwrap(), ["off (default)", "on"]);
    assert_eq!(levels(&of_node(24), "maglev").unwrap(), ["on (default)", "off"]);
    let mut small = of_node(20);
    small.machine.memory_mib = Some(256);
    assert_eq!(levels(&small, "semi-space").unwrap(), ["16M (default)", "8M", "32M"]);
    assert_eq!(levels(&facts, "cpus").unwrap(), ["all", "0", "0-1", "2-3"]);
}

#[test]
fn what_does_not_apply_says_why() {
    let mut facts = of_node(26);
    let why = |facts: &Facts, name: &str| levels(facts, name).unwrap_err();
    assert_eq!(why(&facts, "large-pages"), "Node.js 26.1.0 no longer supports --use-largepages");
    assert_eq!(why(&of_node(20), "compile-cache"), "Node.js 20.1.0 has none; it came with 22.1");
    assert!(why(&of_node(18), "maglev").contains("has none"));
    assert!(why(&facts, "system-thp").contains("--allow-system"));
    facts.environment.insert("UV_THREADPOOL_SIZE".into(), "8".into());
    assert!(why(&facts, "threadpool").starts_with("UV_THREADPOOL_SIZE is set already"));
    facts.environment.insert("NODE_OPTIONS".into(), "--max_semi_space_size=8".into());
    assert!(why(&facts, "semi-space").starts_with("NODE_OPTIONS says"));
    facts.machine = Machine { cpus: vec![0], ..Machine::default() };
    assert_eq!(why(&facts, "cpus"), "there is only one CPU");
    assert!(why(&facts, "allocator").starts_with("none is installed"));
    let other = Facts::fake(&["true"], machine(), None);
    assert_eq!(why(&other, "semi-space"), "true neither is Node.js nor starts it");
}

#[test]
fn a_knob_that_cannot_be_turned_is_left_out() {
    let facts = Facts::fake(&["true"], machine(), None);
    let mut choices = Choices::of(&facts, Vec::new());
    let left_out = |choices: &Choices, name: &str| choices.left_out.iter().any(|left| left.name == name);
    assert!(left_out(&choices, "semi-space") && !left_out(&choices, "malloc-arenas"));
    choices.retain(|name| name != "malloc-arenas", "--without names it");
    assert!(left_out(&choices, "malloc-arenas"));
    assert_eq!(choices.space().dimensions.len(), choices.knobs.len());
}

#[test]
fn several_knobs_make_one_profile() {
    let facts = of_node(20);
    let choices = Choices::of(&facts, Vec::new());
    let at = |name: &str| choices.knobs.iter().position(|choice| choice.knob.name() == name).unwrap();
    let candidate = choices.space().baseline().with(at("semi-space"), 2).with(at("maglev"), 1);
    let stock = Launch::new(facts.command, "hasten".into());
    let profile = choices.launch(&candidate, &stock).profile;
    let options = profile.get("node", "options").unwrap().as_array().unwrap();
    assert_eq!(options.len(), 2);
    assert_eq!(Candidate(vec![0; choices.knobs.len()]), choices.space().baseline());
}

#[test]
fn handshakes_are_not_tried_under_a_load_that_makes_none() {
    for load in [Some(false), Some(true), None] {
        let facts = Facts { tls_load: load, ..Facts::fake(&["true"], machine(), None) };
        for name in ["tls", "tls-break-even"] {
            let why = levels(&facts, name).unwrap_err();
            assert_eq!(why.contains("the load opens no TLS connection"), load == Some(false), "{why}");
        }
    }
}

#[test]
fn what_check_expects_to_help_is_tried_first() {
    let mut facts = of_node(20);
    facts.promising = vec!["semi-space", "large-pages"];
    let choices = Choices::of(&facts, vec!["pool=env:POOL=4,8".parse().unwrap()]);
    let space = choices.space();
    let name = |&(knob, level): &(usize, usize)| space.describe(&space.baseline().with(knob, level));
    let order: Vec<String> = space.in_order().iter().map(name).collect();
    assert_eq!(
        order[..7],
        [
            "semi-space=64M",
            "large-pages=on",
            "pool=4",
            "semi-space=128M",
            "pool=8",
            "old-space=4096M",
            "always-sparkplug=on"
        ],
        "{order:?}"
    );
    let count: usize = space.dimensions.iter().map(|dimension| dimension.levels.len() - 1).sum();
    assert_eq!(order.len(), count, "each once");
    assert!(
        order.iter().position(|one| one == "semi-space=8M")
            > order.iter().position(|one| one == "threadpool=2")
    );
}
