//! The releases of Node.js that tests run: those of `scripts/nodes.sh`, or those in the folder that HASTEN_TEST_NODE_FOLDER names.

use std::path::PathBuf;

const NAMED: &str = "HASTEN_TEST_NODE_FOLDER";

/// The program of a release that is named by its first number.
pub(crate) fn node(release: &str) -> PathBuf {
    let node = file(release);
    assert!(node.exists(), "{} is missing: scripts/nodes.sh brings it", node.display());
    node
}

/// Those that are tested: where a folder is named, those that it has.
pub(crate) fn here<'a>(releases: &[&'a str]) -> Vec<&'a str> {
    let is_tested = |release: &&&str| std::env::var_os(NAMED).is_none() || file(release).exists();
    releases.iter().filter(is_tested).copied().collect()
}

fn file(release: &str) -> PathBuf {
    let named = std::env::var_os(NAMED).map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.deps/nodes/node_modules"));
    folder.join(format!("node{release}/bin/node"))
}
