//! A client whose key exchange the engines do.

use std::path::Path;

use hasten_telemetry::Event;
use hasten_tests::program::{EVERY_BATCH, Library, NO_SHORTCUTS, Program};

/// By each group, version and function, resumed, requested again, looked at, on a small stack, with damaged answers.
#[test]
fn it_notices_nothing() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/client.c");
    let program = Program::of(Library::Tls, &source, &["-O1"]);
    let counters = program.same_as_stock(&[], &[EVERY_BATCH]);
    assert!(counters[Event::ClientHandshake] >= 40, "{counters:#?}");
    // Each side has a trial of its own, and either may be over before the other.
    for trial in ["2", "30"] {
        let _ = program.same_as_stock(&[], &[EVERY_BATCH, ("HASTEN_TLS_TRIAL", trial)]);
    }
    let _ = program.same_as_stock(&[], &[NO_SHORTCUTS]);
}
