//! Everyday programs: the scripts of tests/programs print the same with and without the library.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use hasten_tests::program::{Library, without_library};
use hasten_tests::upstream::Upstream;
use hasten_tests::{bodies, tools};

/// Runs a script in its own directory; returns its output.
fn printed(script: &str, arguments: &[&str], preloaded: bool) -> Vec<String> {
    let mut builder = tempfile::Builder::new();
    let directory = builder.permissions(Permissions::from_mode(0o755)).tempdir().expect("a directory");
    let page = directory.path().join("page");
    fs::write(&page, bodies::page(400_000)).expect("a page");
    let work = directory.path().join("work");
    fs::create_dir(&work).expect("a directory to work in");
    let mut command = Command::new("/bin/sh");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(script));
    command.args(arguments).arg(&page).current_dir(&work);
    if preloaded {
        Library::Gzip.preload(&mut command, &[]);
    } else {
        without_library(&mut command);
    }
    let output = tools::run(&mut command);
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn same_as_stock(script: &str, arguments: &[&str]) {
    let stock = printed(script, arguments, false);
    assert!(stock.len() > 5, "{stock:#?}");
    assert_eq!(printed(script, arguments, true), stock, "preloaded (left) and stock differ");
}

/// Also compares the compressed bytes, which must differ: that shows the library has made them.
#[test]
fn git_repositories() {
    let mut stock = printed("git.sh", &[], false);
    let mut preloaded = printed("git.sh", &[], true);
    assert_ne!(preloaded.pop(), stock.pop(), "the objects were packed by the original");
    assert_eq!(preloaded, stock, "preloaded (left) and stock differ");
}

#[test]
fn rsync_with_a_preloaded_other_end() {
    let _ = tools::tool("rsync", "rsync");
    same_as_stock("rsync.sh", &["same"]);
}

#[test]
fn rsync_with_a_stock_other_end() {
    let _ = tools::tool("rsync", "rsync");
    same_as_stock("rsync.sh", &["stock"]);
}

/// Threads, a graceful restart, and a libz brought in by a module.
#[test]
fn apache_packs_what_it_serves() {
    let _ = tools::tool("apache2", "apache2-bin");
    let mut stock = printed("apache.sh", &[], false);
    let mut preloaded = printed("apache.sh", &[], true);
    assert_ne!(preloaded.pop(), stock.pop(), "the page was packed by the original");
    assert!(stock.iter().any(|line| line.contains("gzip")), "{stock:#?}");
    assert_eq!(preloaded, stock, "preloaded (left) and stock differ");
}

#[test]
fn packages_and_apt() {
    let _ = tools::tool("dpkg-scanpackages", "dpkg-dev");
    same_as_stock("packages.sh", &[]);
}

#[test]
fn curl_unpacks() {
    let upstream = Upstream::start();
    for length in [0, 1, 20, 5000, 300_000] {
        let url = format!("http://{}/packed/{length}", upstream.address());
        let mut curl = Command::new(tools::tool("curl", "curl"));
        Library::Gzip.preload(&mut curl, &[]);
        let output = tools::run(curl.args(["--silent", "--show-error", "--compressed"]).arg(&url));
        assert!(output.stdout == bodies::page(length), "{length}");
    }
}
