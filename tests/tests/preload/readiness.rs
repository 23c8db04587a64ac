//! Servers that take epoll at its word.

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

/// A server with a budget leaves most of the reported events to the next wait, where the kernel reports them again.
#[test]
fn no_connection_is_reported_twice_in_one_wait() {
    let counters = Program::named("readiness").same_as_stock(&["twice"], &[EAGER, EVERY_BATCH]);
    assert!(counters[Event::Suspended] > 20, "{}", counters[Event::Suspended]);
}

/// The library notices what they do with the first connections, which are only watched.
#[test]
fn servers_that_look_into_the_socket() {
    let server = Program::named("readiness");
    for how in ["asks", "peeks"] {
        for variables in [&[][..], &[EAGER, EVERY_BATCH]] {
            let counters = server.same_as_stock(&[how], variables);
            assert_eq!(counters[Event::Suspended], 0, "{how}");
        }
    }
}
