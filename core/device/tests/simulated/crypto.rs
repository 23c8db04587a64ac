//! qatlib's public-key operations.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use hasten_device::engines::crypto::{Curve, Operation, Point};
use hasten_device::engines::qat::{Crypto, Plan, look};
use hasten_device::{BreakerState, DeviceKind, Fault, Limits, Refusal, Root};

use crate::control::{Control, Injected, Simulated, libraries};
use crate::deflate::{HEARTBEAT, QAT, machine};
use crate::{PATIENT, breaker, limits, wait_for};

const ALICE: [u8; 32] = [0x11; 32];
const BOB: [u8; 32] = [0x22; 32];

type Results = BTreeMap<u64, Result<Vec<u8>, Fault>>;

fn engine(limits: Limits) -> Crypto {
    engine_on(Root::from_environment(), limits)
}

fn engine_on(root: Root, limits: Limits) -> Crypto {
    Crypto::new(Plan { folder: Some(libraries()), root, limits, monitor: Arc::default() }, breaker())
}

fn ready(limits: Limits) -> Crypto {
    let mut engine = engine(limits);
    wait_for("the engine is ready", || engine.is_ready());
    engine
}

/// Submits all, and waits until each has a result of some kind.
fn run(engine: &mut Crypto, operations: &[Operation]) -> Results {
    let mut results = Results::new();
    for (ticket, operation) in operations.iter().enumerate() {
        if let Err(refusal) = engine.submit(operation, ticket as u64) {
            let fault = match refusal {
                Refusal::Fault(fault) => fault,
                Refusal::NotNow | Refusal::Declined => continue,
            };
            results.insert(ticket as u64, Err(fault));
        }
    }
    wait_for("all operations have ended", || {
        engine.poll(&mut |ticket, result| {
            let before = results.insert(ticket, result.map(<[u8]>::to_vec));
            assert!(before.is_none(), "{ticket} ended twice");
        });
        engine.in_flight() == 0
    });
    results
}

fn one(engine: &mut Crypto, operation: Operation) -> Result<Vec<u8>, Fault> {
    run(engine, &[operation]).remove(&0).unwrap_or(Err(Fault::Gone))
}

/// Two that agree are both right, barring a fault that hits both in the same way.
fn agree(engine: &mut Crypto) -> Result<Vec<u8>, Fault> {
    let public = |engine: &mut Crypto, scalar| {
        let key = one(engine, Operation::X25519 { scalar, point: None })?;
        Ok(<[u8; 32]>::try_from(key).expect("32 bytes"))
    };
    let (alice, bob) = (public(engine, &ALICE)?, public(engine, &BOB)?);
    let first = one(engine, Operation::X25519 { scalar: &ALICE, point: Some(&bob) })?;
    let second = one(engine, Operation::X25519 { scalar: &BOB, point: Some(&alice) })?;
    assert_eq!(first, second);
    Ok(first)
}

#[test]
fn both_sides_of_an_exchange_agree_on_every_curve() {
    let control = Control::of(Simulated::Qat);
    let mut engine = ready(PATIENT);
    let before = control.operations();
    assert_ne!(agree(&mut engine).unwrap(), [0; 32]);
    for curve in [Curve::P256, Curve::P384] {
        let (a, b) = (vec![0x31; curve.bytes()], vec![0x17; curve.bytes()]);
        let base = |scalar| Operation::Multiply { curve, scalar, point: Point::Base };
        let results = run(&mut engine, &[base(&a), base(&b)]);
        let [a_public, b_public] = [0, 1].map(|ticket| results[&ticket].clone().unwrap());
        let at = |scalar, point: &'static [u8]| {
            let (x, y) = point.split_at(curve.bytes());
            Operation::Multiply { curve, scalar, point: Point::At(x, y) }
        };
        let (a_public, b_public) = (a_public.leak(), b_public.leak());
        let results = run(&mut engine, &[at(&a, b_public), at(&b, a_public)]);
        assert_eq!(results[&0], results[&1]);
        assert_eq!(results[&0].as_ref().unwrap().len(), 2 * curve.bytes());
    }
    assert_eq!(control.operations(), before + 12);
}

#[test]
fn a_full_ring_is_no_fault_as_long_as_results_come() {
    let control = Control::of(Simulated::Qat);
    let mut engine = ready(PATIENT);
    control.slow(20);
    let operations = vec![Operation::X25519 { scalar: &ALICE, point: None }; 100];
    let results = run(&mut engine, &operations);
    assert_eq!(results.len(), 64);
    assert!(results.values().all(|result| result == &results[&0] && result.is_ok()));
    assert_eq!(engine.view().state, BreakerState::Closed);
}

#[test]
fn every_fault_ends_every_operation_and_the_engine_comes_back() {
    let control = Control::of(Simulated::Qat);
    let expected = agree(&mut ready(PATIENT)).unwrap();
    let faults = [
        (Injected::Hang, Fault::TimedOut),
        (Injected::Slow, Fault::TimedOut),
        (Injected::Abort, Fault::Error),
        (Injected::Gone, Fault::Gone),
        (Injected::Restarting, Fault::Gone),
        (Injected::Partial, Fault::BadOutput),
        (Injected::QueueFull, Fault::QueueFull),
    ];
    for (injected, fault) in faults {
        let mut engine = ready(limits(injected));
        match injected {
            Injected::Slow => control.slow(5_000),
            other => control.inject(other),
        }
        let operations =
            vec![Operation::Multiply { curve: Curve::P256, scalar: &ALICE, point: Point::Base }; 8];
        let results = run(&mut engine, &operations);
        assert!(results.values().all(|result| *result == Err(fault)), "{injected:?}: {results:?}");
        assert!(!results.is_empty(), "{injected:?}");
        assert_eq!(engine.view().fault, Some(fault), "{injected:?}");
        let failed = engine.view().probe_ns;
        wait_for("a probe has failed", || {
            let _ = engine.is_ready();
            engine.view().probe_ns > failed && engine.view().state == BreakerState::Open
        });
        assert!(engine.submit(&operations[0], 0).is_err());
        control.inject(Injected::None);
        wait_for("the engine is back", || engine.is_ready());
        wait_for("it works", || agree(&mut engine).as_ref() == Ok(&expected));
    }
}

#[test]
fn wrong_results_do_not_pass_the_question() {
    let control = Control::of(Simulated::Qat);
    let mut engine = ready(PATIENT);
    control.inject(Injected::WrongBytes);
    let wrong = one(&mut engine, Operation::X25519 { scalar: &ALICE, point: None }).unwrap();
    // The caller has checked it, and redone it in software.
    engine.blame(Fault::BadOutput);
    wait_for("a probe has been answered wrongly", || {
        assert!(!engine.is_ready());
        engine.view().state == BreakerState::Open && control.opened() > 1 && control.faulted() > 1
    });
    control.inject(Injected::None);
    wait_for("the engine is back", || engine.is_ready());
    assert_ne!(one(&mut engine, Operation::X25519 { scalar: &ALICE, point: None }).unwrap(), wrong);
}

#[test]
fn a_reset_takes_down_what_is_under_way_and_nothing_more() {
    let control = Control::of(Simulated::Qat);
    let mut engine = ready(PATIENT);
    control.slow(10_000);
    engine.submit(&Operation::X25519 { scalar: &ALICE, point: None }, 7).unwrap();
    control.inject(Injected::None);
    control.reset();
    let mut ended = Vec::new();
    engine.poll(&mut |ticket, result| ended.push((ticket, result.map(<[u8]>::to_vec))));
    assert_eq!(ended, [(7, Err(Fault::Gone))]);
    wait_for("the engine is back", || engine.is_ready());
    agree(&mut engine).unwrap();
}

#[test]
fn a_session_that_cannot_start_is_tried_again() {
    let control = Control::of(Simulated::Qat);
    let faults = [
        (Injected::InitFailure, Fault::Init),
        (Injected::NoInstance, Fault::Init),
        (Injected::Gone, Fault::Gone),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::Hang, Fault::TimedOut),
    ];
    for (injected, fault) in faults {
        control.inject(injected);
        let mut engine = engine(limits(injected));
        wait_for("it has been tried", || {
            assert!(!engine.is_ready());
            engine.view().fault == Some(fault)
        });
        control.inject(Injected::None);
        wait_for("the engine is back", || agree(&mut engine).is_ok());
    }
}

/// Whether or not operations are pending, and long before they would be late.
#[test]
fn a_device_that_fails_takes_its_sessions_with_it() {
    let control = Control::of(Simulated::Qat);
    for (fault, file, bad, good) in
        [(Fault::HeartbeatLost, HEARTBEAT, "-1", "0"), (Fault::Gone, QAT, "down", "up")]
    {
        let (root, _device) = machine(DeviceKind::Qat);
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, good).unwrap();
        let mut engine = engine_on(Root::new(root.path()), PATIENT);
        wait_for("the engine is ready", || engine.is_ready());

        control.inject(Injected::Hang);
        engine.submit(&Operation::X25519 { scalar: &ALICE, point: None }, 7).unwrap();
        fs::write(&file, bad).unwrap();
        let mut ended = Vec::new();
        wait_for("the operation has ended", || {
            engine.poll(&mut |ticket, result| ended.push((ticket, result.map(<[u8]>::to_vec))));
            engine.in_flight() == 0
        });
        assert_eq!(ended, [(7, Err(fault))]);
        // The state changes first: another thread may look before the opening is counted.
        wait_for("the opening is counted", || engine.view().opened == 1);
        assert_eq!(engine.view().fault, Some(fault));
        control.inject(Injected::None);
        fs::write(&file, good).unwrap();
        wait_for("the engine is back", || {
            let _ = engine.is_ready();
            engine.view().state == BreakerState::Closed
        });

        // Nobody asks the engine anything.
        fs::write(&file, bad).unwrap();
        wait_for("the opening is counted", || engine.view().opened == 2);
        assert_eq!((engine.view().state, engine.view().fault), (BreakerState::Open, Some(fault)));
        let opened = control.opened();
        let failed = engine.view();
        wait_for("a probe has failed", || {
            assert!(!engine.is_ready());
            engine.view().probe_ns > failed.probe_ns && engine.view().state == BreakerState::Open
        });
        assert_eq!(control.opened(), opened, "the device was left alone");
        fs::write(&file, good).unwrap();
        wait_for("the engine is back", || agree(&mut engine).is_ok());
    }
}

/// Sessions that share a breaker share what is known about their devices.
#[test]
fn every_session_learns_of_it() {
    let control = Control::of(Simulated::Qat);
    let (root, device) = machine(DeviceKind::Qat);
    let (breaker, monitor) = (breaker(), Arc::default());
    let plan = Plan { folder: Some(libraries()), root: Root::new(root.path()), limits: PATIENT, monitor };
    let mut engines = [0, 1].map(|_| Crypto::new(plan.clone(), Arc::clone(&breaker)));
    for engine in &mut engines {
        wait_for("the engine is ready", || engine.is_ready());
    }
    control.inject(Injected::Hang);
    for engine in &mut engines {
        engine.submit(&Operation::X25519 { scalar: &ALICE, point: None }, 7).unwrap();
    }
    fs::write(device.join("qat/state"), "down").unwrap();
    for engine in &mut engines {
        let mut ended = Vec::new();
        wait_for("the operation has ended", || {
            engine.poll(&mut |_, result| ended.push(result.map(<[u8]>::to_vec)));
            engine.in_flight() == 0
        });
        assert_eq!(ended, [Err(Fault::Gone)]);
    }
}

#[test]
fn what_the_device_was_not_made_for_is_declined() {
    let _control = Control::of(Simulated::Qat);
    let mut engine = ready(PATIENT);
    let wrong = Operation::Multiply { curve: Curve::P256, scalar: &[1; 31], point: Point::Base };
    assert_eq!(engine.submit(&wrong, 1), Err(Refusal::Declined));
    assert_eq!((engine.in_flight(), engine.view().state), (0, BreakerState::Closed));
}

#[test]
fn the_libraries_are_simulated() {
    assert!(look(&Some(libraries())).unwrap().is_simulated());
}
