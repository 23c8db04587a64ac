//! Children, copies, and other programs.

use hasten_telemetry::{Algorithm, Event};
use hasten_tests::program::{EAGER, EVERY_BATCH, Program};
use hasten_tests::{lanes, product};

/// A process's prepared keys, nonces and random numbers are not shared with its children.
fn chooses_anew(what: &str, keygen: Algorithm) {
    let program = Program::named("processes");
    let counters = program.same_as_stock(&[what], &[EVERY_BATCH]);
    let output = program.preloaded(&[what], &[EVERY_BATCH]).succeeded().output;
    assert_eq!(output, ["handshakes 600, choices made twice 0"]);
    if lanes::exist() {
        assert!(counters[Event::PoolHit] >= 24 * 7, "{what}: the pools were not used");
        assert!(counters[keygen].batched > 0, "{what}: {keygen} was not batched");
    }
}

#[test]
fn children_choose_keys_and_nonces_of_their_own() {
    chooses_anew("fork-x25519", Algorithm::X25519Keygen);
    chooses_anew("fork-p-256", Algorithm::P256Keygen);
}

#[test]
fn so_do_children_that_the_c_library_does_not_know_of() {
    chooses_anew("clone", Algorithm::X25519Keygen);
}

#[test]
fn a_fork_in_the_middle_of_a_handshake() {
    for what in ["child-goes-on", "parent-goes-on"] {
        let counters = Program::named("processes").same_as_stock(&[what], &[EAGER, EVERY_BATCH]);
        assert!(counters[Event::Suspended] > 10 && counters[Event::CalledIn] == 3, "{what}");
    }
}

fn executes(what: &str) -> Vec<String> {
    Program::named("processes").preloaded(&[what], &[EVERY_BATCH]).succeeded().output
}

/// Like nginx's binary upgrade.
#[test]
fn its_own_executable_stays_preloaded() {
    assert_eq!(executes("exec-empty"), ["preloaded"]);
    assert_eq!(executes("exec-some"), ["preloaded A=1 HASTEN_MINE=2"]);
    assert_eq!(executes("exec-off"), ["preloaded HASTEN_DISABLE=tls"]);
}

#[test]
fn an_environment_with_a_preload_list_is_as_it_was_meant() {
    assert_eq!(executes("exec-own"), ["not preloaded A=1"]);
}

#[test]
fn other_programs_get_exactly_the_environment_that_was_meant() {
    assert_eq!(executes("exec-other"), ["A=1", "HASTEN_MINE=2"]);
    assert_eq!(executes("exec-missing"), ["missing -1 1", "no name -1 1"]);
}

#[test]
fn without_the_library_this_program_would_not_be_preloaded() {
    let stock = Program::named("processes").stock(&["exec-empty"]).succeeded();
    assert_eq!(stock.output, ["not preloaded"]);
    assert!(product::library().is_file());
}
