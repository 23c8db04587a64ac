//! Whether a program makes its handshakes in a way that lets them wait for each other.

use hasten_openssl::{HANDSHAKES, LOOPS, OWN_BIO, SOCKETS};
use hasten_probe::Program;
use hasten_probe::program::Imports;
use hasten_probe::program::habit::Habit;

use crate::plan::Reason;

const IN_FRONT: &str = "let nginx or HAProxy end TLS in front of it";

/// Judges by what is known about the program, or else by its imports.
pub(super) fn judge(program: &Program) -> Reason {
    known(program).unwrap_or_else(|| by_imports(&program.name(), &program.imports()))
}

/// Ignores its imports, which may be in a module loaded later.
pub(super) fn known(program: &Program) -> Option<Reason> {
    let script = program.scripts.last().filter(|_| program.habit().is_some());
    let script = script.and_then(|script| script.file_name()).map(|name| name.to_string_lossy().into_owned());
    let name = script.unwrap_or_else(|| program.name());
    let reason = match program.habit() {
        Some(Habit::Proven) => {
            Reason::favour(format!("hasten's tests, and a public suite of tests, run {name}"))
        }
        Some(Habit::Waits) => waits(&name),
        Some(Habit::Memory) => memory(&name),
        None if program.kind.runs_javascript() => memory(&name),
        None => return None,
    };
    Some(reason)
}

/// A single look at what is loaded at start; a module that is loaded later is examined then.
fn by_imports(name: &str, imports: &Imports) -> Reason {
    let begin = imports.workers(&HANDSHAKES);
    if begin.is_empty() {
        return Reason::idle(format!(
            "nothing that {name} loads at start calls {}: the library stays idle until a module does",
            HANDSHAKES.join(" or ")
        ));
    }
    if imports.workers(&LOOPS).is_empty() {
        return Reason::against(format!(
            "nothing in {name} calls {}, which could report a suspended handshake: none is suspended",
            LOOPS.join(" or ")
        ))
        .fix(IN_FRONT);
    }
    let gives = |symbols: &[&str]| imports.workers(symbols).iter().any(|giver| begin.contains(giver));
    if gives(&SOCKETS) {
        return Reason::favour(format!(
            "{name} has an event loop: its first handshakes are watched, and batched once it comes back for them"
        ));
    }
    if gives(&[OWN_BIO]) {
        return Reason::idle(format!(
            "{name} moves the bytes of TLS by a BIO of its own: the library stays idle until it has seen that this \
             reads a socket"
        ));
    }
    memory(name)
}

fn waits(name: &str) -> Reason {
    Reason::against(format!(
        "{name} waits for each handshake in its own process or thread: none can be suspended"
    ))
    .fix(IN_FRONT)
}

fn memory(name: &str) -> Reason {
    Reason::against(format!(
        "{name} passes TLS through memory (BIO) and not through a socket, on which a handshake could wait"
    ))
    .fix(IN_FRONT)
}
