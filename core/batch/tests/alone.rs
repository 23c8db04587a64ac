//! RSA operations that nobody shares a batch with.

mod support;

use std::sync::Arc;
use std::time::Duration;

use hasten_batch::{Batch, Lanes, Settings};
use hasten_crypto::{Algorithm, Ifma, LaneEngine};
use hasten_guard::breaker;
use hasten_telemetry::{Engine, Event, Reason, Snapshot};

use support::scripted::Scripted;
use support::{Operations, STACK, rsa_keys};

const RSA: Algorithm = Algorithm::Rsa2048Sign;

/// With lanes that are not tried again once they were wrong.
fn batch<L: LaneEngine>(engine: L, bypass: bool) -> Operations<L> {
    let rest = Duration::from_secs(24 * 3600);
    let settings = breaker::Settings { first: rest, longest: rest, ..breaker::Settings::DEFAULT };
    Batch::new(&Settings {
        lane_engine: Some(engine),
        single: None,
        break_even: Default::default(),
        bypass,
        lanes: Arc::new(Lanes::new(settings)),
    })
}

/// One test, because the counters are those of the process.
#[test]
fn one_at_a_time() {
    signatures_are_checked_and_counted();
    the_original_is_tried_now_and_then();
    the_original_is_used_where_it_is_cheaper();
    a_batch_that_costs_more_than_eight_alone_is_not_waited_for();
    in_a_test_of_waiting_nothing_is_done_alone();
}

/// What an operator sees.
fn page() -> Snapshot {
    hasten_telemetry::pages_of(std::process::id()).unwrap().remove(0).read().unwrap()
}

fn signatures_are_checked_and_counted() {
    let Some(ifma) = Ifma::detect() else {
        return eprintln!("skipped: this CPU has no AVX-512 IFMA, or {} is set", Ifma::DISABLE);
    };
    hasten_telemetry::init("tls");
    hasten_telemetry::start();
    let keys = rsa_keys();
    let batch = batch(ifma, false);
    // So dear that this is not a test of the engine's speed.
    (0..200).for_each(|_| batch.engine.original_took(RSA, 1_000_000_000));
    let asked = page().total()[RSA].scalar;
    let padded = [1; 256];
    let mut signature = [0; 256];

    assert!(batch.engine.rsa(&keys.good, &padded, &mut signature));
    assert!(keys.good.is_signed(&padded, &signature));
    let good = page().total();
    assert_eq!((good[RSA].single, good[RSA].batched, good[RSA].scalar), (1, 0, asked));
    assert_eq!((good[Engine::Multibuffer].ok, good[Engine::Graviola].ok), (1, 0));

    STACK.set(Ifma::STACK - 1);
    assert!(!batch.engine.rsa(&keys.good, &padded, &mut signature), "a coroutine's stack may be too small");
    STACK.set(usize::MAX);

    assert!(batch.engine.has_rsa());
    assert!(!batch.engine.rsa(&keys.spoiled, &padded, &mut signature));
    assert_eq!(signature, [0; 256]);
    let spoiled = page().total();
    assert_eq!((spoiled[RSA].single, spoiled[RSA].failed), (1, 1));
    assert_eq!((spoiled[Event::VerifyFailed], spoiled[Event::BreakerOpened]), (1, 1));
    assert_eq!(spoiled[Engine::Multibuffer].failed, 1);

    assert_eq!(batch.engine.refusal(), Some(Reason::BreakerOpen));
    assert!(!batch.engine.has_rsa());
    assert!(!batch.engine.rsa(&keys.good, &padded, &mut signature), "an engine that was wrong rests");
}

fn the_original_is_tried_now_and_then() {
    let (batch, key) = (batch(Scripted, false), rsa_keys().good);
    let mut signature = [0; 256];
    let mut signs = || batch.engine.rsa(&key, &[1; 256], &mut signature);
    let before = (0..5000).take_while(|_| signs()).count();
    assert!((500..5000).contains(&before), "{before}");
    assert!(!signs(), "the original has not reported yet");
    batch.engine.original_took(RSA, 235_000);
    assert!(signs());
    assert_eq!(signature.as_slice(), Scripted::signature(&[1; 256]));
}

/// An original that is faster than the figures say, as one with the same instructions may be.
fn the_original_is_used_where_it_is_cheaper() {
    let (batch, key) = (batch(Scripted, false), rsa_keys().good);
    for _ in 0..200 {
        batch.engine.original_took(RSA, 1);
    }
    assert!(!batch.engine.rsa(&key, &[1; 256], &mut [0; 256]));
}

/// Nobody waits for company that is of no use; but now and then somebody does, and finds out.
fn a_batch_that_costs_more_than_eight_alone_is_not_waited_for() {
    let (batch, key) = (batch(Scripted, false), rsa_keys().good);
    assert!(batch.engine.may_batch(RSA));
    let mut waits = 0;
    for _ in 0..5000 {
        if !batch.engine.rsa(&key, &[1; 256], &mut [0; 256]) {
            batch.engine.original_took(RSA, 235_000);
        }
        waits += u32::from(batch.engine.may_batch(RSA));
    }
    assert!((1..5000).contains(&waits), "{waits}");
}

fn in_a_test_of_waiting_nothing_is_done_alone() {
    let (batch, key) = (batch(Scripted, true), rsa_keys().good);
    assert!(batch.engine.may_batch(RSA) && !batch.engine.has_rsa());
    assert!(!batch.engine.rsa(&key, &[1; 256], &mut [0; 256]));
}
