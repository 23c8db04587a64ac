//! This tree's release, made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hasten_tests::{product, tools};
use tempfile::TempDir;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A script of the repository, working on cargo's target folder.
pub(crate) fn script(name: &str) -> Command {
    let mut command = Command::new(repository().join("scripts").join(name));
    command.current_dir(repository()).arg(target());
    // The package's contents matter here, not its size.
    command
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "0")
        .env("RPM_PAYLOAD", "w1.gzdio")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .env_remove("RELEASE_KEY");
    command
}

fn target() -> PathBuf {
    product::hasten().ancestors().nth(2).unwrap().to_owned()
}

/// bin, lib and share from the present build.
pub(crate) fn tree() -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let _ = product::shim();
        let _ = product::musl_libraries();
        product::require_node_plugin();
        tools::run(&mut script("dist.sh"));
    });
    target().join("release/dist/tree")
}

/// This tree's Debian package, with a chosen revision.
pub(crate) fn deb(folder: &Path, revision: &str) -> PathBuf {
    tree();
    let _ = tools::tool("dpkg-deb", "dpkg");
    tools::run(script("deb.sh").arg(folder).arg(revision));
    only(folder, ".deb")
}

/// This tree's RPM, with a chosen release.
pub(crate) fn rpm(folder: &Path, release: &str) -> PathBuf {
    tree();
    let _ = tools::tool("rpmbuild", "rpm");
    tools::run(script("rpm.sh").arg(folder).arg(release));
    only(folder, ".rpm")
}

/// A whole release, unsigned.
pub(crate) fn release() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        tree();
        let _ = tools::tool("dpkg-scanpackages", "dpkg-dev");
        let _ = tools::tool("rpmbuild", "rpm");
        let folder = tempfile::tempdir().unwrap();
        tools::run(script("release.sh").arg(folder.path().join("made")));
        folder
    };
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| MADE.get_or_init(make).path().join("made"))
}

/// The only file in `folder` whose name ends in `end`.
pub(crate) fn only(folder: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(end)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

/// Every file and link below `folder`, sorted, as paths relative to it.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    let mut find = Command::new("find");
    let output =
        tools::run(find.arg(folder).args(["-mindepth", "1", "-not", "-type", "d", "-printf", "%P\n"]));
    let mut files: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    files.sort();
    files
}
