//! The workloads with a launcher that changes nothing in place of `hasten`: both sides are the same Node.js.
//!
//! The packages of two workloads are installed once for all tests and later runs; the others are not needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hasten_bench::Pace;
use hasten_bench::node::{self, App, Matrix, NodeError, Options, Paces, Runtime, Tuning, Workload};
use hasten_evidence::stop::StopRule;
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;
use serde_json::Value;

/// `hasten run --quiet -- COMMAND…` without any acceleration.
const TRANSPARENT: &str = "#!/bin/sh\nshift 3\nexec \"$@\"\n";

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-workloads")
}

fn options(dir: &Path, script: &str, workload: Workload) -> Options {
    let launcher = dir.join("launcher");
    fs::write(&launcher, script).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let pace = Pace {
        warm_up: Duration::from_millis(50),
        round: Duration::from_millis(100),
        rule: StopRule { min_pairs: 2, max_pairs: 2, uncertainty: 0.0 },
        limit: Duration::from_secs(60),
    };
    let runtime = Runtime::of_path().unwrap_or_else(|error| panic!("{error}: {}", error.fix()));
    Options {
        matrix: Matrix { workloads: vec![workload], runtimes: vec![runtime], tunings: Vec::new() },
        paces: Paces {
            startup: pace,
            server: pace,
            tooling: pace,
            ghost: pace,
            short: true,
            trace: Duration::from_millis(300),
        },
        hasten: launcher,
        cache: cache(),
        out: dir.join("out"),
        command: "hasten bench node".to_owned(),
    }
}

fn saved_json(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("out/hasten-report.json")).unwrap()).unwrap()
}

#[test]
fn starts_have_the_documented_form() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, Workload::FaasStartup);
    let (report, _) = node::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.complete);
    assert!(report.warnings.iter().any(|warning| matches!(warning, Warning::NotAccelerated { .. })));
    let json = saved_json(dir.path());
    assert_eq!((&json["workload"], json["host"]["node"].is_string()), (&Value::from("node"), true));
    let row = &json["rows"][0];
    assert_eq!(row["workload"], "faas-startup");
    assert_eq!(row["node"], options.matrix.runtimes[0].version.to_string());
    assert!(row.get("tuning").is_none() && row.get("advice").is_none());
    for side in ["stock", "hasten"] {
        assert_eq!(row[side]["failures"], 0, "{}", row[side]["failure_details"]);
        // Two pairs of three processes.
        assert_eq!(row[side]["ops"], 6);
        for field in ["server_cpu_us_per_op", "p50_us", "rss_mb", "rss_peak_mb"] {
            assert!(row[side][field].as_f64().unwrap() > 1.0, "{side} {field}: {}", row[side]);
        }
    }
}

#[test]
fn servers_are_driven_and_their_memory_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, Workload::JsonApi);
    let (report, saved) = node::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.complete);
    let json = saved_json(dir.path());
    let row = &json["rows"][0];
    for side in ["stock", "hasten"] {
        assert_eq!(row[side]["failures"], 0, "{}", row[side]["failure_details"]);
        assert!(row[side]["ops"].as_u64().unwrap() >= 2 * 64, "{}", row[side]);
        let (now, peak) = (&row[side]["rss_mb"], &row[side]["rss_peak_mb"]);
        assert!(0.0 < now.as_f64().unwrap() && now.as_f64() <= peak.as_f64(), "{}", row[side]);
    }
    let page = fs::read_to_string(saved.html).unwrap();
    assert!(page.contains("json-api · Node.js "), "the page does not name the case");
}

#[test]
fn a_tuning_is_a_row_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), TRANSPARENT, Workload::FaasStartup);
    options.matrix.tunings = vec![Tuning::SemiSpace, Tuning::SemiSpace64, Tuning::ShortBuiltinCalls];
    let (report, _) = node::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.complete);
    let json = saved_json(dir.path());
    assert_eq!(json["workload"], "node-tunings");
    let tunings: Vec<_> = json["rows"].as_array().unwrap().iter().map(|row| row["tuning"].as_str()).collect();
    assert_eq!(tunings, [Some("semi-space-64"), Some("short-builtin-calls")], "a start needs no semi-space");
    assert!(report.rows.iter().all(|row| row.verdict != Verdict::Failed), "{:?}", report.rows);
}

#[test]
fn a_side_that_does_other_work_makes_its_row_failed() {
    let dir = tempfile::tempdir().unwrap();
    let broken = "#!/bin/sh\nshift 3\nnode=$1\nexec \"$node\" -e 'throw new Error(\"not today\")'\n";
    let options = options(dir.path(), broken, Workload::FaasStartup);
    let (report, _) = node::run(&options, &AtomicBool::new(false)).unwrap();
    let row = &report.rows[0];
    assert_eq!(row.verdict, Verdict::Failed);
    assert_eq!((row.stock.failures, row.hasten.failures), (0, 3));
    assert!(row.hasten.failure_details[0].contains("not today"), "{:?}", row.hasten.failure_details);
}

#[test]
fn a_server_with_another_body_makes_its_row_failed() {
    let dir = tempfile::tempdir().unwrap();
    // A program that preloads this has customers with other names.
    let hook = dir.path().join("hook.js");
    fs::write(
        &hook,
        "const stringify = JSON.stringify;\nconst { ServerResponse } = require('http');\n\
         const end = ServerResponse.prototype.end;\n\
         ServerResponse.prototype.end = function (body, ...rest) {\n\
           return end.call(this, typeof body === 'string' ? body.replace('customer 9', 'customer 8') : body, ...rest);\n};\n",
    )
    .unwrap();
    let script = format!("#!/bin/sh\nshift 3\nNODE_OPTIONS=\"-r {}\" exec \"$@\"\n", hook.display());
    let options = options(dir.path(), &script, Workload::JsonApi);
    let (report, _) = node::run(&options, &AtomicBool::new(false)).unwrap();
    let row = &report.rows[0];
    assert_eq!(row.verdict, Verdict::Failed, "{:?}", row.hasten);
    assert_eq!(row.stock.failures, 0);
    assert!(row.hasten.failure_details[0].contains("body"), "{:?}", row.hasten.failure_details);
}

#[test]
fn a_server_that_does_not_start_is_an_error_with_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let broken = "#!/bin/sh\nshift 3\necho no memory for servers\nexit 3\n";
    let options = options(dir.path(), broken, Workload::JsonApi);
    let error = node::run(&options, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("no memory for servers"), "{error}");
    assert!(error.to_string().contains("json-api did not start"), "{error}");
}

#[test]
fn an_interrupted_run_keeps_its_report() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, Workload::JsonApi);
    let interrupted = AtomicBool::new(false);
    interrupted.store(true, Ordering::Relaxed);
    let (report, _) = node::run(&options, &interrupted).unwrap();
    assert!(!report.complete && report.rows.is_empty());
    assert_eq!(saved_json(dir.path())["complete"], false);
}

const PACKAGE: (&str, &str) = ("package.json", r#"{"name": "tiny", "version": "1.0.0"}"#);
const LOCK: (&str, &str) = (
    "package-lock.json",
    r#"{"name": "tiny", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
        "packages": {"": {"name": "tiny", "version": "1.0.0"}}}"#,
);

/// Without packages, so that no registry is contacted.
const TINY: App = App {
    name: "tiny",
    files: &[PACKAGE, LOCK, ("build.js", "require('fs').appendFileSync('built', 'x');")],
    build: Some("build.js"),
    package: None,
};
const UNBUILDABLE: App =
    App { files: &[PACKAGE, LOCK, ("build.js", "throw new Error('no tools');")], ..TINY };
const UNLOCKED: App = App { files: &[PACKAGE], ..TINY };

#[test]
fn an_app_is_installed_and_built_once() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = Runtime::of_path().unwrap();
    for _ in 0..2 {
        let folder = node::install(&TINY, cache.path(), &runtime, &|| false).unwrap();
        assert_eq!(folder, cache.path().join("bench/node").join(TINY.folder()));
        assert_eq!(fs::read_to_string(folder.join("built")).unwrap(), "x");
    }
    let entries = fs::read_dir(cache.path().join("bench/node")).unwrap().count();
    assert_eq!(entries, 1, "nothing is left beside it");
    let mode = fs::metadata(cache.path().join("bench")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may write what this user will run");
}

#[test]
fn an_installation_that_fails_says_why_and_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = Runtime::of_path().unwrap();
    let install = |app: &App, stopped: bool| {
        node::install(app, cache.path(), &runtime, &|| stopped).map(|_| ()).unwrap_err()
    };
    let error = install(&UNBUILDABLE, false).to_string();
    assert!(error.contains("tiny") && error.contains("no tools"), "{error}");
    let error = install(&UNLOCKED, false).to_string();
    assert!(error.contains("npm ci"), "{error}");
    assert!(matches!(install(&TINY, true), NodeError::Stopped));
    assert_eq!(fs::read_dir(cache.path().join("bench/node")).unwrap().count(), 0);
}
