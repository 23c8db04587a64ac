//! Compares the breaker with a model in plain variables, and runs it under many
//! threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hasten_guard::breaker::{Breaker, Permit, Settings};
use hasten_guard::{BreakerState, Fault};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Asks for a permit, and keeps it for later.
    Ask,
    /// Reports the outcome of an outstanding permit.
    Report {
        which: usize,
        good: bool,
    },
    Trip,
    Wait(u64),
    Switch(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Ask),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, good)| Step::Report { which, good }),
        1 => Just(Step::Trip),
        4 => prop_oneof![0..20_u64, 0..3_000_u64].prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Switch),
    ]
}

/// The breaker's state, as derived from the requests and answers.
#[derive(Debug, Default)]
struct Model {
    now: u64,
    disabled: bool,
    /// Failed probes since it was closed; `None` while it is closed.
    failures: Option<u32>,
    good: u8,
    /// The outstanding probe, and when it was let through.
    probe: Option<(Permit, u64)>,
    opened: u32,
}

impl Model {
    fn opens(&mut self, failures: u32) {
        self.failures = Some(failures);
        self.good = 0;
        self.probe = None;
    }
}

fn settings() -> Settings {
    Settings {
        first: Duration::from_millis(100),
        longest: Duration::from_millis(800),
        good: 3,
        lease: Duration::from_millis(500),
    }
}

fn interval_is_sensible(breaker: &Breaker, failures: u32, now: u64) -> Result<(), TestCaseError> {
    let view = breaker.view();
    let plain = (100 << failures.min(10)).min(800);
    let waits = view.probe_ns / MS - now;
    prop_assert!((plain * 8 / 10..=plain * 12 / 10).contains(&waits), "{waits} ms after {failures} failures");
    Ok(())
}

fn play(steps: &[Step], seed: u64) -> Result<(), TestCaseError> {
    let breaker = Breaker::new(settings(), seed);
    let mut model = Model { now: 1_000, ..Model::default() };
    let mut out: Vec<Permit> = Vec::new();
    for step in steps {
        match *step {
            Step::Wait(ms) => model.now += ms,
            Step::Switch(off) => {
                model.disabled = off;
                if off { breaker.disable() } else { breaker.enable() }
            }
            Step::Trip => {
                let was_closed = model.failures.is_none();
                breaker.trip(Fault::HeartbeatLost, model.now * MS);
                if was_closed {
                    model.opened += 1;
                    model.opens(0);
                    interval_is_sensible(&breaker, 0, model.now)?;
                }
            }
            Step::Ask => asks(&breaker, &mut model, &mut out)?,
            Step::Report { which, good } if !out.is_empty() => {
                let permit = out.swap_remove(which % out.len());
                reports(&breaker, &mut model, permit, good)?;
            }
            Step::Report { .. } => {}
        }
        agrees(&breaker, &model)?;
    }
    Ok(())
}

fn asks(breaker: &Breaker, model: &mut Model, out: &mut Vec<Permit>) -> Result<(), TestCaseError> {
    let due = breaker.view().probe_ns / MS;
    let permit = breaker.admit(model.now * MS);
    if model.disabled {
        prop_assert_eq!(permit, None);
        return Ok(());
    }
    if model.failures.is_none() {
        prop_assert!(permit.is_some_and(|permit| !permit.is_probe()));
    } else if let Some((_, since)) = model.probe {
        prop_assert_eq!(permit.is_some(), model.now >= since + 500, "one probe at a time");
    } else {
        prop_assert_eq!(permit.is_some(), model.now >= due);
    }
    if let Some(permit) = permit {
        if model.failures.is_some() {
            prop_assert!(permit.is_probe());
            model.probe = Some((permit, model.now));
        }
        out.push(permit);
    }
    Ok(())
}

fn reports(breaker: &Breaker, model: &mut Model, permit: Permit, good: bool) -> Result<(), TestCaseError> {
    let counts = model.probe.is_some_and(|(probe, _)| probe == permit);
    if good {
        breaker.succeeded(permit, model.now * MS);
        if counts {
            model.probe = None;
            model.good += 1;
            if model.good == 3 {
                (model.failures, model.good) = (None, 0);
            }
        }
        return Ok(());
    }
    breaker.failed(permit, Fault::TimedOut, model.now * MS);
    match (permit.is_probe(), model.failures) {
        (false, None) => {
            model.opened += 1;
            model.opens(0);
            interval_is_sensible(breaker, 0, model.now)
        }
        (true, Some(failures)) if counts => {
            model.opens(failures + 1);
            interval_is_sensible(breaker, failures + 1, model.now)
        }
        _ => Ok(()),
    }
}

fn agrees(breaker: &Breaker, model: &Model) -> Result<(), TestCaseError> {
    let view = breaker.view();
    prop_assert_eq!(view.opened, model.opened);
    prop_assert_eq!(view.state == BreakerState::Disabled, model.disabled);
    if !model.disabled {
        prop_assert_eq!(view.state == BreakerState::Closed, model.failures.is_none(), "{:?}", model);
    }
    prop_assert_eq!(view.fault.is_some(), model.opened > 0);
    prop_assert_eq!(view.probe_ns == 0, model.failures.is_none());
    Ok(())
}

proptest! {
    #[test]
    fn does_what_the_model_does(steps in prop::collection::vec(step(), 0..200), seed: u64) {
        play(&steps, seed)?;
    }
}

#[test]
fn differently_seeded_breakers_do_not_probe_at_the_same_time() {
    let due = |seed| {
        let breaker = Breaker::new(Settings::default(), seed);
        breaker.trip(Fault::Error, 0);
        breaker.view().probe_ns
    };
    let times: std::collections::HashSet<_> = (0..64).map(due).collect();
    assert!(times.len() > 16, "{times:?}");
}

#[test]
fn many_threads_see_one_probe() {
    let breaker = Breaker::new(settings(), 1);
    breaker.trip(Fault::Error, 0);
    let probes = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    // Half a second later it is due, and no lease has ended.
                    probes.fetch_add(u32::from(breaker.admit(400 * MS).is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(probes.into_inner(), 1);
}

#[test]
fn many_threads_open_it_once() {
    let breaker = Breaker::new(settings(), 1);
    let permits: Vec<_> = (0..8).map(|_| breaker.admit(0).unwrap()).collect();
    std::thread::scope(|scope| {
        for permit in permits {
            let breaker = &breaker;
            scope.spawn(move || breaker.failed(permit, Fault::QueueFull, 5 * MS));
        }
    });
    let view = breaker.view();
    assert_eq!((view.state, view.opened, view.fault), (BreakerState::Open, 1, Some(Fault::QueueFull)));
    assert_eq!(view.since_ns, 5 * MS);
}

#[test]
fn comes_back_after_good_probes_and_starts_again_with_the_shortest_interval() {
    let breaker = Breaker::new(settings(), 7);
    breaker.trip(Fault::Gone, 0);
    let mut now = breaker.view().probe_ns;
    for _ in 0..4 {
        let probe = breaker.admit(now).unwrap();
        breaker.failed(probe, Fault::Gone, now);
        now = breaker.view().probe_ns;
    }
    for _ in 0..3 {
        let probe = breaker.admit(now).unwrap();
        assert!(probe.is_probe());
        assert_eq!(breaker.view().state, BreakerState::HalfOpen);
        breaker.succeeded(probe, now);
    }
    assert_eq!(breaker.view().state, BreakerState::Closed);
    breaker.trip(Fault::Error, now);
    assert!(breaker.view().probe_ns - now <= 120 * MS);
}
