//! DML's copies.

use std::sync::Arc;

use hasten_device::engines::dml::{Copier, SMALLEST, look};
use hasten_device::{BreakerState, Fault, Limits, Refusal};

use crate::control::{Control, Injected, Simulated, libraries};
use crate::{PATIENT, breaker, limits, wait_for};

fn engine(limits: Limits) -> Copier {
    let mut engine = Copier::new(Some(libraries()), breaker(), limits);
    (engine.verify, engine.always) = (true, true);
    engine
}

fn ready(limits: Limits) -> Copier {
    let mut engine = engine(limits);
    wait_for("the engine is ready", || engine.is_ready());
    engine
}

fn source(length: usize) -> Arc<[u8]> {
    (0..length).map(|at| (at * 31 / 7) as u8).collect()
}

fn copy(engine: &mut Copier, length: usize) -> Result<(), Refusal> {
    let source = source(length);
    match engine.copy(&source, vec![0; length]) {
        Ok(target) => {
            assert_eq!(target[..], source[..]);
            Ok(())
        }
        Err((refusal, _)) => Err(refusal),
    }
}

#[test]
fn large_copies_are_made_and_small_ones_are_not() {
    let control = Control::of(Simulated::Dml);
    let mut engine = ready(PATIENT);
    let before = control.operations();
    for length in [SMALLEST, SMALLEST + 1, 1 << 20] {
        copy(&mut engine, length).unwrap();
    }
    assert_eq!(control.operations(), before + 3);
    let (refusal, target) = engine.copy(&source(SMALLEST - 1), vec![7; SMALLEST - 1]).unwrap_err();
    assert_eq!((refusal, target), (Refusal::Declined, Some(vec![7; SMALLEST - 1])));
    assert_eq!(control.operations(), before + 3);
    assert!(look(&Some(libraries())).unwrap().is_simulated());
}

#[test]
fn every_fault_is_noticed_and_the_engine_comes_back() {
    let control = Control::of(Simulated::Dml);
    let faults = [
        (Injected::Hang, Fault::TimedOut),
        (Injected::Slow, Fault::TimedOut),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::Partial, Fault::BadOutput),
        (Injected::Abort, Fault::Error),
        (Injected::Restarting, Fault::TimedOut),
        (Injected::Gone, Fault::Gone),
        (Injected::QueueFull, Fault::QueueFull),
    ];
    for (injected, fault) in faults {
        let mut engine = ready(limits(injected));
        match injected {
            Injected::Slow => control.slow(5_000),
            other => control.inject(other),
        }
        assert_eq!(copy(&mut engine, SMALLEST), Err(Refusal::Fault(fault)), "{injected:?}");
        let failed = engine.view().probe_ns;
        wait_for("a probe has failed", || {
            let _ = engine.is_ready();
            engine.view().probe_ns > failed && engine.view().state == BreakerState::Open
        });
        control.inject(Injected::None);
        wait_for("the engine is back", || copy(&mut engine, SMALLEST).is_ok());
    }
}

#[test]
fn a_copy_that_hangs_keeps_its_target() {
    let control = Control::of(Simulated::Dml);
    let mut engine = ready(limits(Injected::Hang));
    control.inject(Injected::Hang);
    let source = source(SMALLEST);
    let (refusal, target) = engine.copy(&source, vec![0; SMALLEST]).unwrap_err();
    assert_eq!((refusal, target), (Refusal::Fault(Fault::TimedOut), None));
    // The device may still read it.
    assert!(Arc::strong_count(&source) > 1);
}

#[test]
fn without_full_verification_a_copy_that_is_cut_short_is_still_noticed() {
    let control = Control::of(Simulated::Dml);
    let mut engine = ready(PATIENT);
    engine.verify = false;
    control.inject(Injected::Partial);
    assert_eq!(copy(&mut engine, SMALLEST), Err(Refusal::Fault(Fault::BadOutput)));
}

#[test]
fn a_device_that_cannot_start_is_tried_again() {
    let control = Control::of(Simulated::Dml);
    for (injected, fault) in [(Injected::InitFailure, Fault::Init), (Injected::NoInstance, Fault::Gone)] {
        control.inject(injected);
        let mut engine = engine(PATIENT);
        wait_for("it has been tried", || {
            assert!(!engine.is_ready());
            engine.view().fault == Some(fault)
        });
        control.inject(Injected::None);
        wait_for("the engine is back", || engine.is_ready());
    }
    control.reset();
    let mut engine = ready(PATIENT);
    control.reset();
    assert_eq!(copy(&mut engine, SMALLEST), Err(Refusal::Fault(Fault::Gone)));
    wait_for("the engine is back", || engine.is_ready());
}

#[test]
fn the_device_copies_where_it_is_faster() {
    let control = Control::of(Simulated::Dml);
    let mut engine = ready(PATIENT);
    engine.always = false;
    let before = control.operations();
    // Nothing is known about software yet.
    assert_eq!(copy(&mut engine, SMALLEST), Err(Refusal::Declined));
    engine.software_took(SMALLEST, u64::MAX);
    copy(&mut engine, SMALLEST).unwrap();
    assert_eq!(engine.break_even(), Some(SMALLEST));
    // So fast that no device can be faster.
    engine.software_took(1 << 20, 1);
    copy(&mut engine, 1 << 20).unwrap();
    assert_eq!(copy(&mut engine, 1 << 20), Err(Refusal::Declined));
    assert_eq!((engine.break_even(), control.operations()), (None, before + 2));
}
