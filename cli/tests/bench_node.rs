//! `hasten bench node`: what goes to which stream, and the advice for a user who lacks something.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("hasten").unwrap();
    command.args(["bench", "node"]).args(arguments).env_remove("COLUMNS");
    command.env("HASTEN_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-workloads"));
    command
}

fn bench(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_quick_run_is_json_on_standard_output_and_the_rest_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let output = bench(&["--quick", "--workload", "faas-startup", "--json", "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["workload"], &json["complete"]), (&"node".into(), &true.into()));
    let row = &json["rows"][0];
    assert_eq!(row["workload"], "faas-startup");
    assert!(row["node"].as_str().unwrap().split('.').count() == 3);
    assert!(row["pairs"].as_array().unwrap().len() >= 6);
    assert_eq!(row["stock"]["failures"], 0, "{}", row["stock"]["failure_details"]);
    assert_eq!(row["hasten"]["failures"], 0, "{}", row["hasten"]["failure_details"]);
    assert_eq!(json["text"]["reproduce"][0], "hasten bench node --quick --workload faas-startup");
    assert!(dir.path().join("hasten-report.html").is_file());
}

#[test]
fn values_outside_the_matrix_are_usage_errors() {
    let output = bench(&["--workload", "ghost"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ghost-https"), "{}", text(&output.stderr));
    let output = bench(&["--tunings", "--workload", "web-tooling"]);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("--workload faas-startup,react-ssr,json-api"),
        "{}",
        text(&output.stderr)
    );
}

/// A folder with nothing but links to these programs.
fn path_with(programs: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for program in programs {
        let script = dir.path().join(program);
        fs::write(&script, "#!/bin/sh\necho v24.21.0\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir
}

#[test]
fn whatever_is_missing_is_named_with_the_way_to_get_it() {
    let nothing = path_with(&[]);
    let node = path_with(&["node"]);
    let both = path_with(&["node", "npm"]);
    let mut cases = vec![
        (&nothing, &["--quick"][..], ["there is no `node` in PATH", "apt-get install nodejs"]),
        (&nothing, &["--node", "99"], ["there is no Node.js 99", "--node /path/to/bin/node"]),
        (&nothing, &["--node", "/bin/true"], ["/bin/true is not a Node.js program", "--node /path"]),
        (&node, &["--workload", "json-api"], ["npm is not installed", "apt-get install npm"]),
    ];
    // Servers are also looked for where Debian keeps them.
    if !Path::new("/usr/sbin/mariadbd").exists() {
        let wanted = ["mariadbd is not installed", "mariadb-server-core"];
        cases.push((&both, &["--workload", "ghost-http"], wanted));
    }
    for (path, arguments, wanted) in cases {
        let output = command(arguments).env("PATH", path.path()).output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}: {said}");
        for words in wanted {
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
}
