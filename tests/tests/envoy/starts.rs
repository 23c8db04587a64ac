//! Envoy as the child of something else: of a shell script, as of Istio's pilot-agent, func-e or a container's entry point.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hasten_bench::certificates::KeyKind;
use hasten_bench::cpu::children;
use hasten_telemetry::Event;
use hasten_tests::lanes;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{counters_of, send};
use rustix::process::Signal;
use serde_json::json;

use crate::gzip::all;
use crate::subject::{How, Place, RELEASES, build, fetched};
use crate::tls::{drive, full, signature, start};
use hasten_bench::drive::{Group, Protocol};

/// Starts Envoy beside itself, and stays.
const SCRIPT: &str = "#!/bin/sh\n\"$@\" &\necho $! > \"$0.pid\"\nwait\n";

/// It is found by what finally runs.
#[test]
fn a_child_of_a_script_is_accelerated() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P384);
    let script = place.path().join("pilot-agent");
    fs::write(&script, SCRIPT).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    let (agent, addresses) = start(&place, &build(RELEASES[0]), &[full(&certificate)], How::By(&script));
    drive(addresses[0], &certificate, Protocol::Tls13, Group::X25519);
    let process = fs::read_to_string(script.with_extension("pid")).expect("a number");
    let process: u32 = process.trim().parse().expect("a number");
    assert_ne!(process, agent.id());
    let counters = counters_of(process);
    assert!(lanes::batched(&counters, signature(certificate.kind)) > 0, "{counters:?}");
    send(process, Signal::TERM);
    // The script waits for Envoy.
    agent.await_end();
}

/// func-e is linked statically, as Istio's pilot-agent is: no library is ever in it. It finds no administration but at a port.
#[test]
#[ignore = "a part of `make zoo`"]
fn a_child_of_func_e_is_accelerated() {
    let place = Place::new();
    let program = fetched("func-e/func-e", "scripts/func-e.sh");
    let func_e = place.start(&build(RELEASES[0]), &json!({}), How::FuncE(&program));
    all(&func_e);
    let envoy = children(func_e.id());
    let counters = counters_of(*envoy.first().expect("Envoy"));
    assert!(counters[Event::DeflateStreams] > 0, "{counters:?}");
    send(func_e.id(), Signal::TERM);
    func_e.await_end();
}
