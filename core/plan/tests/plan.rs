//! Plans for invented CPUs and real little programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hasten_plan::config::Request;
use hasten_plan::{Config, Decision, Plan, Side, Surroundings, Verdict};
use hasten_probe::host::cpu::FeatureState;
use hasten_probe::{Cpu, Environment, Feature, Program};

/// A CPU with every feature but `lacking`.
fn cpu(lacking: &[Feature]) -> Cpu {
    let state = |feature| {
        let there = !lacking.contains(&feature);
        FeatureState { feature, cpu: there, kernel: there, usable: there }
    };
    Cpu {
        model: "Test CPU".into(),
        features: Feature::ALL.into_iter().map(state).collect(),
        ..Cpu::default()
    }
}

/// A directory with the preload library for TLS, and surroundings that point to it.
struct Installed {
    directory: tempfile::TempDir,
    surroundings: Surroundings,
}

impl Installed {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("libhasten_tls.so"), "").unwrap();
        let library_directory = Some(directory.path().to_owned());
        Self { directory, surroundings: Surroundings { library_directory, ..Surroundings::default() } }
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("libhasten_tls.so")
    }
}

fn shell() -> Program {
    Program::inspect(OsStr::new("/bin/sh"), &Environment::default()).unwrap()
}

fn plan(cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Plan {
    Plan::new(cpu, &shell(), config, surroundings)
}

fn tls(plan: &Plan) -> &Verdict {
    plan.accelerators.iter().find(|verdict| verdict.name == "tls").unwrap()
}

fn hindrances(plan: &Plan) -> Vec<String> {
    let against = tls(plan).reasons(Side::Against);
    against.map(|reason| format!("{} | {}", reason.text, reason.fix.as_deref().unwrap_or_default())).collect()
}

#[test]
fn every_feature_that_an_engine_executes_is_necessary_for_it_and_no_other() {
    let installed = Installed::new();
    let plan = |lacking: &[Feature]| plan(&cpu(lacking), &Config::default(), &installed.surroundings);
    for feature in Feature::ALL {
        let [lanes, single] = [Feature::MULTIBUFFER.contains(&feature), Feature::SINGLE.contains(&feature)];
        let only_this = plan(&[feature]);
        assert_eq!(tls(&only_this).decision == Decision::Skip, lanes && single, "{feature:?}");
        let told = tls(&only_this).reasons.iter().any(|reason| reason.text.contains(feature.label()));
        assert_eq!(told, lanes, "{feature:?}");

        let no_lanes = plan(&[Feature::Avx512Ifma, feature]);
        assert_eq!(tls(&no_lanes).decision == Decision::Skip, single, "{feature:?}");
        let told = hindrances(&no_lanes).iter().any(|text| text.contains(feature.label()));
        assert_eq!(told, single, "{feature:?}");
    }
}

#[test]
fn a_feature_that_the_kernel_withholds_has_another_cure_than_a_missing_one() {
    let installed = Installed::new();
    let mut withheld = cpu(&[]);
    for state in &mut withheld.features {
        state.usable = false;
    }
    let plan = plan(&withheld, &Config::default(), &installed.surroundings);
    assert!(hindrances(&plan)[0].contains("clearcpuid"), "{:?}", hindrances(&plan));
}

#[test]
fn a_program_that_may_load_openssl_later_gets_the_library_on_standby() {
    let installed = Installed::new();
    let plan = plan(&cpu(&[]), &Config::default(), &installed.surroundings);
    assert_eq!(tls(&plan).decision, Decision::Standby);
    assert_eq!(plan.preload, [installed.library()]);
    assert_eq!(plan.environment, [("LD_PRELOAD", Some(installed.library().into()))]);
    assert!(plan.applies());
}

#[test]
fn the_shim_is_named_where_there_is_one() {
    let installed = Installed::new();
    let shim = installed.library().with_file_name("libhasten.so");
    std::fs::write(&shim, "").unwrap();
    let plan = |surroundings: &Surroundings| plan(&cpu(&[]), &Config::default(), surroundings);
    let first = plan(&installed.surroundings);
    assert_eq!(first.preload, [installed.library()]);
    let named = ("LD_PRELOAD", Some(shim.clone().into()));
    assert_eq!(first.environment, [named, ("HASTEN_PRELOAD", Some("tls".into()))]);
    let mut inside =
        Surroundings { ld_preload: Some(shim.into()), chosen: Some("tls".into()), ..installed.surroundings };
    assert_eq!(plan(&inside).environment, []);
    inside.disable = Some("all".into());
    assert_eq!(plan(&inside).environment, [("LD_PRELOAD", None), ("HASTEN_PRELOAD", None)]);
}

#[test]
fn nothing_is_changed_where_nothing_applies() {
    let installed = Installed::new();
    let lacking = cpu(&[Feature::Avx512Ifma, Feature::Adx]);
    let plan = plan(&lacking, &Config::default(), &installed.surroundings);
    assert!(!plan.applies() && plan.preload.is_empty());
    assert_eq!(plan.environment, []);
}

#[test]
fn an_inherited_library_is_taken_back_if_the_plan_leaves_it_out() {
    let installed = Installed::new();
    let mut surroundings = installed.surroundings.clone();
    surroundings.ld_preload = Some(installed.library().into());
    surroundings.disable = Some("tls".into());
    let plan = plan(&cpu(&[]), &Config::default(), &surroundings);
    assert_eq!(plan.environment, [("LD_PRELOAD", None)]);
}

#[test]
fn the_kill_switch_wins_over_every_wish() {
    let installed = Installed::new();
    let mut config = Config::default();
    config.prefer(Request { only: Some(vec!["tls".into()]), ..Request::default() });
    for value in ["tls", "gzip, tls", "all", "1", "ALL", "GZIP,TLS", "gzip tls", "nothing\tTls\n"] {
        let surroundings = Surroundings { disable: Some(value.into()), ..installed.surroundings.clone() };
        let plan = plan(&cpu(&[]), &config, &surroundings);
        assert!(hindrances(&plan)[0].contains("HASTEN_DISABLE"), "{value}");
    }
    let surroundings = Surroundings { disable: Some("gizp,tsl".into()), ..installed.surroundings };
    assert!(plan(&cpu(&[]), &config, &surroundings).applies());
    assert_eq!(surroundings.unknown_disabled(), ["gizp", "tsl"]);
    let surroundings = Surroundings { disable: Some(" TLS Gizp,,ALL node".into()), ..surroundings };
    assert_eq!(surroundings.unknown_disabled(), ["Gizp"]);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let installed = Installed::new();
    let decide = |file: &str, request: Request| {
        let mut config = Config::parse(file, Path::new("hasten.toml")).unwrap();
        config.prefer(request);
        plan(&cpu(&[]), &config, &installed.surroundings).applies()
    };
    let only = || Request { only: Some(vec!["tls".into()]), ..Request::default() };
    let without = || Request { without: vec!["tls".into()], ..Request::default() };
    assert!(!decide("[tls]\nenabled = false", Request::default()));
    assert!(decide("[tls]\nenabled = false", only()));
    assert!(!decide("[run]\nwithout = ['tls']", Request::default()));
    assert!(decide("[run]\nwithout = ['tls']", only()));
    assert!(!decide("[run]\nonly = []", Request::default()));
    assert!(!decide("[run]\nonly = ['tls']", without()));
}

#[test]
fn a_missing_library_names_the_places_searched() {
    let elsewhere = tempfile::tempdir().unwrap();
    let surroundings =
        Surroundings { executable: Some(elsewhere.path().join("bin/hasten")), ..Surroundings::default() };
    let plan = plan(&cpu(&[]), &Config::default(), &surroundings);
    let text = hindrances(&plan).concat();
    for place in ["bin", "lib/hasten", "lib/x86_64-linux-gnu/hasten"] {
        assert!(text.contains(elsewhere.path().join(place).to_str().unwrap()), "{place}: {text}");
    }
}

#[test]
fn the_library_is_found_in_every_layout_and_the_override_wins() {
    let tree = tempfile::tempdir().unwrap();
    let executable = Some(tree.path().join("bin/hasten"));
    let mut surroundings = Surroundings { executable, ..Surroundings::default() };
    for place in ["lib/x86_64-linux-gnu/hasten", "lib/hasten", "bin", "override"] {
        if place == "override" {
            surroundings.library_directory = Some(tree.path().join(place));
        }
        std::fs::create_dir_all(tree.path().join(place)).unwrap();
        let library = tree.path().join(place).join("libhasten_tls.so");
        std::fs::write(&library, "").unwrap();
        assert_eq!(plan(&cpu(&[]), &Config::default(), &surroundings).preload, [library]);
    }
}

#[test]
fn a_path_that_ld_preload_cannot_carry_is_refused() {
    let tree = tempfile::tempdir().unwrap();
    for name in ["with space", "with:colon", "with$dollar"] {
        let directory = tree.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("libhasten_tls.so"), "").unwrap();
        let surroundings = Surroundings { library_directory: Some(directory), ..Surroundings::default() };
        let plan = plan(&cpu(&[]), &Config::default(), &surroundings);
        assert!(hindrances(&plan)[0].contains("LD_PRELOAD cannot carry"), "{name}");
    }
}

#[test]
fn break_even_reaches_the_process_unless_the_environment_has_its_own() {
    let installed = Installed::new();
    let file = "[tls.break_even]\nrsa-2048-sign = 3\np-256-sign = 9";
    let config = Config::parse(file, Path::new("hasten.toml")).unwrap();
    let variable = |surroundings: &Surroundings| {
        let plan = plan(&cpu(&[]), &config, surroundings);
        plan.environment.iter().find(|(name, _)| *name == "HASTEN_TLS_BREAK_EVEN").cloned()
    };
    let (_, value) = variable(&installed.surroundings).unwrap();
    assert_eq!(value.unwrap(), "p-256-sign:9,rsa-2048-sign:3");
    let own = Surroundings { tls_break_even: Some("p-256-sign:1".into()), ..installed.surroundings };
    assert_eq!(variable(&own), None);
}

#[test]
fn a_break_even_that_the_library_would_ignore_is_refused() {
    let validate =
        |list: &str| Surroundings { tls_break_even: Some(list.into()), ..Surroundings::default() }.validate();
    assert!(validate("").is_ok() && validate(" rsa-2048-sign:3, p-256-sign:9,").is_ok());
    for (list, word) in [
        ("rsa-2048-sign", "has no lanes"),
        ("rsa-2048:3", "unknown operation"),
        ("p-256-sign:0", "no number of lanes"),
        ("p-256-sign:10", "no number of lanes"),
        ("p-256-sign:x", "no number of lanes"),
        ("p-256-sign:1,p-256-sign:2", "twice"),
    ] {
        let error = validate(list).unwrap_err();
        assert!(error.to_string().contains(word), "{list}: {error}");
    }
}
