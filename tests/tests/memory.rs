//! Coroutines and hooks under valgrind's memcheck: no invalid access, no leaks.
//!
//! Valgrind has no AVX-512, which OpenSSL and the library detect by themselves: the original functions answer
//! suspended operations.

use std::process::Command;

use hasten_telemetry::{Counters, Event};
use hasten_tests::program::{EAGER, Program, Run, SUSPEND_ONLY, preload};
use hasten_tests::tools;
use tempfile::NamedTempFile;

/// A run without complaints from valgrind.
fn is_clean(program: &str, arguments: &[&str]) -> Counters {
    const COMPLAINT: i32 = 9;
    let program = Program::named(program);
    let mut command = Command::new(tools::tool("valgrind", "valgrind"));
    command.args(["--quiet", "--leak-check=full", "--num-callers=30", "--child-silent-after-fork=yes"]);
    // It distinguishes a stack switch from a large frame by the distance, which is smaller between two of our stacks.
    command.arg("--max-stackframe=131072");
    // It would write the stdio buffers that children have inherited.
    command.arg("--run-libc-freeres=no");
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    command.arg(format!("--error-exitcode={COMPLAINT}")).arg(program.path()).args(arguments);
    preload(&mut command, &[EAGER, SUSPEND_ONLY]);
    let run = Run::of(command, true).succeeded();
    assert_eq!(run.output, program.stock(arguments).succeeded().output);
    run.counters
}

/// The counters must show that the run exercised what it is to check.
fn suspends(program: &str, arguments: &[&str]) -> Counters {
    let counters = is_clean(program, arguments);
    assert!(counters[Event::Suspended] > 0, "nothing was suspended");
    assert_eq!(counters.total().batched, 0, "valgrind has no AVX-512");
    counters
}

/// An RSA key, made outside because that takes long under valgrind.
struct Key(NamedTempFile);

impl Key {
    fn new() -> Self {
        let file = NamedTempFile::new().expect("a file for the key");
        let mut openssl = Command::new(tools::tool("openssl", "openssl"));
        tools::run(openssl.args(["genrsa", "-out"]).arg(file.path()).arg("2048"));
        Self(file)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().expect("a path that is text")
    }
}

#[test]
fn handshakes_that_go_on() {
    let key = Key::new();
    let counters = suspends("loop", &["edge", key.path()]);
    assert_eq!(counters[Event::HandshakeFinished], 64);
}

#[test]
fn handshakes_that_are_given_up() {
    let key = Key::new();
    assert_eq!(suspends("suspended", &["free", key.path()])[Event::Cancelled], 20);
    assert_eq!(suspends("suspended", &["callback-frees", key.path()])[Event::Cancelled], 1);
}

#[test]
fn keys_that_somebody_else_holds() {
    let _ = is_clean("keys", &["temporary-kept"]);
}
