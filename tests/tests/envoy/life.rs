//! What operators do with a running Envoy: hot restarts, drains, and what it does to itself under too much load.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::drive::{FailureKind, Load, Outcome, Target};
use hasten_bench::port::Port;
use hasten_telemetry::Event;
use hasten_tests::pki::Pki;
use hasten_tests::{lanes, traffic, wait};
use serde_json::{Value, json};

use crate::subject::{Envoy, How, Place, RELEASES, build};
use crate::tls::{config, full, signature, start_with, statistic};

const BODY: &[u8] = b"It works.";

/// Full handshakes of many connections at once, again and again for so long.
fn drive_for(duration: Duration, address: std::net::SocketAddr, certificate: &Certificate) -> Outcome {
    let target = Target { address, certificate: Some(certificate.leaf.clone()), body: Some(BODY.to_vec()) };
    let load = Load { concurrency: 48, duration, timeout: Duration::from_secs(40), ..Load::default() };
    traffic::drive(&target, &load)
}

#[test]
fn hot_restart_loses_no_handshake() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let port = Port::reserve().expect("a port");
    let base = process::id().to_string();
    let start = |epoch: &str| {
        let config = |socket: &Path| {
            let mut config = config(socket, &[full(&certificate)]);
            let address = &mut config["static_resources"]["listeners"][0]["address"]["socket_address"];
            address["port_value"] = json!(port.address().port());
            config
        };
        let times = ["--drain-time-s", "1", "--parent-shutdown-time-s", "3"];
        let options = [&["--base-id", &base, "--restart-epoch", epoch][..], &times].concat();
        place.launch_with(&build(RELEASES[0]), config, How::Accelerated(&[]), &options).wait_for("/ready")
    };
    let parent = start("0");
    let (outcome, child) = thread::scope(|scope| {
        let driver = scope.spawn(|| drive_for(Duration::from_secs(7), port.address(), &certificate));
        thread::sleep(Duration::from_secs(1));
        let child = start("1");
        // As long as its parent tells it to, it ends by itself.
        parent.await_end();
        (driver.join().expect("the driver"), child)
    });
    assert_eq!(outcome.failures.total(), 0, "{}", outcome.failures);
    // The child may have had little time.
    let after = drive_for(Duration::from_secs(1), port.address(), &certificate);
    assert_eq!(after.failures.total(), 0, "{}", after.failures);
    assert!(lanes::batched(&child.counters(), signature(certificate.kind)) > 0, "{:?}", child.counters());
    child.finish();
}

/// Has the administration do something.
fn post(envoy: &Envoy, path: &str) {
    let mut socket = UnixStream::connect(envoy.socket()).expect("the administration");
    write!(socket, "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        .expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Whoever is connected when the listeners are closed is served; others are turned away.
#[test]
fn drained_listeners_end_what_they_have_begun() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let (envoy, addresses) = start_with(
        &place,
        &build(RELEASES[0]),
        |socket| config(socket, &[full(&certificate)]),
        1,
        How::Accelerated(&[]),
    );
    let outcome = thread::scope(|scope| {
        let driver = scope.spawn(|| drive_for(Duration::from_millis(1500), addresses[0], &certificate));
        thread::sleep(Duration::from_millis(700));
        post(&envoy, "/drain_listeners");
        driver.join().expect("the driver")
    });
    assert!(outcome.ops > 0);
    // The kernel refuses the others, and resets those that Envoy has not accepted yet.
    let [refused, reset] =
        [FailureKind::Connect, FailureKind::ClosedEarly].map(|kind| outcome.failures.count(kind));
    assert_eq!(outcome.failures.total(), refused + reset, "{}", outcome.failures);
    assert!(refused > 0, "the listener is still open");
    assert_eq!(statistic(&envoy, "http.test.downstream_cx_total"), [outcome.ops], "accepted, and not served");
    let counters = envoy.counters();
    assert!(lanes::batched(&counters, signature(certificate.kind)) > 0, "{counters:?}");
    assert_eq!(counters[Event::HandshakeStarted], counters[Event::HandshakeFinished], "{counters:?}");
    envoy.finish();
}

/// Under pressure Envoy accepts nobody. Handshakes that have begun go on, the others follow when it is over.
#[test]
fn overload_only_delays() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P256);
    let pressure = place.path().join("pressure");
    let set = |value: &str| {
        let new = pressure.with_extension("new");
        fs::write(&new, value).and_then(|()| fs::rename(&new, &pressure)).expect("a file");
    };
    set("0.0");
    let overloaded = |socket: &Path| {
        let mut config = config(socket, &[full(&certificate)]);
        config["overload_manager"] = overload_manager(&pressure);
        config
    };
    let (envoy, addresses) = start_with(&place, &build(RELEASES[0]), overloaded, 1, How::Accelerated(&[]));
    let before = {
        drive_for(Duration::from_millis(300), addresses[0], &certificate);
        envoy.footprint().descriptors
    };
    let outcome = thread::scope(|scope| {
        let driver = scope.spawn(|| drive_for(Duration::from_secs(3), addresses[0], &certificate));
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(500));
            set("1.0");
            thread::sleep(Duration::from_millis(500));
            set("0.0");
        }
        driver.join().expect("the driver")
    });
    assert_eq!(outcome.failures.total(), 0, "{}", outcome.failures);
    let mut longest = outcome.latency.max();
    assert!(longest > 200_000, "nobody had to wait: {longest} us at most");
    longest /= 1000;
    wait::until("all descriptors to be closed", || envoy.footprint().descriptors <= before);
    let counters = envoy.counters();
    assert!(lanes::batched(&counters, signature(certificate.kind)) > 0, "{longest} ms: {counters:?}");
    envoy.finish();
}

/// Stops accepting connections while a file says so.
fn overload_manager(pressure: &Path) -> Value {
    let resource = "envoy.resource_monitors.injected_resource";
    json!({
        "refresh_interval": "0.05s",
        "resource_monitors": [{"name": resource, "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig",
            "filename": pressure,
        }}],
        "actions": [{
            "name": "envoy.overload_actions.stop_accepting_connections",
            "triggers": [{"name": resource, "threshold": {"value": 0.9}}],
        }],
    })
}
