//! What concerns one worker and not the others.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::Event;
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::wait;
use rustix::process::Signal;
use rustls::HandshakeKind;
use serde_json::{Value, json};

use crate::subject::{How, Place, RELEASES, build};
use crate::tls::{EAGER, answered, config, context, full, start_with, statistic};

/// One worker's ticket is good for the other.
#[test]
fn sessions_are_resumed_by_another_worker() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::Rsa2048);
    let balanced = |socket: &Path| {
        let mut config = config(socket, &[context(&certificate)]);
        config["static_resources"]["listeners"][0]["connection_balance_config"] =
            json!({"exact_balance": {}});
        config
    };
    let (envoy, addresses) = start_with(&place, &build(RELEASES[0]), balanced, 1, How::Accelerated(EAGER));
    let accepted = || [0, 1].map(|worker| worker_total(&envoy, worker));
    let client = Client::trusting(&certificate.root).resuming().build();
    // Whoever says nothing has its worker get one connection less.
    let mut silent = Vec::new();
    let mut outcomes = Vec::new();
    for _ in 0..8 {
        let before = accepted();
        let kind = answered(&client, addresses[0]).expect("an answer").1;
        outcomes.push((accepted()[0] > before[0], kind));
        let total = accepted().iter().sum::<u64>();
        silent.push(TcpStream::connect(addresses[0]).expect("a connection"));
        wait::until("the silent one to be accepted", || accepted().iter().sum::<u64>() > total);
    }
    let resumed_by =
        |first: bool| outcomes.iter().filter(|outcome| **outcome == (first, HandshakeKind::Resumed)).count();
    assert_ne!(outcomes[0].1, HandshakeKind::Resumed);
    assert_eq!(resumed_by(true) + resumed_by(false), 7, "{outcomes:?}");
    assert!(resumed_by(true) > 0 && resumed_by(false) > 0, "{outcomes:?}");
    assert!(envoy.counters()[Event::HandshakeFinished] >= 8, "{:?}", envoy.counters());
    drop(silent);
    envoy.finish();
}

/// How many connections a worker of the only listener has accepted.
fn worker_total(envoy: &crate::subject::Envoy, worker: usize) -> u64 {
    let name = format!("worker_{worker}.downstream_cx_total");
    statistic(envoy, &name).first().copied().unwrap_or_default()
}

/// Envoy's watchdog ends the process, in the same way as the stock one, whatever waits in a batch then.
#[test]
fn a_worker_that_hangs_is_the_end_as_it_is_of_stock() {
    let (place, pki) = (Place::new(), Pki::new());
    let certificate = pki.certificate(KeyKind::P256);
    for how in [How::Stock, How::Accelerated(EAGER)] {
        let hang = place.path().join("hang");
        let _ = fs::remove_file(&hang);
        let watched = |socket: &Path| {
            let mut config = config(socket, &[full(&certificate)]);
            config["watchdogs"] = json!({"worker_watchdog": {
                "miss_timeout": "0.2s", "megamiss_timeout": "0.3s", "kill_timeout": "0.5s",
            }});
            let manager = &mut config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0];
            let filters = manager["typed_config"]["http_filters"].as_array_mut().expect("filters");
            filters.insert(0, hanging_while(&hang));
            config
        };
        let (envoy, addresses) = start_with(&place, &build(RELEASES[0]), watched, 1, how);
        let client = Client::trusting(&certificate.root).build();
        (0..8).for_each(|_| assert!(answered(&client, addresses[0]).is_ok()));
        fs::write(&hang, "").expect("a file");
        assert!(answered(&client, addresses[0]).is_err(), "{how:?}: it has not ended");
        let (signal, log) = envoy.killed();
        assert_eq!(signal, Some(Signal::ABORT.as_raw()), "{how:?}: {log}");
        assert!(log.contains("terminating thread") && !log.contains("hasten"), "{how:?}: {log}");
    }
}

/// Lua that never returns once there is this file.
fn hanging_while(file: &Path) -> Value {
    let file = file.display();
    json!({"name": "lua", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
        "default_source_code": {"inline_string": format!(
            "function envoy_on_request(handle) if io.open('{file}') then while true do end end end"
        )},
    }})
}
