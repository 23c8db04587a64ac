//! Servers with libsocket_wrapper, which Samba's tests use: it wraps the C library's socket calls, and holds its own
//! lock meanwhile and across `fork`. A hook that goes through the C library there aborts the server or deadlocks.

use std::fs;
use std::path::Path;
use std::process::Command;

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::Event;
use hasten_tests::program::without_library;
use hasten_tests::{Side, product, tools};

use crate::animals::NOTHING;
use crate::cage::{Animal, Cage, PYTHON};
use crate::nginx::NGINX;

/// Three threads that share an address.
const HAPROXY: Animal = Animal {
    name: "haproxy",
    program: "haproxy",
    package: "haproxy",
    arguments: &["-f", "{dir}/haproxy.cfg"],
    files: &[(
        "haproxy.cfg",
        "global\n  nbthread 3\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 60s\n\
         frontend zoo\n  bind 127.0.0.1:{port} ssl crt {bundle}\n\
         \x20 http-request return status 200 content-type text/plain string \"hello from the zoo\\n\"\n",
    )],
    ..NOTHING
};

const THREADS: usize = 8;
const VISITS: usize = 40;

/// The clients' results, and how many handshakes the server suspended meanwhile.
fn visits(cage: &Cage, animal: &Animal, side: Side, preload: &str) -> (String, u64) {
    // A separate network, represented by a directory.
    let network = cage.fill("{dir}/network", ([127, 0, 0, 1], 0).into());
    let _ = fs::remove_dir_all(&network);
    fs::create_dir(&network).expect("a directory");
    let variables =
        [("SOCKET_WRAPPER_DIR", "{dir}/network"), ("LD_PRELOAD", preload.to_owned().leak() as &str)];
    let caged = cage.launch(&Animal { variables: variables.to_vec().leak(), ..*animal }, side);
    let mut clients = Command::new(tools::tool(PYTHON, "python3"));
    clients.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/wrapped.py"));
    clients.args([usize::from(caged.address.port()), THREADS, VISITS].map(|number| number.to_string()));
    without_library(&mut clients);
    // Interface 10: on the server's own, the wrapper could give a client the server's port.
    clients
        .env("SOCKET_WRAPPER_DIR", network)
        .env("SOCKET_WRAPPER_DEFAULT_IFACE", "10")
        .env("LD_PRELOAD", wrapper());
    let output = tools::run(&mut clients);
    (String::from_utf8_lossy(&output.stdout).into_owned(), caged.counters()[Event::Suspended])
}

fn wrapper() -> String {
    let path = tools::file_of("/usr/lib/x86_64-linux-gnu/libsocket_wrapper.so", "libsocket-wrapper");
    path.display().to_string()
}

fn same_as_stock(animal: &Animal) {
    let cage = Cage::new(KeyKind::Rsa2048);
    let (wrapper, library) = (wrapper(), product::library().display().to_string());
    let (stock, _) = visits(&cage, animal, Side::Stock, &wrapper);
    let half = THREADS * VISITS / 2;
    assert_eq!(stock, format!("[('TLSv1.2', {half}), ('TLSv1.3', {half})]\n"), "{}: stock", animal.name);
    for preload in [format!("{library}:{wrapper}"), format!("{wrapper}:{library}")] {
        let (found, suspended) = visits(&cage, animal, Side::Accelerated, &preload);
        assert_eq!(found, stock, "{} with {preload}", animal.name);
        assert!(suspended > 0, "{} with {preload}: nothing was accelerated", animal.name);
        eprintln!("{} with {preload}: {suspended} suspensions", animal.name);
    }
}

#[test]
fn nginx_below_socket_wrapper() {
    same_as_stock(&NGINX);
}

#[test]
fn haproxy_below_socket_wrapper() {
    same_as_stock(&HAPROXY);
}
