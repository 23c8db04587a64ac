//! A thread with a suspended handshake waits for something that happens only after that handshake continues.

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

fn goes_on(what: &str) {
    let counters = Program::named("waits").same_as_stock(&[what], &[EAGER, EVERY_BATCH]);
    assert!(counters[Event::Suspended] > 1, "{what}: nothing was suspended");
    assert!(counters[Event::CalledIn] > 0, "{what}: nothing was called in");
}

macro_rules! waits {
    ($($name:ident => $what:literal)+) => { $(#[test] fn $name() { goes_on($what) })+ };
}

waits! {
    a_mutex => "mutex"
    a_mutex_with_a_time_limit => "timed"
    a_mutex_of_c11 => "c-mutex"
    a_lock_for_readers => "shared"
    a_lock_for_a_writer => "exclusive"
    a_lock_on_a_file => "record"
    a_line_of_a_stream => "line"
    a_block_of_a_stream => "block"
    a_character_of_a_stream => "character"
    a_character_without_a_lock => "unlocked-character"
    what_is_scanned => "scan"
    what_is_printed => "print"
    a_text_that_is_printed => "print-text"
    a_block_that_is_printed => "print-block"
    what_is_printed_to_a_descriptor => "print-descriptor"
    the_lock_of_a_stream => "locked-stream"
    a_spinlock => "spin"
    a_pipe_that_is_spliced => "splice"
    a_connection_that_lingers => "lingering"
    an_event => "event"
    the_other_end_of_a_fifo => "fifo"
    what_runs_once => "once"
    a_turn_of_another_thread => "yield"
    a_system_call_made_by_hand => "system-call"
}
