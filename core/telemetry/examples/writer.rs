//! A stand-in for an accelerated server, to try `hasten top` without one: it
//! forks workers that count fictitious operations.
//!
//! ```sh
//! cargo run -p hasten-telemetry --example writer -- [WORKERS] [SECONDS]
//! ```
//!
//! With 0 seconds the workers count once; the process prints `ready` and ends
//! when its standard input does.

use hasten_telemetry::{Algorithm, Event, Reason, after_fork_child, init, page, slot, start};
use std::io::Read;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let (workers, seconds) = (arguments.next().unwrap_or(2_u64), arguments.next().unwrap_or(0));
    init("tls");
    page().set_note("example writer, no server");
    for (algorithm, lanes, scalar_ns, batch_ns) in [
        (Algorithm::Rsa2048Sign, 4, 257_000, 976_000),
        (Algorithm::P256Sign, 2, 25_000, 48_000),
        (Algorithm::X25519Keygen, 1, 41_000, 33_000),
        (Algorithm::X25519Derive, 2, 37_000, 53_000),
    ] {
        page().set_break_even(algorithm, lanes, scalar_ns, batch_ns);
    }
    start();
    let children: Vec<_> =
        (0..workers).map(|worker| fork(|| work(worker, Duration::from_secs(seconds)))).collect();
    println!("ready");
    if seconds == 0 {
        // Errors end the wait as well.
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
    }
    children.into_iter().for_each(reap);
}

fn work(worker: u64, duration: Duration) {
    let start = Instant::now();
    for turn in 0.. {
        count(turn + worker);
        if start.elapsed() >= duration {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One turn of an event loop with `turn % 8 + 1` handshakes waiting.
fn count(turn: u64) {
    let slot = slot();
    let waiting = turn % 8 + 1;
    slot.event_n(Event::HandshakeStarted, waiting);
    slot.event_n(Event::Suspended, waiting);
    if waiting < 4 {
        slot.scalar(Algorithm::Rsa2048Sign, waiting);
        slot.bypass_n(if waiting == 1 { Reason::Alone } else { Reason::BelowBreakEven }, waiting);
    } else {
        let saved = (waiting * 257_000).saturating_sub(976_000);
        slot.batched(Algorithm::Rsa2048Sign, waiting as usize, 976_000, saved);
        slot.event(Event::TurnsBatched);
    }
    slot.batched(
        Algorithm::X25519Derive,
        waiting as usize,
        53_000,
        (waiting * 37_000).saturating_sub(53_000),
    );
    slot.event_n(Event::HandshakeFinished, waiting);
    if turn.is_multiple_of(64) {
        slot.bypass(Reason::UnsupportedKey);
    }
}

fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this program has a single thread, so the child may do anything.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        after_fork_child();
        child();
        // SAFETY: the last thing the child does.
        unsafe { libc::_exit(0) };
    }
    pid
}

fn reap(pid: libc::pid_t) {
    // SAFETY: waits for a child of this process and wants no status.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}
