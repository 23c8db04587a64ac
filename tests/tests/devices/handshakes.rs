//! TLS handshakes by QAT: the device really signs them, and no client notices what happens to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{Launcher, ServerKind, ServerSpec};
use hasten_telemetry::{Algorithm, BreakerState, Counters, Engine, Event, Fault};
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::program::{EAGER, Program, Run, preload};
use hasten_tests::subject::{alarms, assert_perfect, counters_of, crowd};
use hasten_tests::traffic::Traffic;
use hasten_tests::{Subject, lanes, product, tools, wait};
use rustix::process::Signal;

use crate::report;
use crate::simulation::{Injected, Simulated, Simulation};

/// No operation times out because the machine is busy.
pub(crate) const PATIENT: (&str, &str) = ("HASTEN_DEVICE_TIMEOUT_MS", "10000");

pub(crate) fn spec(
    simulation: &Simulation,
    kind: ServerKind,
    key: KeyKind,
    pki: &Pki,
    devices: &'static str,
) -> ServerSpec {
    let spec = ServerSpec::new(kind, pki.certificate(key)).env("HASTEN_ONLY", "tls");
    simulation.environment(devices).iter().fold(spec, |spec, (name, value)| spec.env(name, value))
}

/// Waits until the device has signed this many more handshakes.
pub(crate) fn wait_for_signatures(server: &Subject, more: u64) {
    let before = server.counters()[Engine::Qat].ok;
    wait::until("handshakes that the device signs", || server.counters()[Engine::Qat].ok >= before + more);
}

fn signed_by_lanes(counters: &Counters, algorithm: Algorithm) -> u64 {
    counters[algorithm].batched
}

#[test]
fn every_kind_of_rsa_key_signs_by_the_device() {
    let pki = Pki::new();
    for (kind, key, algorithm) in [
        (ServerKind::Nginx, KeyKind::Rsa2048, Algorithm::Rsa2048Sign),
        (ServerKind::Nginx, KeyKind::Rsa3072, Algorithm::Rsa3072Sign),
        (ServerKind::Nginx, KeyKind::Rsa4096, Algorithm::Rsa4096Sign),
        (ServerKind::Haproxy, KeyKind::Rsa2048, Algorithm::Rsa2048Sign),
    ] {
        let simulation = Simulation::new();
        let spec = spec(&simulation, kind, key, &pki, "qat").env(PATIENT.0, PATIENT.1);
        let server = Subject::accelerated(&spec);
        server.under_load(|| {
            wait_for_signatures(&server, 1);
            let before = server.counters();
            wait_for_signatures(&server, 50);
            let (after, operations) = (server.counters(), simulation.operations(Simulated::Qat));
            assert!(after[Engine::Qat].ok <= operations, "{kind:?} {key:?}: the device did {operations}");
            let new = after.since(&before);
            // Software handles what arrives while the ring is full.
            let by_lanes = signed_by_lanes(&new, algorithm);
            assert!(by_lanes < new[Engine::Qat].ok, "{kind:?} {key:?}: {by_lanes} by lanes");
            assert_eq!((new[Engine::Qat].failed, new[Event::VerifyFailed]), (0, 0), "{kind:?} {key:?}");
        });
        server.finish();
    }
}

/// The breaker's name for each; those that keep sessions from starting follow a reset.
const FAULTS: [(Injected, Fault); 11] = [
    (Injected::InitFailure, Fault::Init),
    (Injected::NoInstance, Fault::Init),
    (Injected::HangInit, Fault::TimedOut),
    (Injected::Slow, Fault::TimedOut),
    (Injected::Hang, Fault::TimedOut),
    (Injected::WrongBytes, Fault::BadOutput),
    (Injected::Partial, Fault::BadOutput),
    (Injected::Abort, Fault::Error),
    (Injected::Gone, Fault::Gone),
    (Injected::Restarting, Fault::Gone),
    (Injected::QueueFull, Fault::QueueFull),
];

fn survives_every_fault(spec: &ServerSpec, simulation: &Simulation) {
    let server = Subject::accelerated(spec);
    server.under_load(|| {
        wait_for_signatures(&server, 1);
        for (injected, fault) in FAULTS {
            let before = server.counters();
            match injected {
                // More than the time limit, which is more than a busy machine takes without a fault.
                Injected::Slow => simulation.slow(Simulated::Qat, 1000),
                _ => simulation.inject(Simulated::Qat, injected),
            }
            if matches!(injected, Injected::InitFailure | Injected::NoInstance | Injected::HangInit) {
                // Existing sessions are not affected.
                simulation.reset(Simulated::Qat);
            }
            wait::until(&format!("the breaker to open for {injected:?}"), || {
                let is_it = report(&server, Engine::Qat).is_some_and(|report| report.fault == Some(fault));
                is_it && server.counters()[Engine::Qat].opened > before[Engine::Qat].opened
            });
            let finished = server.counters()[Event::HandshakeFinished];
            wait::until("handshakes without the device", || {
                server.counters()[Event::HandshakeFinished] > finished + 20
            });
            simulation.inject(Simulated::Qat, Injected::None);
            wait::until("the device to be back", || {
                report(&server, Engine::Qat).is_some_and(|report| report.state == BreakerState::Closed)
            });
            wait_for_signatures(&server, 10);
            let new = server.counters().since(&before);
            let is_wrong = matches!(injected, Injected::WrongBytes | Injected::Partial);
            assert!(
                !is_wrong || new[Event::VerifyFailed] > 0,
                "{injected:?} was noticed by the check: {new:?}"
            );
        }
    });
    server.finish();
}

#[test]
fn no_handshake_is_lost_by_any_fault_and_the_device_is_used_again() {
    let pki = Pki::new();
    // One event loop, and two that share a breaker.
    for (kind, loops) in [(ServerKind::Nginx, 1), (ServerKind::Haproxy, 2)] {
        let simulation = Simulation::new();
        let spec = spec(&simulation, kind, KeyKind::Rsa2048, &pki, "qat")
            .env("HASTEN_DEVICE_TIMEOUT_MS", "400")
            .env("HASTEN_DEVICE_RETRY_MS", "5-50");
        survives_every_fault(&spec.workers(loops), &simulation);
    }
}

#[test]
fn new_workers_sign_by_the_device_and_old_ones_end() {
    let pki = Pki::new();
    for fault in [Injected::None, Injected::Slow] {
        let simulation = Simulation::new();
        let spec =
            spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "qat").env(PATIENT.0, PATIENT.1);
        let server = Subject::accelerated(&spec.workers(2));
        server.under_load(|| {
            wait_for_signatures(&server, 1);
            simulation.inject(Simulated::Qat, fault);
            for _ in 0..3 {
                let old = server.serving();
                server.signal(Signal::HUP).unwrap();
                wait::until("new workers", || {
                    let now = server.serving();
                    now.len() == 2 && now.iter().all(|worker| !old.contains(worker))
                });
                wait_for_signatures(&server, 20);
            }
        });
        server.finish();
    }
}

/// nginx ends handshakes that take longer than a second. The device answers them later.
#[test]
fn connections_end_while_the_device_is_at_work() {
    const CLIENTS: usize = 8;
    let pki = Pki::new();
    let simulation = Simulation::new();
    let spec = spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "qat")
        .env(PATIENT.0, PATIENT.1)
        .server_lines("client_header_timeout 1s;");
    let server = Subject::accelerated(&spec);
    server.under_load(|| wait_for_signatures(&server, 20));
    let before = server.counters();
    simulation.slow(Simulated::Qat, 3000);
    let client = Client::trusting(&pki.certificate(KeyKind::Rsa2048).root).build();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| client.get(server.address()).expect_err("the server does not wait so long"));
        }
    });
    let new = server.counters().since(&before);
    assert!(new[Event::Cancelled] > 0, "{new:?}");
    simulation.inject(Simulated::Qat, Injected::None);
    server.under_load(|| wait_for_signatures(&server, 100));
    let new = server.counters().since(&before);
    assert_eq!((new[Engine::Qat].failed, new[Event::VerifyFailed]), (0, 0), "late answers are nobody's");
    server.finish();
}

/// Operations at the device when a process forks are taken back, and done in software first: parent and child find
/// each handshake waiting for its client. The child has its own sessions.
#[test]
fn a_child_leaves_alone_what_its_parent_has_at_the_device() {
    for what in ["child-goes-on", "parent-goes-on"] {
        let simulation = Simulation::new();
        // Long enough for a fork in between.
        simulation.slow(Simulated::Qat, 30);
        let program = Program::named("processes");
        let control = simulation.folder().join("control");
        let variables = [&[EAGER, PATIENT], &simulation.environment("qat")[..]].concat();
        let run = program.preloaded(&[what, control.to_str().unwrap()], &variables).succeeded();
        assert_eq!(run.output, program.stock(&[what]).succeeded().output, "{what}");
        assert_eq!(simulation.trespasses(Simulated::Qat), 0, "{what}");
        let counters = &run.counters;
        assert_eq!((counters[Event::CalledIn], counters[Event::Cancelled]), (3, 0), "{what}: {counters:?}");
        assert_eq!((counters[Engine::Qat].failed, counters[Engine::Qat].opened), (0, 0), "{what}");
        // Some by the parent's session and some by the child's; each session starts with five known questions.
        let signed = counters[Engine::Qat].ok;
        assert!(signed > 16 && simulation.operations(Simulated::Qat) >= signed + 10, "{what}: {counters:?}");
    }
}

/// Valgrind has no AVX-512: the original signs what the device does not.
#[test]
fn nothing_is_amiss_under_valgrind() {
    let simulation = Simulation::new();
    let key = simulation.folder().join("key.pem");
    tools::run(
        Command::new(tools::tool("openssl", "openssl")).args(["genrsa", "-out"]).arg(&key).arg("2048"),
    );
    let program = Program::named("loop");
    let environment = simulation.environment("qat");
    let run = || {
        let mut command = Command::new(tools::tool("valgrind", "valgrind"));
        // As in tests/memory.rs.
        command.args(["--quiet", "--leak-check=full", "--show-leak-kinds=definite"]);
        command.args(["--errors-for-leak-kinds=definite", "--max-stackframe=131072"]);
        command.args(["--child-silent-after-fork=yes", "--run-libc-freeres=no"]);
        command.args(["--error-exitcode=9"]).arg(program.path()).arg("edge").arg(&key);
        preload(&mut command, &[&[EAGER, PATIENT], &environment[..]].concat());
        let run = Run::of(command, true).succeeded();
        assert_eq!(run.counters[Event::HandshakeFinished], 64, "{}", run.errors);
        run.counters[Engine::Qat].ok
    };
    // A session may take longer to start than all the handshakes, and then takes no part in them.
    assert!((0..5).any(|_| run() > 0), "the device signs");
}

#[test]
fn an_operator_takes_the_device_out_of_service() {
    let pki = Pki::new();
    let simulation = Simulation::new();
    let spec = spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "qat").env(PATIENT.0, PATIENT.1);
    let server = Subject::accelerated(&spec);
    let switch = |verb: &str| {
        let output = Command::new(product::hasten())
            .args(["engine", verb, "qat", &server.pid().to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    server.under_load(|| {
        for _ in 0..2 {
            wait_for_signatures(&server, 20);
            switch("disable");
            // Operations at the device when it was switched off are still answered.
            wait::until("the device to rest", || {
                let before = simulation.operations(Simulated::Qat);
                let finished = server.counters()[Event::HandshakeFinished];
                wait::until("handshakes", || server.counters()[Event::HandshakeFinished] > finished + 100);
                simulation.operations(Simulated::Qat) == before
            });
            let state = report(&server, Engine::Qat).map(|report| report.state);
            assert_eq!(state, Some(BreakerState::Disabled));
            switch("enable");
        }
        wait_for_signatures(&server, 20);
    });
    server.finish();
}

#[test]
fn a_cpu_without_lanes_signs_by_the_device_all_the_same() {
    let pki = Pki::new();
    let simulation = Simulation::new();
    // The bare library, which must decide by itself.
    let text = format!("#!/bin/sh\nshift 3\nLD_PRELOAD={} exec \"$@\"\n", product::library().display());
    let script = pki.write("preload", &text);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "qat")
        .env(PATIENT.0, PATIENT.1)
        .env("HASTEN_CPU_DISABLE_IFMA", "1")
        .launcher(Launcher::Hasten { exe: script });
    let server = spec.start().unwrap();
    let traffic = Traffic::start(server.target(), &crowd());
    let wait_for_signatures = || {
        let before = counters_of(server.pid())[Engine::Qat].ok;
        wait::until("signatures of the device", || counters_of(server.pid())[Engine::Qat].ok > before + 50);
    };
    wait::until("the first handshake", || hasten_telemetry::pages_of(server.pid()).is_ok());
    wait_for_signatures();
    simulation.inject(Simulated::Qat, Injected::WrongBytes);
    wait::until("a wrong signature to be noticed", || counters_of(server.pid())[Event::VerifyFailed] > 0);
    simulation.inject(Simulated::Qat, Injected::None);
    wait_for_signatures();
    assert_perfect(&traffic.stop(), &server.log());
    assert_eq!(counters_of(server.pid()).total().batched, 0);
    assert!(alarms(&server.log()).is_empty(), "{}", server.log());
}

#[test]
fn the_device_is_asked_for_rsa_alone_and_only_if_it_is_wished() {
    let pki = Pki::new();
    for (devices, key) in [("off", KeyKind::Rsa2048), ("qatzip", KeyKind::Rsa2048), ("qat", KeyKind::P256)] {
        let simulation = Simulation::new();
        let server = Subject::accelerated(&spec(&simulation, ServerKind::Nginx, key, &pki, devices));
        server.under_load(|| {
            wait::until("handshakes", || server.counters()[Event::HandshakeFinished] > 100);
        });
        assert_eq!(simulation.operations(Simulated::Qat), 0, "{devices} {key:?}");
        server.finish();
    }
}

/// The simulated device computes on its caller's CPU, and worse than lanes.
#[test]
fn a_device_that_does_not_pay_is_only_tried() {
    if lanes::are_missing() {
        return;
    }
    let pki = Pki::new();
    let simulation = Simulation::new();
    let spec = spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "auto").env(PATIENT.0, PATIENT.1);
    let server = Subject::accelerated(&spec);
    server.under_load(|| {
        wait::until("handshakes", || server.counters()[Event::HandshakeFinished] > 2000);
    });
    let counters = server.counters();
    assert!(report(&server, Engine::Qat).is_some(), "it was found");
    assert!(counters[Engine::Qat].ok * 8 < counters[Event::HandshakeFinished], "{counters:?}");
    server.finish();
}
