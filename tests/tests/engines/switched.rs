//! Off and on, under load, across a reload and across an exec.

use std::collections::BTreeSet;
use std::process::Command;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_telemetry::Engine::{self, Bucket, Graviola, Isal, Libdeflate, Multibuffer, ZlibRs};
use hasten_telemetry::{Event, Reason};
use hasten_tests::daemon::Daemon;
use hasten_tests::pki::Pki;
use hasten_tests::subject::{alarms, assert_perfect, batched, counters_of, crowd};
use hasten_tests::traffic::Traffic;
use hasten_tests::{lanes, product, tools, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::{Busy, site, switch};

const ALL: [Engine; 6] = [Multibuffer, Graviola, Isal, Libdeflate, Bucket, ZlibRs];

#[test]
fn each_engine_and_all_of_them_while_requests_run() {
    let site = site();
    let nginx = Busy::new(&site.spec().workers(2), Some(&site));
    nginx.wait_for(&usual());

    for (engines, next) in
        [(&[Isal][..], Libdeflate), (&[Libdeflate], Bucket), (&[Bucket, Libdeflate], ZlibRs)]
    {
        for engine in engines {
            let said = nginx.switch("disable", engine.as_str());
            assert!(said.contains(&format!("{engine} disabled; ")) && !said.contains("idle"), "{said}");
        }
        let new = nginx.without(engines);
        assert!(new[next].ok > 0, "the next engine of the table does its work");
        for engine in engines {
            nginx.switch("enable", engine.as_str());
        }
        nginx.wait_for(&engines[engines.len() - 1..]);
    }

    if lanes::exist() {
        lanes_and_what_is_done_instead(&nginx);
    }
    nginx.switch("disable", "all");
    let new = nginx.without(&ALL);
    assert_eq!(new[Event::DeflateStreams], 0, "the original has the streams from their beginning");
    nginx.switch("enable", "all");
    nginx.wait_for(&usual());
    nginx.finish();
}

/// What does its work where nothing is disabled.
fn usual() -> Vec<Engine> {
    lanes::exist().then_some(Multibuffer).into_iter().chain([Isal, Libdeflate]).collect()
}

fn lanes_and_what_is_done_instead(nginx: &Busy) {
    nginx.switch("disable", "multibuffer");
    let new = nginx.without(&[Multibuffer]);
    assert!(new[Graviola].ok > 0 && batched(&new) == 0, "the other engine does what is not batched");
    assert!(new[Isal].ok > 0, "only what was named is disabled");
    nginx.switch("disable", "graviola");
    let new = nginx.without(&[Multibuffer, Graviola]);
    assert!(new[Reason::EngineDisabled] > 0 && batched(&new) == 0);
    nginx.switch("enable", "graviola");
    nginx.switch("enable", "multibuffer");
    nginx.wait_for(&[Multibuffer]);
}

#[test]
fn threads_of_one_process() {
    if lanes::are_missing() {
        return;
    }
    let pki = Pki::new();
    let spec = ServerSpec::new(ServerKind::Haproxy, pki.certificate(KeyKind::Rsa2048)).workers(2);
    let haproxy = Busy::new(&spec, None);
    for _ in 0..2 {
        haproxy.wait_for(&[Multibuffer]);
        haproxy.switch("disable", "multibuffer");
        assert_eq!(batched(&haproxy.without(&[Multibuffer])), 0);
        haproxy.switch("enable", "all");
    }
    haproxy.wait_for(&[Multibuffer]);
    haproxy.finish();
}

#[test]
fn new_workers_inherit_what_is_switched() {
    let site = site();
    let nginx = Busy::new(&site.spec().workers(2), Some(&site));
    nginx.wait_for(&usual());
    nginx.switch("disable", "all");
    let workers = || nginx.server.workers().into_iter().collect::<BTreeSet<_>>();
    let old = workers();
    nginx.server.signal(Signal::HUP).unwrap();
    wait::until("the old workers to end", || workers().is_disjoint(&old) && workers().len() == 2);
    nginx.without(&ALL);
    for row in engines(nginx.server.pid()) {
        assert_eq!(row["disabled_by_hand"], true, "{row}");
        assert!(row["state"].is_null() || row["state"] == "disabled", "{row}");
    }
    nginx.switch("enable", "all");
    nginx.wait_for(&usual());
    nginx.finish();
}

#[test]
fn what_is_started_by_exec_begins_anew() {
    if lanes::are_missing() {
        return;
    }
    let pki = Pki::new();
    let nginx = Daemon::accelerated(&pki.certificate(KeyKind::P256), 1);
    let old = nginx.master();
    let traffic = Traffic::start(nginx.target(), &crowd());
    wait::until("batches", || counters_of(old)[Multibuffer].ok > 0);
    switch("disable", "multibuffer", old);
    let is_multibuffer = |row: &Value| row["name"] == "multibuffer";
    assert!(engines(old).iter().all(|row| row["disabled_by_hand"] == is_multibuffer(row)));
    let new = nginx.upgrade();
    nginx.retire(old);
    wait::until("batches of the new one", || counters_of(new)[Multibuffer].ok > 0);
    assert!(engines(new).iter().all(|row| row["disabled_by_hand"] == false));
    assert_perfect(&traffic.stop(), &nginx.log());
    assert!(alarms(&nginx.log()).is_empty(), "{}", nginx.log());
}

/// What `hasten engine list --json` says of a server.
fn engines(pid: u32) -> Vec<Value> {
    let mut command = Command::new(product::hasten());
    let output = tools::run(command.args(["engine", "list", "--json", &pid.to_string()]));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let programs = document["programs"].as_array().expect("programs").clone();
    let engines: Vec<Value> =
        programs.iter().flat_map(|program| program["engines"].as_array().expect("engines").clone()).collect();
    assert!(!engines.is_empty(), "{document}");
    engines
}
