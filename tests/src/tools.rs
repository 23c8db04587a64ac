//! The distribution's programs that tests need.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_bench::server::find_program;

/// The path of a program; if it is missing, the test fails and names the package to install.
#[must_use]
pub fn tool(program: &str, package: &str) -> PathBuf {
    find_program(program)
        .unwrap_or_else(|_| panic!("{program} is missing: run `apt-get install {package}` as root"))
}

/// A file of a package; if it is missing, the test fails and names the package to install.
pub fn file_of(path: &str, package: &str) -> PathBuf {
    assert!(Path::new(path).exists(), "{path} is missing: run `apt-get install {package}` as root");
    path.into()
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
