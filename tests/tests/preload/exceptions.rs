//! C++ exceptions that unwind out of a callback, and thus out of a handshake.

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};
use hasten_tests::tools;

#[test]
fn they_arrive_where_the_handshake_was_called() {
    let _ = tools::tool("c++", "g++");
    let other_half = concat!(env!("CARGO_MANIFEST_DIR"), "/preload/throwing.cc");
    let program = Program::with_flags("exceptions", &["-O1", other_half, "-lstdc++"]).proven();
    for callback in ["certificate", "name", "progress"] {
        let counters = program.same_as_stock(&[callback], &[EAGER, EVERY_BATCH]);
        assert!(counters[Event::Suspended] > 8, "{callback}: {}", counters[Event::Suspended]);
    }
}
