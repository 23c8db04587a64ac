//! A service whose settings have known effects: each request costs an exact amount of CPU time.
//!
//! It burns by its own thread's clock, so neither a busy neighbour nor a slow processor changes the cost of a request.
//! Environment variables, each `on`, change it:
//!
//! | variable | effect |
//! |---|---|
//! | `PLANTED_GOOD` | 12 % more requests for the same CPU |
//! | `PLANTED_BAD` | 8 % fewer |
//! | `PLANTED_TWIN_A`, `PLANTED_TWIN_B` | 10 % more each; both together 15 % fewer |
//! | `PLANTED_LOUD` | half of the CPU, and an error in its log |
//! | `PLANTED_CORRUPT` | half of the CPU, and one digit of the answer is wrong |
//! | `PLANTED_FAT` | half of the CPU, and an answer that is longer by a header |
//! | any other | none |

#![forbid(unsafe_code)]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Connections at a time.
const THREADS: usize = 4;
const COST: Duration = Duration::from_millis(1);

fn main() {
    let port = env::args().nth(1).expect("the port is the only argument");
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port is free");
    let (cost, digit) = (COST.mul_f64(1.0 / gain()), if is_on("PLANTED_CORRUPT") { 7 } else { 8 });
    eprintln!("listening on port {port}, no errors so far");
    if is_on("PLANTED_LOUD") {
        eprintln!("Error: something is wrong");
    }
    // Threads that stay: the usage of ended threads is known only to a hundredth of a second.
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| listener.incoming().flatten().for_each(|stream| serve(&stream, cost, digit)));
        }
    });
}

/// Requests per CPU time, relative to those without any setting.
fn gain() -> f64 {
    let factor = |name: &str, factor: f64| if is_on(name) { factor } else { 1.0 };
    let twins = match (is_on("PLANTED_TWIN_A"), is_on("PLANTED_TWIN_B")) {
        (true, true) => 0.85,
        (false, false) => 1.0,
        _ => 1.10,
    };
    twins
        * factor("PLANTED_GOOD", 1.12)
        * factor("PLANTED_BAD", 0.92)
        * factor("PLANTED_CORRUPT", 2.0)
        * factor("PLANTED_LOUD", 2.0)
        * factor("PLANTED_FAT", 2.0)
}

fn is_on(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| value == "on")
}

/// Requests of one connection, without bodies.
fn serve(stream: &TcpStream, cost: Duration, digit: u8) {
    let _ = stream.set_nodelay(true);
    let mut lines = BufReader::new(stream).lines();
    let body = format!("{{\"items\": [1, 2, 3, 5, {digit}]}}\n");
    let fat = if is_on("PLANTED_FAT") { "X-Fat: 1\r\n" } else { "" };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fat}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            burn(cost);
            let mut stream = stream;
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn burn(cost: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("the clock runs");
    let end = now() + cost;
    while now() < end {
        std::hint::spin_loop();
    }
}
