//! The life of the breaker of lanes, whatever the engine: what eight connections get that ask for the same at once.

use std::sync::Arc;
use std::time::Duration;

use hasten_batch::{Batch, Lanes, Request, Settings, Verdict};
use hasten_crypto::{Group, LANES, LaneEngine, RsaKey};
use hasten_guard::breaker;
use hasten_telemetry::{BreakerState, Engine, Event, Fault, Reason, Snapshot};

use super::{Operations, owners};

/// With lanes from two operations on, which are tried again after this time.
fn batch<L: LaneEngine>(engine: L, first: Duration) -> Operations<L> {
    let settings = breaker::Settings { first, longest: first, good: 3, ..breaker::Settings::DEFAULT };
    Batch::new(&Settings {
        lane_engine: Some(engine),
        single: None,
        break_even: "rsa-2048-sign:2,x25519-derive:2".parse().unwrap(),
        bypass: false,
        lanes: Arc::new(Lanes::new(settings)),
    })
}

fn ask<L: LaneEngine>(batch: &Operations<L>, request: &Request<'_>) -> [Verdict; LANES] {
    let owners = owners(LANES);
    for owner in &owners {
        owner.submit(batch, request, 0);
        owner.completes(batch);
    }
    core::array::from_fn(|lane| owners[lane].result(&mut [0; 256]))
}

pub(crate) fn sign<L: LaneEngine>(batch: &Operations<L>, key: &RsaKey) -> [Verdict; LANES] {
    ask(batch, &Request::Rsa(key, &[1; 256]))
}

fn derive<L: LaneEngine>(batch: &Operations<L>) -> [Verdict; LANES] {
    ask(batch, &Request::Derive(Group::X25519, &[7; 32], &[9; 32]))
}

/// What an operator sees.
fn page() -> Snapshot {
    hasten_telemetry::pages_of(std::process::id()).unwrap().remove(0).read().unwrap()
}

fn state() -> (BreakerState, Option<Fault>) {
    let reports = page().reports(Engine::Multibuffer, |_| true);
    let report = reports.values().next().expect("it says how the engine is");
    (report.state, report.fault)
}

/// Lanes with a wrong result are left alone, tried again, and come back. `good` and `spoiled` sign with eight lanes.
/// Once in a process: it reads what the process has counted.
pub(crate) fn lanes_that_are_wrong_are_left_alone_and_come_back<L: LaneEngine>(
    engine: L,
    good: impl Fn(&Operations<L>) -> [Verdict; LANES],
    spoiled: impl Fn(&Operations<L>) -> [Verdict; LANES],
) {
    hasten_telemetry::init("tls");
    hasten_telemetry::start();
    let everything = |verdict| [verdict; LANES];
    let open = everything(Verdict::Bypass(Reason::BreakerOpen));
    let rested = batch(engine, Duration::from_secs(24 * 3600));

    assert_eq!(good(&rested), everything(Verdict::Done));
    assert_eq!(derive(&rested), everything(Verdict::Done));
    assert!(rested.can_answer() && rested.engine.key_pair(Group::X25519).is_some());
    assert_eq!(spoiled(&rested), everything(Verdict::Failed), "the original redoes it");
    assert!(!rested.can_answer(), "nobody is suspended for lanes that are not asked");
    assert_eq!(rested.engine.refusal(), Some(Reason::BreakerOpen));
    assert_eq!((good(&rested), derive(&rested)), (open, open));
    assert!(rested.engine.key_pair(Group::X25519).is_none());
    assert_eq!(state(), (BreakerState::Open, Some(Fault::BadOutput)));
    let shown = page().total();
    assert_eq!((shown[Event::BreakerOpened], shown[Event::VerifyFailed]), (1, LANES as u64));

    let batch = batch(engine, Duration::from_millis(1));
    assert_eq!(spoiled(&batch), everything(Verdict::Failed));
    let mut count = 0;
    while count < 2 {
        count += u32::from(good(&batch) == everything(Verdict::Done));
        assert_eq!(derive(&batch), open, "a shared secret proves nothing");
    }
    // A wrong result on trial, and it starts from the beginning.
    while spoiled(&batch) != everything(Verdict::Failed) {}
    count = 0;
    while count < 3 {
        count += u32::from(good(&batch) == everything(Verdict::Done));
    }
    assert_eq!(derive(&batch), everything(Verdict::Done));
    assert!(batch.can_answer() && batch.engine.key_pair(Group::X25519).is_some());
    assert_eq!(state(), (BreakerState::Closed, Some(Fault::BadOutput)), "the fault is remembered");
    assert_eq!(page().total()[Event::BreakerOpened], 2, "it had not closed between the faults");
}
