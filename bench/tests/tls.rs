//! The whole comparison, with a launcher that changes nothing in place of `hasten`: both sides are the same server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hasten_bench::baseline::Baseline;
use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{Group, Protocol};
use hasten_bench::server::ServerKind;
use hasten_bench::tls::{self, BenchError, Matrix, Options, Pace, Tickets};
use hasten_evidence::stop::StopRule;
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;
use serde_json::{Value, json};

/// `hasten run --quiet -- COMMAND…` without any acceleration.
const TRANSPARENT: &str = "#!/bin/sh\nshift 3\nexec \"$@\"\n";

fn launcher(dir: &Path, script: &str) -> std::path::PathBuf {
    let path = dir.join("launcher");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn options(dir: &Path, script: &str, concurrencies: &[usize]) -> Options {
    Options {
        hide_avx512: false,
        matrix: Matrix {
            servers: vec![ServerKind::Nginx],
            certs: vec![KeyKind::P256],
            protocols: vec![Protocol::Tls13],
            groups: vec![Group::X25519],
            tickets: vec![Tickets::On],
            concurrencies: concurrencies.to_vec(),
        },
        pace: Pace {
            warm_up: Duration::from_millis(20),
            round: Duration::from_millis(50),
            rule: StopRule { min_pairs: 4, max_pairs: 4, uncertainty: 0.0 },
            limit: Duration::from_secs(60),
        },
        baseline: Baseline::Stock,
        hasten: launcher(dir, script),
        out: dir.join("out"),
        command: "hasten bench tls".to_owned(),
    }
}

fn saved_json(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("out/hasten-report.json")).unwrap()).unwrap()
}

#[test]
fn the_data_has_the_documented_form() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), TRANSPARENT, &[1, 8]);
    options.matrix.tickets.push(Tickets::Off);
    let (report, saved) = tls::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.complete);
    assert!(fs::read_to_string(&saved.html).unwrap().contains("4 cases"));

    let json = saved_json(dir.path());
    assert_eq!(json["workload"], "tls");
    assert!(json["host"]["cpu"].is_string() && json["host"]["nginx"].is_string());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for (row, (tickets, concurrency)) in rows.iter().zip([("on", 1), ("on", 8), ("off", 1), ("off", 8)]) {
        assert_eq!(row["server"], "nginx");
        assert_eq!(row["cert"], "p-256");
        assert_eq!(row["protocol"], "tls1.3");
        assert_eq!(row["group"], "x25519");
        assert_eq!((&row["tickets"], &row["concurrency"]), (&json!(tickets), &json!(concurrency)));
        for side in ["stock", "hasten"] {
            for field in ["server_cpu_us_per_op", "ops_per_s", "p50_us", "p99_us", "p999_us"] {
                assert!(row[side][field].as_f64().unwrap() > 0.0, "{side} {field}: {}", row[side]);
            }
            assert_eq!(row[side]["failures"], 0);
        }
        let ratio = |field: &str| row["cpu_ratio"][field].as_f64().unwrap();
        assert!(ratio("low") <= ratio("value") && ratio("value") <= ratio("high"));
        // The same program twice: whatever a busy machine's noise, they cannot differ by half.
        assert!((0.5..2.0).contains(&ratio("value")), "{}", row["cpu_ratio"]);
        assert!(["faster", "slower", "no difference"].contains(&row["verdict"].as_str().unwrap()));
    }
}

#[test]
fn an_unaccelerated_side_is_pointed_out() {
    let dir = tempfile::tempdir().unwrap();
    let (report, _) = tls::run(&options(dir.path(), TRANSPARENT, &[1]), &AtomicBool::new(false)).unwrap();
    assert!(report.warnings.contains(&Warning::NotAccelerated { server: "nginx".to_owned() }));
}

#[test]
fn a_side_that_answers_wrongly_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    // Starts the same nginx with another answer.
    let script = "#!/bin/sh\nshift 3\nfor last; do :; done\n\
                  sed -i 's/hello from/goodbye from/' \"$last\"\nexec \"$@\"\n";
    let (report, _) = tls::run(&options(dir.path(), script, &[4]), &AtomicBool::new(false)).unwrap();
    let row = &report.rows[0];
    assert_eq!(row.verdict, Verdict::Failed);
    assert_eq!(row.stock.failures, 0);
    assert!(row.hasten.failures > 0);
    assert!(row.hasten.failure_details[0].contains("body"), "{:?}", row.hasten.failure_details);
    assert_eq!(row.pairs.len(), 1, "a failed row does not go on");
    assert_eq!(saved_json(dir.path())["rows"][0]["verdict"], "failed");
}

#[test]
fn a_launcher_that_fails_is_an_error_with_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\necho no such luck >&2\nexit 3\n";
    let error = tls::run(&options(dir.path(), script, &[1]), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, BenchError::Server(_)));
    assert!(error.to_string().contains("no such luck"), "{error}");
}

#[test]
fn an_interrupt_keeps_finished_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), TRANSPARENT, &[1, 2]);
    options.pace.rule = StopRule { min_pairs: 4, max_pairs: 4, uncertainty: 0.0 };
    let interrupted = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            // As soon as the first row is on disk.
            while !dir.path().join("out/hasten-report.json").exists()
                || saved_json(dir.path())["rows"].as_array().unwrap().is_empty()
            {
                thread::sleep(Duration::from_millis(5));
            }
            interrupted.store(true, Ordering::Relaxed);
        });
        tls::run(&options, &interrupted).unwrap().0
    });
    assert_eq!(report.rows.len(), 1);
    assert!(!report.complete);
    assert_eq!(saved_json(dir.path())["complete"], false);
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), TRANSPARENT, &[1]);
    fs::write(dir.path().join("file"), "").unwrap();
    options.out = dir.path().join("file/out");
    let error = tls::run(&options, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, BenchError::Report(_)));
    assert_eq!(error.fix(), "choose another directory with --out");
}
