//! What a server may do with a connection in mid-handshake: the outcome is the stock server's.

use hasten_telemetry::{Counters, Event};
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

fn same_as_stock(what: &str) -> Counters {
    let server = Program::named("suspended");
    let _ = server.same_as_stock(&[what], &[EAGER, EVERY_BATCH]);
    // In an unknown server, callbacks keep handshakes from being suspended.
    let counters = server.proven().same_as_stock(&[what], &[EAGER, EVERY_BATCH]);
    assert!(counters[Event::Suspended] > 0, "{what}: nothing was suspended");
    counters
}

/// Nothing is given up: everything suspended continues.
fn goes_on(what: &str) {
    let counters = same_as_stock(what);
    assert_eq!(counters[Event::Cancelled], 0, "{what}");
    assert_eq!(counters[Event::Resumed], counters[Event::Suspended], "{what}");
}

/// Only handshakes that the server ends are given up.
fn gives_up(what: &str, expected: u64) {
    assert_eq!(same_as_stock(what)[Event::Cancelled], expected, "{what}");
}

macro_rules! scenarios {
    ($($what:ident: $($name:ident => $scenario:expr)+;)+) => {
        $($(#[test] fn $name() { $what($scenario) })+)+
    };
}

scenarios! {
    goes_on:
        ssl_read_goes_on_with_it => "read"
        ssl_read_ex_goes_on_with_it => "read-ex"
        ssl_peek_goes_on_with_it => "peek"
        ssl_peek_ex_goes_on_with_it => "peek-ex"
        ssl_write_goes_on_with_it => "write"
        ssl_write_ex_goes_on_with_it => "write-ex"
        ssl_shutdown_is_refused => "shutdown"
        errors_of_others_are_not_its_own => "errors"
        a_second_owner_before => "shared-before"
        a_second_owner_inside => "shared-inside"
        a_duplicate => "duplicated"
        a_duplicated_descriptor => "duplicated-number"
        registered_anew => "reregistered"
        odd_arguments => "odd-calls"
        a_callback_that_meddles => "callback"
        a_socket_that_becomes_blocking => "blocking"
        a_connection_that_is_shut_down => "shut"
        a_connection_that_is_shut_down_for_writing => "half-shut"
        bytes_that_go_past_libssl => "send"
        parts_that_go_past_libssl => "write-parts"
        closed_with_others_by_a_range => "close-range"
        closed_with_a_stream => "close-stream"
        the_end_by_abort => "abort"
        the_end_by_a_signal_to_itself => "raise"
        the_end_by_kill => "kill"
        a_registration_that_reports_once => "one-shot"
        what_it_tells_of_itself => "getters"
        more_than_there_are_stacks_for => "crowd";
}

#[test]
fn freed() {
    gives_up("free", 20);
}

#[test]
fn freeing_calls_nobody() {
    gives_up("callbacks", 1);
    gives_up("own-callbacks", 1);
}

#[test]
fn cleared() {
    gives_up("clear", 1);
    gives_up("clear-and-repeat", 1);
}

#[test]
fn freed_by_a_callback_of_another_handshake() {
    gives_up("callback-frees", 1);
}

#[test]
fn a_descriptor_that_gets_another_meaning() {
    // Handshakes are completed before that.
    gives_up("replaced-number", 0);
    gives_up("reused-number", 0);
}

/// Another thread can neither continue a handshake nor end it.
#[test]
fn used_by_other_threads() {
    gives_up("threads", 0);
    gives_up("thread-ends", 0);
}

#[test]
fn the_end_of_the_process() {
    let server = Program::named("suspended");
    assert_eq!(server.preloaded(&["exit"], &[EAGER, EVERY_BATCH]).succeeded().output, [""; 0]);
}
