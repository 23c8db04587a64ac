//! A thread blocks deep in its stack, where the frames of a suspended handshake belong.

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

#[test]
fn a_fiber_is_another_stack() {
    let counters = Program::named("deep").same_as_stock(&["fiber"], &[EAGER, EVERY_BATCH]);
    assert!(counters[Event::Suspended] > 0);
}

#[test]
fn what_another_thread_uses_there_stays_as_it_is() {
    let counters = Program::named("deep").same_as_stock(&[], &[EAGER, EVERY_BATCH]);
    // The first that is out of reach ends suspension, for which its thread has to come by.
    assert!((1..8).contains(&counters[Event::Suspended]), "{}", counters[Event::Suspended]);
}
