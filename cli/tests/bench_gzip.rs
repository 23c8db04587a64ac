//! `hasten bench gzip`: the workers, the report, and what goes to which stream.

use std::process::Output;

use assert_cmd::Command;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("hasten").unwrap();
    command.args(["bench", "gzip"]).args(arguments).env_remove("COLUMNS").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn libraries_are_compared_in_processes_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let matrix = ["--part", "library", "--engine", "zlib-ng,isal", "--level", "1", "--out", out];
    let output = bench(&[&["--quick", "--json"], &matrix[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["complete"], true);
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| format!("{} {}", row["engine"], row["work"])).collect();
    assert_eq!(names, ["\"zlib-ng\" \"deflate\"", "\"zlib-ng\" \"inflate\"", "\"isal\" \"deflate\""]);
    for row in rows {
        assert_eq!(row["level"], 1);
        assert!(row["stock"]["mb_per_cpu_s"].as_f64().unwrap() > 0.0);
        assert!(row["stock"]["compression"].as_f64().unwrap() > 1.5);
        assert_eq!(row["stock"]["failures"], 0, "{}", row["stock"]["failure_details"]);
        assert_eq!(row["worst_file"].is_object(), row["work"] == "deflate", "{row}");
    }
    let again = "hasten bench gzip --quick --part library --engine zlib-ng,isal --level 1";
    assert_eq!(json["text"]["reproduce"][0], again);
    let page = std::fs::read_to_string(dir.path().join("hasten-report.html")).unwrap();
    assert!(page.contains("<svg class=\"frontier\""));
}

#[test]
fn values_outside_the_matrix_are_usage_errors() {
    for (arguments, hint) in [
        (["--engine", "brotli"], "libdeflate"),
        (["--level", "0"], "1..=9"),
        (["--size", "2KB"], "100KB"),
        (["--part", "apache"], "nginx"),
    ] {
        let output = bench(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_worker_is_not_part_of_what_users_see() {
    let output = Command::cargo_bin("hasten").unwrap().args(["bench", "--help"]).output().unwrap();
    let help = text(&output.stdout);
    assert!(help.contains("gzip ") && help.contains("tls ") && !help.contains("worker"), "{help}");
}
