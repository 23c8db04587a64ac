//! The product under test: release builds of the command and the preload libraries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hasten_bench::server::Launcher;

use crate::tools;

/// The `hasten` command, built once per test run, with the libraries where it looks for them.
#[must_use]
pub fn hasten() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| installed().unwrap_or_else(build))
}

#[must_use]
pub fn launcher() -> Launcher {
    Launcher::Hasten { exe: hasten().to_owned() }
}

/// The preload library for TLS, beside the command.
#[must_use]
pub fn library() -> PathBuf {
    hasten().with_file_name("libhasten_tls.so")
}

/// The preload library for compression.
#[must_use]
pub fn gzip_library() -> PathBuf {
    hasten().with_file_name("libhasten_gzip.so")
}

/// The preload library for Envoy.
#[must_use]
pub fn envoy_library() -> PathBuf {
    hasten().with_file_name("libhasten_envoy.so")
}

/// The preload library for the read cache.
#[must_use]
pub fn read_cache_library() -> PathBuf {
    hasten().with_file_name("libhasten_readcache.so")
}

/// The preload library for logs.
#[must_use]
pub fn wal_library() -> PathBuf {
    hasten().with_file_name("libhasten_wal.so")
}

/// The preload library for two kinds of memory.
#[must_use]
pub fn tier_library() -> PathBuf {
    hasten().with_file_name("libhasten_tier.so")
}

/// The shim that loads them where they can be loaded, built by its own script.
#[must_use]
pub fn shim() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        tools::run(script("shim.sh").arg(target_directory()));
        target_directory().join("release/libhasten.so")
    };
    BUILT
        .get_or_init(|| installed().map_or_else(build, |hasten| hasten.with_file_name("libhasten.so")))
        .clone()
}

/// The preload libraries for musl, built by their own script; none, which is said, without Rust's target for musl.
#[must_use]
pub fn musl_libraries() -> Option<Vec<PathBuf>> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        installed().map_or_else(
            || {
                tools::run(script("musl.sh").arg(target_directory()));
                target_directory().join("release/musl")
            },
            |hasten| hasten.with_file_name("musl"),
        )
    });
    let libraries = ["tls", "gzip"].map(|name| folder.join(format!("libhasten_{name}.so"))).to_vec();
    if libraries.iter().any(|library| !library.is_file()) {
        println!(
            "skipped: {folder:?} has no libraries; `rustup target add x86_64-unknown-linux-musl` lets them be built"
        );
        return None;
    }
    Some(libraries)
}

/// A script of the repository.
fn script(name: &str) -> Command {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the repository");
    Command::new(repository.join("scripts").join(name))
}

/// Fails if the plugin for Node.js, which cargo does not build, is not beside the command.
pub fn require_node_plugin() {
    let plugin = hasten().with_file_name("node").join("register.js");
    let target = target_directory();
    assert!(plugin.is_file(), "{plugin:?} is missing: run `scripts/node-plugin.sh {}`", target.display());
}

/// `HASTEN_TEST_BIN` tests an installation instead of this tree's build.
fn installed() -> Option<PathBuf> {
    env::var_os("HASTEN_TEST_BIN").map(|directory| PathBuf::from(directory).join("hasten"))
}

/// An up-to-date build takes no time, and an outdated one would make every test lie.
fn build() -> PathBuf {
    let target = target_directory();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--package", "hasten"]);
    cargo.args(["--package", "hasten-tls", "--package", "hasten-gzip", "--package", "hasten-envoy"]);
    cargo.args(["--package", "hasten-readcache", "--package", "hasten-wal", "--package", "hasten-tier"]);
    cargo.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
    let built = cargo.status().is_ok_and(|status| status.success());
    let command = target.join("release/hasten");
    assert!(
        built && command.is_file(),
        "cannot build the product that is to be tested: run `make build`, or set HASTEN_TEST_BIN to a directory \
         with hasten and its libraries"
    );
    command
}

/// Tests run in TARGET/PROFILE/deps.
#[must_use]
pub fn target_directory() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let target = test.ancestors().nth(3).expect("a test is three directories below the target directory");
    target.to_owned()
}
