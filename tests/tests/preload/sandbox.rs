//! Servers that restrict their own system calls.

use std::process::Command;

use hasten_tests::product;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program, Run, without_library};

/// Both libraries in one process, in both orders: whichever starts first informs the other.
fn serves_on(what: &str) {
    let program = Program::named("sandbox");
    let stock = program.stock(&[what]).succeeded();
    assert_eq!(stock.output, ["served 12, failed visits 0"]);
    let (tls, gzip) = (product::library(), product::gzip_library());
    for list in [[&tls, &gzip], [&gzip, &tls]] {
        let mut command = Command::new(program.path());
        without_library(&mut command);
        let list = list.map(|path| path.display().to_string()).join(":");
        command.arg(what).env("LD_PRELOAD", list).envs([EAGER, EVERY_BATCH]);
        let run = Run::of(command, false).succeeded();
        assert_eq!(run.output, stock.output, "{what}: {}", run.errors);
    }
}

#[test]
fn with_a_filter_from_the_start() {
    serves_on("early");
}

#[test]
fn with_a_filter_after_some_clients() {
    serves_on("late");
}

#[test]
fn with_a_filter_by_a_system_call() {
    serves_on("system-call");
}
