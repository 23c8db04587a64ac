//! Plans for compression.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hasten_plan::{Config, ConfigError, Decision, Plan, Side, Surroundings, Verdict};
use hasten_probe::program::Library;
use hasten_probe::{Cpu, Environment, Probe, Program};

const LIBRARIES: [&str; 2] = ["libhasten_tls.so", "libhasten_gzip.so"];

/// A directory with these libraries, and surroundings that point to it.
fn installed(libraries: &[&str]) -> (tempfile::TempDir, Surroundings) {
    let directory = tempfile::tempdir().unwrap();
    for library in libraries {
        std::fs::write(directory.path().join(library), "").unwrap();
    }
    let library_directory = Some(directory.path().to_owned());
    (directory, Surroundings { library_directory, ..Surroundings::default() })
}

fn shell() -> Program {
    Program::inspect(OsStr::new("/bin/sh"), &Environment::default()).unwrap()
}

/// A shell that links zlib.
fn compressor(needed_by: &str) -> Program {
    let mut program = shell();
    program.libraries.push(Library {
        name: "libz.so.1".into(),
        path: "/lib/libz.so.1".into(),
        needed_by: needed_by.into(),
        version: Some("zlib 1.2.13".into()),
    });
    program
}

fn plan(program: &Program, config: &str, surroundings: &Surroundings) -> Plan {
    let config = Config::parse(config, Path::new("hasten.toml")).unwrap();
    Plan::new(&Cpu::default(), program, &config, surroundings)
}

fn gzip(plan: &Plan) -> &Verdict {
    plan.accelerators.iter().find(|verdict| verdict.name == "gzip").unwrap()
}

fn reasons(plan: &Plan, side: Side) -> String {
    gzip(plan).reasons(side).map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_program_that_links_zlib_is_accelerated_on_any_cpu() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let program = compressor(&shell().name());
    let plan = plan(&program, "", &surroundings);
    assert_eq!(gzip(&plan).decision, Decision::Apply);
    let why = reasons(&plan, Side::For);
    assert!(
        why.ends_with("libhasten_gzip.so") && why.contains("uses /lib/libz.so.1 (zlib 1.2.13);"),
        "{why}"
    );
    assert!(why.contains("none of the extensions"), "{why}");
    // This invented CPU has nothing that TLS needs.
    assert_eq!(plan.preload, [gzip(&plan).library.clone().unwrap()]);
}

#[test]
fn what_makes_it_faster_here_is_said() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let cpu = Probe::new().cpu();
    let plan = Plan::new(&cpu, &shell(), &Config::default(), &surroundings);
    let has_avx2 = std::arch::is_x86_feature_detected!("avx2");
    assert_eq!(reasons(&plan, Side::For).contains("AVX2"), has_avx2);
}

#[test]
fn zlib_that_a_library_brings_in_counts_and_is_named() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let plan = plan(&compressor("libxml2.so.2"), "", &surroundings);
    assert_eq!(gzip(&plan).decision, Decision::Apply);
    assert!(reasons(&plan, Side::For).contains("(zlib 1.2.13), through libxml2.so.2"));
}

#[test]
fn a_program_that_may_load_zlib_later_gets_the_library_on_standby() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let plan = plan(&shell(), "", &surroundings);
    assert_eq!(gzip(&plan).decision, Decision::Standby);
    assert!(reasons(&plan, Side::Idle).contains("does not link libz.so.1"));
}

#[test]
fn without_its_library_it_is_left_out_and_tls_is_not() {
    let (_directory, surroundings) = installed(&["libhasten_tls.so"]);
    let cpu = Probe::new().cpu();
    let plan = Plan::new(&cpu, &compressor("x"), &Config::default(), &surroundings);
    assert_eq!(gzip(&plan).decision, Decision::Skip);
    assert!(reasons(&plan, Side::Against).starts_with("libhasten_gzip.so is not in "));
    let tls = plan.accelerators.iter().find(|verdict| verdict.name == "tls").unwrap();
    assert!(!tls.reasons(Side::Against).any(|reason| reason.text.contains("is not in")));
    assert!(plan.preload.iter().all(|path| path.ends_with("libhasten_tls.so")));
}

#[test]
fn the_kill_switch_and_the_file_leave_out_one_of_two() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let program = compressor("x");
    assert_eq!(gzip(&plan(&program, "[gzip]\nenabled = false", &surroundings)).decision, Decision::Skip);
    assert_eq!(gzip(&plan(&program, "[tls]\nenabled = false", &surroundings)).decision, Decision::Apply);
    let killed = Surroundings { disable: Some("gzip".into()), ..surroundings.clone() };
    assert!(reasons(&plan(&program, "", &killed), Side::Against).contains("HASTEN_DISABLE=gzip"));
    let other = Surroundings { disable: Some("tls".into()), ..surroundings };
    assert_eq!(gzip(&plan(&program, "", &other)).decision, Decision::Apply);
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let file = "[gzip]\nverify = true\nengines = ['zlib-rs', 'isal']\nwindow = 'full'";
    let variables = |file: &str, verify_always: bool, surroundings: &Surroundings| {
        let mut config = Config::parse(file, Path::new("hasten.toml")).unwrap();
        config.gzip.verify_always = verify_always;
        let plan = Plan::new(&Cpu::default(), &compressor("x"), &config, surroundings);
        let ours = plan.environment.into_iter().filter(|(name, _)| name.starts_with("HASTEN_GZIP_"));
        ours.map(|(name, value)| (name, value.unwrap())).collect::<Vec<_>>()
    };
    let verify = ("HASTEN_GZIP_VERIFY", OsString::from("1"));
    let engines = ("HASTEN_GZIP_ENGINES", OsString::from("zlib-rs,isal"));
    let window = ("HASTEN_GZIP_WINDOW", OsString::from("full"));
    assert_eq!(variables("", false, &surroundings), []);
    assert_eq!(variables("[gzip]\nwindow = 'configured'", false, &surroundings), []);
    assert_eq!(variables(file, false, &surroundings), [verify.clone(), engines, window]);
    let own = Surroundings {
        gzip_verify: Some("0".into()),
        gzip_engines: Some("isal".into()),
        gzip_window: Some("configured".into()),
        ..surroundings.clone()
    };
    assert_eq!(variables(file, false, &own), []);
    assert_eq!(variables(file, true, &own), std::slice::from_ref(&verify));
    assert_eq!(variables("", true, &surroundings), [verify]);
}

#[test]
fn variables_that_the_library_would_ignore_are_refused() {
    let verify = |value: &str| Surroundings { gzip_verify: Some(value.into()), ..Surroundings::default() };
    let engines = |value: &str| Surroundings { gzip_engines: Some(value.into()), ..Surroundings::default() };
    assert!(verify("1").validate().is_ok() && verify("0").validate().is_ok());
    assert!(engines("isal, zlib-rs,").validate().is_ok());
    let complaint = |surroundings: &Surroundings| {
        let error: ConfigError = surroundings.validate().unwrap_err();
        format!("{error}; {}", error.fix())
    };
    assert_eq!(
        complaint(&verify("yes")),
        "HASTEN_GZIP_VERIFY: `yes` is neither 0 nor 1; write 1 to verify, or unset it"
    );
    assert_eq!(
        complaint(&engines("isal,libdeflat")),
        "HASTEN_GZIP_ENGINES: unknown engine `libdeflat`; did you mean `libdeflate`?"
    );
    assert!(complaint(&engines(",")).contains("names no engine"));
    let window = |value: &str| Surroundings { gzip_window: Some(value.into()), ..Surroundings::default() };
    assert!(window("full").validate().is_ok() && window("configured").validate().is_ok());
    assert_eq!(
        complaint(&window("32")),
        "HASTEN_GZIP_WINDOW: `32` is neither `configured` nor `full`; write `full` to let matches reach back 32 KiB in \
         Envoy, or unset it"
    );
}

#[test]
fn nothing_is_preloaded_where_only_the_original_is_allowed() {
    let (_directory, surroundings) = installed(&LIBRARIES);
    let program = compressor(&shell().name());
    let decide = |config: &str, variable: &str| {
        let engines = Some(OsString::from(variable)).filter(|list| !list.is_empty());
        let surroundings = Surroundings { gzip_engines: engines, ..surroundings.clone() };
        let plan = plan(&program, config, &surroundings);
        (gzip(&plan).decision, reasons(&plan, Side::Against))
    };
    let only_original = "[gzip]\nengines = ['original']";
    let reason = |source: &str| (Decision::Skip, format!("{source} allows nothing but the original zlib"));
    assert_eq!(decide("", "original"), reason("HASTEN_GZIP_ENGINES"));
    assert_eq!(decide("", " original,"), reason("HASTEN_GZIP_ENGINES"));
    assert_eq!(decide(only_original, ""), reason("[gzip] engines"));
    assert_eq!(decide(only_original, "isal").0, Decision::Apply, "the variable wins");
    assert_eq!(decide("", "isal,original").0, Decision::Apply);
}
