//! Signal handlers that wait, in a server with suspended handshakes.

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

#[test]
fn no_handshake_goes_on_inside_of_one() {
    let counters = Program::named("handlers").same_as_stock(&[], &[EAGER, EVERY_BATCH]);
    assert!(counters[Event::Suspended] > 4, "{}", counters[Event::Suspended]);
}
