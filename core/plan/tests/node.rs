//! Plans for Node.js: which programs get the plugin, and what `NODE_OPTIONS` becomes.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hasten_plan::config::Request;
use hasten_plan::{Config, Decision, GcAdvice, Plan, Side, Surroundings, Verdict};
use hasten_probe::{Cpu, Environment, Program};

/// A directory with the plugin, and programs of any name.
struct Place {
    directory: tempfile::TempDir,
    surroundings: Surroundings,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let node = directory.path().join("node");
        std::fs::create_dir(&node).unwrap();
        std::fs::write(node.join("register.js"), "").unwrap();
        std::fs::write(node.join("package.json"), r#"{ "name": "hasten" }"#).unwrap();
        std::fs::create_dir(directory.path().join("bin")).unwrap();
        let surroundings = Surroundings {
            library_directory: Some(directory.path().to_owned()),
            cache_directory: Some(directory.path().join("cache")),
            ..Surroundings::default()
        };
        Self { directory, surroundings }
    }

    fn plugin(&self) -> PathBuf {
        self.directory.path().join("node/register.js")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("bin").join(name)
    }

    /// A copy of a program, under another name.
    fn program(&self, name: &str) -> Program {
        std::fs::copy("/bin/true", self.path(name)).unwrap();
        self.inspect(name)
    }

    fn inspect(&self, name: &str) -> Program {
        let path = std::env::join_paths([&self.path(""), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        Program::inspect(OsStr::new(name), &Environment { path: Some(path), library_path: None }).unwrap()
    }

    fn plan(&self, name: &str) -> Plan {
        self.plan_with(name, "", &self.surroundings)
    }

    fn plan_with(&self, name: &str, config: &str, surroundings: &Surroundings) -> Plan {
        let config = Config::parse(config, Path::new("hasten.toml")).unwrap();
        Plan::new(&Cpu::default(), &self.program(name), &config, surroundings)
    }
}

fn node(plan: &Plan) -> &Verdict {
    plan.accelerators.iter().find(|verdict| verdict.name == "node").unwrap()
}

fn reasons(plan: &Plan, side: Side) -> String {
    node(plan).reasons(side).map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ")
}

fn variable(plan: &Plan, name: &str) -> Option<String> {
    let value = plan.environment.iter().find(|(known, _)| *known == name)?.1.clone();
    value.map(|value| value.into_string().unwrap())
}

/// A configuration with advice for these options.
fn advised(options: &[&str]) -> Config {
    let advice = serde_json::json!([{ "title": "Fewer scavenges", "node_options": options }]);
    let text = serde_json::json!({ "schema": 1, "advice": advice }).to_string();
    let mut config = Config::default();
    config.gc_advice = Some(GcAdvice::parse(text.as_bytes(), Path::new("advice.json"), None).unwrap());
    config
}

#[test]
fn node_gets_the_plugin_by_node_options_and_not_by_ld_preload() {
    let place = Place::new();
    let plan = place.plan("node");
    assert_eq!(node(&plan).decision, Decision::Apply);
    assert_eq!(node(&plan).library, Some(place.plugin()));
    assert_eq!(plan.node_plugin, Some(place.plugin()));
    assert_eq!(plan.preload, [] as [PathBuf; 0]);
    let expected = OsString::from(format!("--require {}", place.plugin().display()));
    assert_eq!(plan.environment, [("NODE_OPTIONS", Some(expected))]);
    assert!(plan.promises());
    let why = reasons(&plan, Side::For);
    let cache = place.directory.path().join("cache/node");
    assert!(why.contains(&format!("its cache is in {}, 256 MiB at most", cache.display())), "{why}");
}

#[test]
fn what_finally_runs_decides() {
    let place = Place::new();
    place.program("node");
    let cli = place.path("npm-cli.js");
    std::fs::write(&cli, "#!/usr/bin/env node\n").unwrap();
    std::fs::set_permissions(&cli, PermissionsExt::from_mode(0o755)).unwrap();
    symlink(&cli, place.path("npm")).unwrap();
    let program = place.inspect("npm");
    let plan = Plan::new(&Cpu::default(), &program, &Config::default(), &place.surroundings);
    assert_eq!(program.executable, place.path("node").canonicalize().unwrap());
    assert_eq!(node(&plan).decision, Decision::Apply);
}

#[test]
fn what_may_start_node_has_it_on_standby_and_a_launcher_is_believed_to() {
    let place = Place::new();
    for (name, promises) in [("sh", true), ("env", true), ("make", true), ("server", false)] {
        let plan = place.plan(name);
        assert_eq!(node(&plan).decision, Decision::Standby, "{name}");
        assert!(variable(&plan, "NODE_OPTIONS").is_some(), "{name}");
        assert_eq!(plan.promises(), promises, "{name}");
        assert_eq!(node(&plan).concerns, promises, "{name}");
    }
}

#[test]
fn servers_that_start_nothing_are_left_alone_without_a_word() {
    let place = Place::new();
    for name in ["nginx", "haproxy", "envoy", "redis-server"] {
        let plan = place.plan(name);
        assert_eq!(node(&plan).decision, Decision::Skip, "{name}");
        assert!(!node(&plan).concerns, "{name}");
        assert_eq!(plan.environment, [], "{name}");
    }
}

#[test]
fn options_that_a_plugin_would_interfere_with_keep_it_out() {
    let place = Place::new();
    let judged = |options: &str, arguments: &[&str]| {
        let surroundings = Surroundings {
            node_options: Some(options.into()),
            arguments: arguments.iter().map(Into::into).collect(),
            ..place.surroundings.clone()
        };
        let plan = place.plan_with("node", "", &surroundings);
        (node(&plan).decision, reasons(&plan, Side::Against))
    };
    for (options, arguments, why) in [
        ("", &["--experimental-permission", "--allow-fs-read=/app/*", "app.js"][..], "permission model"),
        ("--permission", &["app.js"], "permission model"),
        ("", &["--env-file=.env", "app.js"], "--env-file"),
        ("", &["--env-file-if-exists", ".env", "app.js"], "--env-file"),
        ("", &["-c", "cd /app; exec node --permission app.js"], "permission model"),
    ] {
        let (decision, said) = judged(options, arguments);
        assert_eq!(decision, Decision::Skip, "{options} {arguments:?}");
        assert!(said.contains(why), "{said}");
    }
    for arguments in [&["app.js", "--", "--env-file=.env"][..], &["--allow-fs-read=/app/*", "app.js"]] {
        assert_eq!(judged("", arguments).0, Decision::Apply, "{arguments:?}");
    }
}

#[test]
fn scripts_that_give_node_such_options_keep_it_out_as_well() {
    let place = Place::new();
    let judged = |text: &str| {
        std::fs::copy("/bin/true", place.path("node")).unwrap();
        std::fs::write(place.path("start"), text).unwrap();
        std::fs::set_permissions(place.path("start"), PermissionsExt::from_mode(0o755)).unwrap();
        let config = Config::parse("", Path::new("hasten.toml")).unwrap();
        let plan = Plan::new(&Cpu::default(), &place.inspect("start"), &config, &place.surroundings);
        (node(&plan).decision, reasons(&plan, Side::Against))
    };
    for (text, why) in [
        ("#!/usr/bin/env -S node --experimental-permission --allow-fs-read=/app/*\n", "permission model"),
        ("#!/bin/sh\ncd /app\nexec node --env-file=.env server.js\n", "--env-file"),
        ("#!/bin/sh\nexec \"/usr/bin/node\" --permission server.js \"$@\"\n", "permission model"),
    ] {
        let (decision, said) = judged(text);
        assert_eq!(decision, Decision::Skip, "{text}");
        assert!(said.contains(why), "{said}");
    }
    for text in [
        "#!/usr/bin/env -S node --title=x\n// node run.js --permission is mentioned\n",
        "#!/bin/sh\ntool --permission\nexec node server.js\n",
    ] {
        assert_ne!(judged(text).0, Decision::Skip, "{text}");
    }
}

#[test]
fn other_run_times_are_left_alone_and_told_why() {
    let place = Place::new();
    for (name, why) in [("bun", "is not Node.js"), ("deno", "is not Node.js"), ("electron", "is Electron")] {
        let plan = place.plan(name);
        assert_eq!(node(&plan).decision, Decision::Skip, "{name}");
        assert!(node(&plan).concerns && reasons(&plan, Side::Against).contains(why), "{name}");
    }
}

#[test]
fn the_users_own_options_stay_behind_ours_and_ours_is_never_there_twice() {
    let place = Place::new();
    let ours = format!("--require {}", place.plugin().display());
    let with = |present: &str, config: &str| {
        let surroundings = Surroundings { node_options: Some(present.into()), ..place.surroundings.clone() };
        place.plan_with("node", config, &surroundings)
    };
    let own = r#"--title="a b"  -r dd-trace/init"#;
    assert_eq!(variable(&with(own, ""), "NODE_OPTIONS"), Some(format!("{ours} {own}")));
    let both = format!("{ours} {own}");
    assert_eq!(with(&both, "").environment.iter().find(|(name, _)| *name == "NODE_OPTIONS"), None);
    let off = "[node]\nenabled = false";
    assert_eq!(variable(&with(&format!("-x {ours}"), off), "NODE_OPTIONS"), Some("-x".into()));
    assert_eq!(with(&ours, off).environment, [("NODE_OPTIONS", None)]);
    assert_eq!(with(own, off).environment, []);
}

#[test]
fn a_path_with_spaces_and_quotes_is_carried() {
    let place = Place::new();
    let odd = place.directory.path().join(r#"with space and "quote""#);
    std::fs::create_dir(&odd).unwrap();
    std::fs::rename(place.directory.path().join("node"), odd.join("node")).unwrap();
    let surroundings = Surroundings { library_directory: Some(odd.clone()), ..place.surroundings.clone() };
    let value = variable(&place.plan_with("node", "", &surroundings), "NODE_OPTIONS").unwrap();
    let escaped = odd.to_str().unwrap().replace('"', r#"\""#);
    assert_eq!(value, format!(r#"--require "{escaped}/node/register.js""#));
}

#[test]
fn switches_leave_it_out() {
    let place = Place::new();
    let disabled = Surroundings { disable: Some("node".into()), ..place.surroundings.clone() };
    assert_eq!(place.plan_with("node", "", &disabled).environment, []);
    assert!(disabled.unknown_disabled().is_empty());
    let mut config = Config::default();
    config.prefer(Request { without: vec!["node".into()], ..Request::default() });
    let plan = Plan::new(&Cpu::default(), &place.program("node"), &config, &place.surroundings);
    assert_eq!(node(&plan).decision, Decision::Skip);
    config.prefer(Request { only: Some(vec!["node".into()]), ..Request::default() });
    let plan = Plan::new(&Cpu::default(), &place.program("node"), &config, &place.surroundings);
    assert_eq!(node(&plan).decision, Decision::Apply);
}

#[test]
fn settings_of_the_file_reach_the_process_unless_the_environment_has_its_own() {
    let place = Place::new();
    let file = "[node]\ncache = 'read'\ngc_record = true";
    let plan = place.plan_with("node", file, &place.surroundings);
    assert_eq!(variable(&plan, "HASTEN_NODE_CACHE").as_deref(), Some("read"));
    assert_eq!(variable(&plan, "HASTEN_NODE_GC").as_deref(), Some("record"));
    let own = Surroundings {
        node_cache: Some("0".into()),
        node_gc: Some("0".into()),
        ..place.surroundings.clone()
    };
    let plan = place.plan_with("node", file, &own);
    assert_eq!((variable(&plan, "HASTEN_NODE_CACHE"), variable(&plan, "HASTEN_NODE_GC")), (None, None));
    assert!(reasons(&plan, Side::For).contains("start-up is not cached (HASTEN_NODE_CACHE=0)"));
    let plan = place.plan_with("node", "[node]\ncache = 'off'", &place.surroundings);
    assert_eq!(variable(&plan, "HASTEN_NODE_CACHE").as_deref(), Some("0"));
}

#[test]
fn variables_that_the_plugin_would_ignore_are_refused() {
    type Set = fn(&mut Surroundings, OsString);
    let variables: [(Set, &[&str], &[&str]); 3] = [
        (|set, value| set.node_cache = Some(value), &["", "0", "1", "read"], &["yes", "on"]),
        (|set, value| set.node_cache_limit = Some(value), &["", "1", "65536"], &["0", "65537", "1G"]),
        (|set, value| set.node_gc = Some(value), &["", "0", "record"], &["1", "recrod"]),
    ];
    for (set, valid, invalid) in variables {
        let validate = |value: &str| {
            let mut surroundings = Surroundings::default();
            set(&mut surroundings, value.into());
            surroundings.validate()
        };
        assert!(valid.iter().all(|value| validate(value).is_ok()), "{valid:?}");
        assert!(invalid.iter().all(|value| validate(value).is_err()), "{invalid:?}");
    }
}

#[test]
fn advice_goes_between_the_plugin_and_the_users_own_options() {
    let place = Place::new();
    let config = advised(&["--max-semi-space-size=32"]);
    let program = place.program("node");
    let surroundings = Surroundings { node_options: Some("--title=x".into()), ..place.surroundings.clone() };
    let plan = Plan::new(&Cpu::default(), &program, &config, &surroundings);
    let ours = format!("--require {}", place.plugin().display());
    assert_eq!(
        variable(&plan, "NODE_OPTIONS").unwrap(),
        format!("{ours} --max-semi-space-size=32 --title=x")
    );
    assert_eq!(plan.gc_advice[0].setting.because, "Fewer scavenges");
    assert_eq!(plan.gc_advice[0].left_out, None);
}

#[test]
fn what_the_user_has_set_already_wins_over_advice() {
    let place = Place::new();
    let program = place.program("node");
    let config = advised(&["--max-semi-space-size=32", "--max-old-space-size=512"]);
    let left_out = |options: &str, arguments: &[&str]| {
        let surroundings = Surroundings {
            node_options: Some(options.into()),
            arguments: arguments.iter().map(OsString::from).collect(),
            ..place.surroundings.clone()
        };
        let plan = Plan::new(&Cpu::default(), &program, &config, &surroundings);
        plan.gc_advice.into_iter().map(|advised| advised.left_out).collect::<Vec<_>>()
    };
    assert_eq!(left_out("", &["app.js", "--", "--max-semi-space-size=1"]), [None, None]);
    let by_options = "NODE_OPTIONS says --max_semi_space_size=8 already";
    assert_eq!(left_out("-r x --max_semi_space_size=8", &[]), [Some(by_options.into()), None]);
    let by_arguments = "the command line says --max-old-space-size-percentage=50 already";
    let arguments = ["--max-old-space-size-percentage=50", "app.js"];
    assert_eq!(left_out("", &arguments), [None, Some(by_arguments.into())]);
    assert!(left_out("--max-heap-size=900", &[]).iter().all(Option::is_some));
}

#[test]
fn advice_needs_no_plugin_but_the_kill_switch_and_a_foreign_program_stop_it() {
    let place = Place::new();
    let config = advised(&["--max-semi-space-size=32"]);
    let plan = |name: &str, surroundings: &Surroundings| {
        Plan::new(&Cpu::default(), &place.program(name), &config, surroundings)
    };
    let nowhere = Surroundings { library_directory: None, ..place.surroundings.clone() };
    assert_eq!(variable(&plan("node", &nowhere), "NODE_OPTIONS").unwrap(), "--max-semi-space-size=32");
    let disabled = Surroundings { disable: Some("all".into()), ..place.surroundings.clone() };
    assert_eq!(plan("node", &disabled).environment, []);
    let other = plan("nginx", &place.surroundings);
    assert_eq!(other.environment, []);
    assert_eq!(other.gc_advice[0].left_out.as_deref(), Some("nginx neither is Node.js nor starts it"));
}

#[test]
fn what_node_carries_inside_is_mentioned_only_to_those_who_ask() {
    let place = Place::new();
    let mentioned = |config: &str| {
        let plan = place.plan_with("node", config, &place.surroundings);
        let verdicts = plan.accelerators.iter().filter(|verdict| verdict.concerns);
        verdicts.map(|verdict| verdict.name).collect::<Vec<_>>()
    };
    assert_eq!(mentioned(""), ["node"]);
    assert_eq!(mentioned("[run]\nonly = ['tls']"), ["tls", "node"]);
}

#[test]
fn what_node_carries_inside_is_not_searched_for() {
    let place = Place::new();
    let plan = place.plan("node");
    for (name, why) in [("tls", "does not link libssl"), ("gzip", "does not link libz.so.1")] {
        let verdict = plan.accelerators.iter().find(|verdict| verdict.name == name).unwrap();
        assert_eq!(verdict.decision, Decision::Skip, "{name}");
        assert!(verdict.reasons(Side::Against).any(|reason| reason.text.contains(why)), "{verdict:?}");
    }
}
