//! Programs in other languages, and programs that have nothing to do with TLS.

use std::path::Path;
use std::process::Command;

use hasten_telemetry::{Counters, Event};
use hasten_tests::program::{EAGER, EVERY_BATCH, Library, Program, Run, preload};
use hasten_tests::{lanes, tools};

#[test]
fn a_program_without_openssl() {
    let counters = Program::named("without").same_as_stock(&[], &[EAGER, EVERY_BATCH]);
    assert_eq!(counters, Counters::default());
}

#[test]
fn the_kill_switch() {
    let server = Program::named("loop");
    let stock = server.stock(&["edge"]).succeeded();
    let run = server.preloaded(&["edge"], &[EAGER, EVERY_BATCH, ("HASTEN_DISABLE", "tls")]).succeeded();
    assert_eq!(run.output, stock.output);
    assert_eq!(run.counters, Counters::default());
}

/// A library that binds its calls when it makes them, and to its own functions first, although they have OpenSSL's names.
#[test]
fn a_look_alike_keeps_its_own_functions() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/lookalike.c");
    let flags = ["-shared", "-fPIC", "-Wl,--as-needed", "-Wl,-z,lazy"];
    let lookalike = Program::of(Library::Tls, &source, &flags);
    let path = lookalike.path().to_str().expect("a path of ours");
    let counters = Program::named("deepbound").same_as_stock(&[path], &[EAGER, EVERY_BATCH]);
    assert_eq!(counters[Event::HandshakeFinished], 2, "the server's own are seen");
}

/// The interpreter's `ssl` module brings libssl with it, for itself alone.
fn python(style: &str) -> Counters {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/server.py");
    let command = || {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(&script).arg(style);
        command
    };
    tools::file_of("/usr/bin/python3", "python3");
    let stock = Run::of(command(), false).succeeded();
    let mut accelerated = command();
    preload(&mut accelerated, &[EAGER, EVERY_BATCH]);
    let accelerated = Run::of(accelerated, true).succeeded();
    assert_eq!(accelerated.output, stock.output, "{}", accelerated.errors);
    accelerated.counters
}

#[test]
fn libssl_loaded_for_one_module_alone() {
    let counters = python("selectors");
    assert_eq!(counters[Event::HandshakeFinished], 24);
    let least = if lanes::exist() { 12 } else { 6 };
    assert!(counters[Event::Suspended] > least, "{}", counters[Event::Suspended]);
}

#[test]
fn blocking_threads_of_another_language() {
    let counters = python("threads");
    assert_eq!(counters[Event::HandshakeFinished], 24);
    assert_eq!(counters[Event::Suspended], 0);
}

#[test]
fn memory_in_an_event_loop_of_another_language() {
    let counters = python("asyncio");
    assert_eq!(counters[Event::HandshakeFinished], 24);
    assert_eq!(counters[Event::Suspended], 0);
}
