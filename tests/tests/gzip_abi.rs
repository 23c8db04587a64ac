//! Calls of zlib's deflate in any order, with any arguments: a program sees exactly what the original would show it.
//!
//! The scripts are random bytes, which `preload/deflate_script.c` plays on both; a script that makes a difference is
//! shortened until every byte of it matters.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use hasten_telemetry::Event;
use hasten_tests::program::{Library, Program, without_library};
use hasten_tests::{effort, tools};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// The program that plays scripts, restarted after a difference.
struct Player {
    preloaded: bool,
    running: Option<Child>,
}

impl Player {
    fn new(preloaded: bool) -> RefCell<Self> {
        RefCell::new(Self { preloaded, running: None })
    }

    fn play(&mut self, script: &[u8]) -> Result<(), TestCaseError> {
        let preloaded = self.preloaded;
        let child = self.running.get_or_insert_with(|| start(preloaded));
        let verdict = ask(child, script).unwrap_or_default();
        if verdict == "ok\n" {
            return Ok(());
        }
        let status = self.end();
        Err(TestCaseError::fail(if verdict.is_empty() { format!("it ends with {status}") } else { verdict }))
    }

    fn end(&mut self) -> String {
        let Some(mut child) = self.running.take() else { return String::new() };
        drop(child.stdin.take());
        child.wait().expect("a player ends").to_string()
    }
}

fn start(preloaded: bool) -> Child {
    let mut command = Command::new(Program::using_zlib("deflate_script").path());
    if preloaded {
        Library::Gzip.preload(&mut command, &[]);
    } else {
        without_library(&mut command);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a player")
}

fn ask(child: &mut Child, script: &[u8]) -> std::io::Result<String> {
    let length = u32::try_from(script.len()).expect("a short script");
    let stdin = child.stdin.as_mut().expect("stdin is a pipe");
    stdin.write_all(&[&length.to_le_bytes(), script].concat())?;
    let mut line = String::new();
    BufReader::with_capacity(1, child.stdout.as_mut().expect("stdout is a pipe")).read_line(&mut line)?;
    Ok(line)
}

/// Short ones, where only the first calls matter, and long ones.
fn scripts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(30usize), Just(100), Just(400)].prop_flat_map(|length| vec(any::<u8>(), 8..length))
}

fn play(preloaded: bool, cases: u32) {
    let player = Player::new(preloaded);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let result = TestRunner::new(config).run(&scripts(), |script| player.borrow_mut().play(&script));
    if let Err(error) = result {
        panic!("{error}");
    }
    assert_eq!(player.borrow_mut().end(), "exit status: 0");
}

/// The player must find nothing where there is nothing to find.
#[test]
fn the_original_agrees_with_itself() {
    play(false, 200);
}

#[test]
fn deflate_in_any_order() {
    play(true, effort(500, 4000));
}

/// The original needs two kilobytes; an engine is not called where it would not fit.
#[test]
fn streams_on_short_stacks() {
    let program = Program::using_zlib("zlib_stack");
    for verify in ["0", "1"] {
        let counters = program.same_as_stock(&[], &[("HASTEN_GZIP_VERIFY", verify)]);
        for event in [Event::DeflateOriginal, Event::DeflateIsal, Event::DeflateLibdeflate] {
            assert!(counters[event] > 0, "{event:?}: nothing was compressed so");
        }
    }
}

/// No memory is allocated while a stream compresses, and nothing but its output is written.
#[test]
fn what_zlib_does_not_do() {
    let program = Program::using_zlib("zlib_guest");
    for scenario in ["memory", "behind", "in_place", "handlers", "answers"] {
        let counters = program.same_as_stock(&[scenario], &[]);
        assert!(counters[Event::DeflateStreams] > 0, "{scenario}: no stream was ours");
    }
}

/// A sandbox that ends the process at our first system call, around open streams.
#[test]
fn streams_that_are_taken_into_a_sandbox() {
    let program = Program::using_zlib("zlib_guest");
    for scenario in ["sandbox", "sandbox-warm"] {
        let mut command = Command::new(program.path());
        Library::Gzip.preload(command.arg(scenario), &[]);
        let output = tools::run(&mut command);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "packed\n", "{scenario}");
    }
}

/// It may have no `malloc_usable_size`, and the C library's does not know its blocks.
#[test]
fn a_program_with_a_malloc_of_its_own() {
    let counters = Program::using_zlib("zlib_malloc").same_as_stock(&[], &[]);
    assert!(counters[Event::DeflateStreams] > 0);
}

/// Deflate's allocations are compared by the player, one by one; these are inflate's.
#[test]
fn memory_of_inflate_streams() {
    let program = Program::using_zlib("inflate_memory");
    let mut command = Command::new(program.path());
    Library::Gzip.preload(&mut command, &[]);
    let output = String::from_utf8(tools::run(&mut command).stdout).expect("text");
    let rows: Vec<&str> = output.lines().collect();
    assert_eq!(rows.len(), 14, "{output}");
    for pair in rows.chunks(2) {
        assert_eq!(pair[1], pair[0], "ours (left) and the original's");
        assert!(pair[0].contains("opened 1*"), "{output}");
    }
}

/// Kilobytes that a process has locked in RAM, before its first stream and after a burst on many threads.
fn locked(preloaded: bool) -> [i64; 2] {
    let mut command = Command::new(Program::using_zlib("zlib_locked").path());
    if preloaded {
        Library::Gzip.preload(&mut command, &[]);
    } else {
        without_library(&mut command);
    }
    let output = String::from_utf8(tools::run(&mut command).stdout).expect("text");
    let numbers: Vec<i64> = output.lines().map(|line| line.parse().expect("a number")).collect();
    numbers.try_into().expect("two lines")
}

/// Memory used in a burst returns to the kernel: what remains is the library itself, and tables for the next streams.
#[test]
fn memory_that_is_locked() {
    const MEGABYTE: i64 = 1024;
    let ([idle, after], [stock_idle, stock_after]) = (locked(true), locked(false));
    assert!(idle - stock_idle <= 3 * MEGABYTE, "idle: {idle} KB, not {stock_idle}");
    assert!(after - stock_after <= 16 * MEGABYTE, "after a burst: {after} KB, not {stock_after}");
}
