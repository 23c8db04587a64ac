//! Turns the trace of a warm-up into options: what `hasten gc` would advise.

use std::fs::File;
use std::path::Path;

use hasten_v8::advice::{Facts, Id, advise};
use hasten_v8::parse;
use rustix::system::sysinfo;

use super::runtime::Version;

/// Makes a server write the trace on which the advice is based.
pub(super) const FLAG: &str = "--trace-gc-nvp";

/// The options that the advice for the trace in `log` adds to `NODE_OPTIONS`; empty if nothing should change.
pub(super) fn of_log(log: &Path, version: Version) -> Vec<String> {
    let Ok(file) = File::open(log) else { return Vec::new() };
    let Ok(summary) = parse::read(file, "trace", &mut |_| {}) else { return Vec::new() };
    let facts = Facts {
        memory_limit_bytes: Some(sysinfo().totalram),
        node_version: Some(version.to_string()),
        // Both sides must use the same Node.js.
        installed: Vec::new(),
        semi_space_max: None,
    };
    // The old space's limit depends on the container, which is the same for both sides.
    let advice = advise(&[summary], &facts).into_iter().find(|advice| advice.id == Id::SemiSpace);
    advice.map(|advice| advice.node_options).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_collections_is_no_reason_for_anything() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let version = Version { major: 20, minor: 20, patch: 2 };
        assert_eq!(of_log(&log, version), [""; 0]);
        std::fs::write(&log, "listening\n").unwrap();
        assert_eq!(of_log(&log, version), [""; 0]);
    }
}
