//! Lanes that give a wrong result are left alone, tried again, and return to service.
//!
//! A key with a composite in place of a prime simulates a faulty engine: its signatures fail their verification. This
//! is a separate test binary because it checks the counters of its process.

mod support;

use std::sync::Arc;
use std::time::Duration;

use hasten_batch::{Batch, Lanes, Request, Settings, Verdict};
use hasten_crypto::{Group, Ifma, LANES, RsaKey};
use hasten_guard::breaker;
use hasten_telemetry::{BreakerState, Engine, Event, Fault, Reason, Snapshot};

use support::{Operations, owners, rsa_keys};

/// A batch with lanes from two operations on, which are retried after this time.
fn batch(first: Duration) -> Option<Operations> {
    let ifma = Ifma::detect();
    if ifma.is_none() {
        eprintln!("skipped: this CPU has no AVX-512 IFMA, or {} is set", Ifma::DISABLE);
    }
    let settings = breaker::Settings { first, longest: first, good: 3, ..breaker::Settings::DEFAULT };
    Some(Batch::new(&Settings {
        ifma: Some(ifma?),
        break_even: "rsa-2048-sign:2,x25519-derive:2".parse().unwrap(),
        bypass: false,
        lanes: Arc::new(Lanes::new(settings)),
    }))
}

/// The verdicts for eight connections that ask for the same thing at once.
fn ask(batch: &Operations, request: &Request<'_>) -> [Verdict; LANES] {
    let owners = owners(LANES);
    for owner in &owners {
        owner.submit(batch, request, 0);
        owner.completes(batch);
    }
    core::array::from_fn(|lane| owners[lane].result(&mut [0; 256]))
}

fn sign(batch: &Operations, key: &RsaKey) -> [Verdict; LANES] {
    ask(batch, &Request::Rsa(key, &[1; 256]))
}

fn derive(batch: &Operations) -> [Verdict; LANES] {
    ask(batch, &Request::Derive(Group::X25519, &[7; 32], &[9; 32]))
}

/// The operator's view.
fn page() -> Snapshot {
    hasten_telemetry::pages_of(std::process::id()).unwrap().remove(0).read().unwrap()
}

fn state() -> (BreakerState, Option<Fault>) {
    let reports = page().reports(Engine::Multibuffer, |_| true);
    let report = reports.values().next().expect("it says how the engine is");
    (report.state, report.fault)
}

#[test]
fn lanes_that_are_wrong_are_left_alone_and_come_back() {
    hasten_telemetry::init("tls");
    hasten_telemetry::start();
    let keys = rsa_keys();
    let everything = |verdict| [verdict; LANES];
    let open = everything(Verdict::Bypass(Reason::BreakerOpen));
    let Some(rested) = batch(Duration::from_secs(24 * 3600)) else { return };

    assert_eq!(sign(&rested, &keys.good), everything(Verdict::Done));
    assert_eq!(derive(&rested), everything(Verdict::Done));
    assert!(rested.can_answer() && rested.engine.key_pair(Group::X25519).is_some());
    assert_eq!(sign(&rested, &keys.spoiled), everything(Verdict::Failed), "the original redoes it");
    assert!(!rested.can_answer(), "nobody is suspended for lanes that are not asked");
    assert_eq!(rested.engine.refusal(), Some(Reason::BreakerOpen));
    assert_eq!((sign(&rested, &keys.good), derive(&rested)), (open, open));
    assert!(rested.engine.key_pair(Group::X25519).is_none());
    assert_eq!(state(), (BreakerState::Open, Some(Fault::BadOutput)));
    let shown = page().total();
    assert_eq!((shown[Event::BreakerOpened], shown[Event::VerifyFailed]), (1, LANES as u64));

    let batch = batch(Duration::from_millis(1)).unwrap();
    assert_eq!(sign(&batch, &keys.spoiled), everything(Verdict::Failed));
    let mut good = 0;
    while good < 2 {
        good += u32::from(sign(&batch, &keys.good) == everything(Verdict::Done));
        assert_eq!(derive(&batch), open, "a shared secret proves nothing");
    }
    // A single wrong result during the trial starts it again.
    while sign(&batch, &keys.spoiled) != everything(Verdict::Failed) {}
    good = 0;
    while good < 3 {
        good += u32::from(sign(&batch, &keys.good) == everything(Verdict::Done));
    }
    assert_eq!(derive(&batch), everything(Verdict::Done));
    assert!(batch.can_answer() && batch.engine.key_pair(Group::X25519).is_some());
    assert_eq!(state(), (BreakerState::Closed, Some(Fault::BadOutput)), "the fault is remembered");
    assert_eq!(page().total()[Event::BreakerOpened], 2, "it had not closed between the faults");
}
