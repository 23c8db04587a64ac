//! HAProxy on AWS-LC, whose functions have OpenSSL's names: hasten says that it is not OpenSSL, and leaves it alone even
//! where it is preloaded by hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::Target;
use hasten_bench::server::ServerKind;
use hasten_telemetry::{Counters, Event};
use hasten_tests::program::{EAGER, EVERY_BATCH, Library, Program};
use hasten_tests::subject::{assert_perfect, crowd, send};
use hasten_tests::traffic::Traffic;
use hasten_tests::{Side, product, tools, wait};
use rustix::process::Signal;

use crate::animals::NOTHING;
use crate::cage::{Animal, Cage};

/// A master and its worker; with the socket, a reload loses no connection.
const HAPROXY: Animal = Animal {
    name: "haproxy on AWS-LC",
    program: "haproxy-aws-lc",
    arguments: &["-W", "-f", "{dir}/haproxy.cfg"],
    files: &[(
        "haproxy.cfg",
        "global\n  nbthread 2\n  stats socket {dir}/stats level admin expose-fd listeners\ndefaults\n  mode http\n\
         \x20 timeout client 30s\n  timeout connect 5s\n  timeout server 30s\nfrontend web\n\
         \x20 bind 127.0.0.1:{port} ssl crt {bundle}\n\
         \x20 http-request return status 200 content-type text/plain file {dir}/hello.txt\n",
    )],
    ..NOTHING
};

fn haproxy() -> PathBuf {
    let program = ServerKind::HaproxyAwsLc.program();
    program.unwrap_or_else(|missing| panic!("{missing}: {}", missing.fix()))
}

/// What `hasten` prints about it.
fn says(arguments: &[&str]) -> String {
    let output =
        tools::run(Command::new(product::hasten()).args(arguments).arg("--").arg(haproxy()).arg("-v"));
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[test]
#[ignore = "a part of `make zoo`"]
fn it_is_named_as_the_reason() {
    for arguments in [&["check"][..], &["run", "--dry-run"]] {
        let said = says(arguments);
        assert!(said.contains("haproxy-aws-lc links AWS-LC ") && said.contains(", not OpenSSL"), "{said}");
        assert!(!said.contains("LD_PRELOAD="), "{said}");
    }
    let run = says(&["run"]);
    assert!(run.contains("HAProxy version "), "it runs all the same: {run}");
}

#[test]
#[ignore = "a part of `make zoo`"]
fn its_handshakes_are_its_own() {
    haproxy();
    for kind in [KeyKind::Rsa2048, KeyKind::P256] {
        assert_eq!(Cage::new(kind).compare(&HAPROXY), Counters::default());
    }
}

#[test]
#[ignore = "a part of `make zoo`"]
fn it_reloads_again_and_again_without_losing_a_client() {
    haproxy();
    let cage = Cage::new(KeyKind::P256);
    let server = cage.start(&HAPROXY, Side::Accelerated);
    let body = Some(b"hello from the zoo\n".to_vec());
    let traffic = Traffic::start(&Target { address: server.address, certificate: None, body }, &crowd());
    for _ in 0..4 {
        let (old, served) = (workers(server.pid()), traffic.ops());
        wait::until("clients to be served", || traffic.ops() > served);
        assert!(old.iter().all(|worker| is_preloaded(*worker)), "the library is not there at all");
        send(server.pid(), Signal::USR2);
        wait::until("the old worker to end", || {
            let now = workers(server.pid());
            !now.is_empty() && now.is_disjoint(&old)
        });
    }
    assert_perfect(&traffic.stop(), "");
    assert_eq!(server.counters(), Counters::default());
}

fn workers(master: u32) -> BTreeSet<u32> {
    let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|worker| worker.parse().ok()).collect()
}

fn is_preloaded(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| maps.contains("/libhasten_tls.so"))
}

/// OpenSSL's handshakes are accelerated, AWS-LC's are not taken for any of them.
#[test]
#[ignore = "a part of `make zoo`"]
fn both_in_one_process_keep_to_themselves() {
    let libraries = haproxy().canonicalize().expect("a program").with_file_name("../lib");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/aws_lc.c");
    let [ssl, crypto] = ["ssl", "crypto"].map(|name| format!("{}/lib{name}.so", libraries.display()));
    let path = format!("-Wl,-rpath,{}", libraries.display());
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        // OpenSSL's libraries follow; of them nothing is needed any more.
        let flags =
            ["-shared", "-fPIC", binding, &path, "-Wl,--no-as-needed", &ssl, &crypto, "-Wl,--as-needed"];
        let side = Program::of(Library::Tls, &source, &flags);
        let side = side.path().to_str().expect("a path of ours");
        let counters = Program::named("deepbound").same_as_stock(&[side], &[EAGER, EVERY_BATCH]);
        assert_eq!(counters[Event::HandshakeFinished], 2, "{binding}");
    }
}
