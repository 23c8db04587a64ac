//! The server part, with a launcher that changes nothing in place of `hasten`: both sides are the same nginx.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hasten_bench::Pace;
use hasten_bench::baseline::Baseline;
use hasten_bench::gzip::{self, Matrix, Options, Paces};
use hasten_evidence::stop::StopRule;
use hasten_evidence::verdict::Verdict;
use hasten_evidence::warning::Warning;
use serde_json::Value;

/// `hasten run --quiet -- COMMAND…` without any acceleration.
const TRANSPARENT: &str = "#!/bin/sh\nshift 3\nexec \"$@\"\n";

fn options(dir: &Path, script: &str, sizes: &[usize], levels: &[u8]) -> Options {
    let launcher = dir.join("launcher");
    fs::write(&launcher, script).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let pace = Pace {
        warm_up: Duration::from_millis(20),
        round: Duration::from_millis(50),
        rule: StopRule { min_pairs: 4, max_pairs: 4, uncertainty: 0.0 },
        limit: Duration::from_secs(60),
    };
    Options {
        matrix: Matrix {
            engines: Vec::new(),
            library_levels: Vec::new(),
            sizes: sizes.to_vec(),
            server_levels: levels.to_vec(),
        },
        paces: Paces { library: pace, server: pace },
        baseline: Baseline::Stock,
        hasten: launcher,
        library: None,
        out: dir.join("out"),
        command: "hasten bench gzip".to_owned(),
    }
}

fn saved_json(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("out/hasten-report.json")).unwrap()).unwrap()
}

#[test]
fn the_data_has_the_documented_form() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, &[1 << 10, 100 << 10], &[1, 9]);
    let (report, _) = gzip::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.complete);
    let json = saved_json(dir.path());
    assert_eq!(json["workload"], "gzip");
    assert!(json["host"]["zlib"].is_string() && json["host"]["corpus"].is_string());
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<_> =
        rows.iter().map(|row| (row["size"].as_str().unwrap(), row["level"].as_u64().unwrap())).collect();
    assert_eq!(names, [("1KB", 1), ("1KB", 9), ("100KB", 1), ("100KB", 9)]);
    for row in rows {
        assert_eq!(row["server"], "nginx");
        assert_eq!(row["wire_bytes_ratio"], 1.0, "the same program made other bytes: {row}");
        for side in ["stock", "hasten"] {
            for field in ["server_cpu_us_per_op", "ops_per_s", "p50_us", "wire_bytes_per_op", "mb_per_cpu_s"]
            {
                assert!(row[side][field].as_f64().unwrap() > 0.0, "{side} {field}: {}", row[side]);
            }
            assert_eq!(row[side]["failures"], 0, "{}", row[side]["failure_details"]);
        }
    }
    let bytes = |row: usize| rows[row]["stock"]["wire_bytes_per_op"].as_f64().unwrap();
    assert!(bytes(3) < bytes(2), "level 9 is not smaller than level 1: each location has its own level");
    assert!(bytes(2) > bytes(0) * 10.0, "the larger body is not larger");
}

#[test]
fn the_same_program_twice_is_said_to_be_that() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, &[10 << 10], &[6]);
    let (report, saved) = gzip::run(&options, &AtomicBool::new(false)).unwrap();
    assert!(report.warnings.iter().any(|warning| matches!(warning, Warning::NotAccelerated { .. })));
    assert_ne!(report.rows[0].verdict, Verdict::Failed);
    let page = fs::read_to_string(saved.html).unwrap();
    assert!(page.contains("nginx · 10KB · level 6") && page.contains("without a hasten library"));
}

#[test]
fn an_interrupted_run_keeps_its_report() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), TRANSPARENT, &[1 << 10], &[1]);
    let (report, _) = gzip::run(&options, &AtomicBool::new(true)).unwrap();
    assert!(!report.complete && report.rows.is_empty());
    assert_eq!(saved_json(dir.path())["complete"], false);
}

#[test]
fn a_side_that_corrupts_bodies_makes_its_row_failed() {
    let dir = tempfile::tempdir().unwrap();
    // The accelerated side has different pages: whatever it compresses is wrong.
    let corrupting = "#!/bin/sh\nshift 3\nconfig=$(echo \"$@\" | sed 's/.*-c //')\n\
        root=$(sed -n 's/.*alias \\(.*\\)\\/; gzip.*/\\1/p' \"$config\" | head -1)\n\
        mkdir -p \"$root/other\" && tr a b <\"$root/1KB.html\" >\"$root/other/1KB.html\"\n\
        sed -i \"s|alias $root/|alias $root/other/|\" \"$config\"\nexec \"$@\"\n";
    let options = options(dir.path(), corrupting, &[1 << 10], &[1]);
    let (report, _) = gzip::run(&options, &AtomicBool::new(false)).unwrap();
    let row = &report.rows[0];
    assert_eq!(row.verdict, Verdict::Failed);
    assert_eq!(row.stock.failures, 0);
    assert!(row.hasten.failure_details[0].contains("body"), "{:?}", row.hasten.failure_details);
}
