use super::super::{Snapshot, SuspensionReport};
use super::*;
use crate::{BreakerState, Engine, EngineClass, EngineCounters, EngineReport};

/// The codes of the warnings after ten seconds with these counters.
fn codes(counters: &Counters) -> Vec<&'static str> {
    let recent = Window { elapsed: Duration::from_secs(10), counted: counters.clone() };
    let warnings = Warning::of_counters(counters, Some(&recent), false);
    assert!(warnings.iter().all(|w| w.fix.ends_with('.') && !w.fix.contains("  ")), "{warnings:?}");
    assert!(warnings.is_sorted_by_key(|w| w.severity));
    warnings.iter().map(|warning| warning.code).collect()
}

fn counters(change: impl FnOnce(&mut Counters)) -> Counters {
    let mut counters = Counters::default();
    change(&mut counters);
    counters
}

fn busy(change: impl FnOnce(&mut Counters)) -> Counters {
    counters(|counters| {
        let one = &mut counters[Algorithm::Rsa2048Sign];
        (one.batched, one.batches) = (8000, 1000);
        change(counters);
    })
}

#[test]
fn a_healthy_server_has_none_busy_or_not() {
    assert!(codes(&Counters::default()).is_empty());
    assert!(codes(&busy(|_| {})).is_empty());
    let quiet = counters(|c| {
        c[Algorithm::Rsa2048Sign].scalar = 50;
        c[Reason::Alone] = 50;
    });
    assert!(codes(&quiet).is_empty(), "one at a time is right at low load");
}

#[test]
fn a_failed_verification_is_critical_and_comes_first() {
    let broken = busy(|c| {
        c[Event::VerifyFailed] = 1;
        c[Algorithm::Rsa2048Sign].failed = 3;
        c[Reason::NotPolled] = 5000;
    });
    assert_eq!(codes(&broken), ["verify-failed", "not-polled", "failed-operations"]);
}

#[test]
fn a_wrong_result_of_an_engine_is_critical_and_named_once() {
    let wrong = counters(|c| {
        c[Event::DeflateStreams] = 1000;
        (c[Event::DeflateMismatch], c[Event::BreakerOpened]) = (1, 1);
        c[Reason::BreakerOpen] = 400;
    });
    assert_eq!(codes(&wrong), ["deflate-mismatch", "breaker-open"]);
    assert_eq!(codes(&counters(|c| c[Event::BreakerOpened] = 1)), ["breaker-opened"]);
}

#[test]
fn a_process_that_puts_no_handshake_aside_any_more_says_why() {
    let share = |state, doubt, processes| SuspensionShare {
        report: SuspensionReport { state, doubt, since: Duration::from_secs(100) },
        processes,
        of: 4,
        now: Duration::from_secs(290),
    };
    for state in [Suspension::Proven, Suspension::Expected, Suspension::Shadowing] {
        assert_eq!(Warning::of_suspension(&share(state, None, 4)), None);
    }
    let off = Warning::of_suspension(&share(Suspension::Off, Some(Doubt::NestedLoop), 1)).unwrap();
    assert_eq!((off.code, off.severity), ("suspension-off", Severity::Warning));
    assert_eq!(off.message, "handshakes have not been suspended in 1 of 4 processes for 3m 10s: nested-loop");
    assert_eq!(off.fix, Doubt::NestedLoop.help());
    let all = Warning::of_suspension(&share(Suspension::Off, None, 4)).unwrap();
    assert!(!all.message.contains("processes") && all.fix.ends_with('.'), "{all:?}");
}

#[test]
fn first_handshakes_are_a_matter_only_where_they_are_most() {
    let shadowed = |count| busy(|c| c[Reason::Shadowed] = count);
    assert!(codes(&shadowed(1_000)).is_empty());
    assert_eq!(codes(&shadowed(20_000)), ["shadowed"]);
    assert!(codes(&busy(|c| c[Reason::SuspensionOff] = 90_000)).is_empty(), "its process says why");
}

/// An engine that has been in this state for three minutes, in one of two processes.
fn engine(state: BreakerState, fault: Option<Fault>) -> EngineCondition {
    let second = Duration::from_secs;
    EngineCondition {
        engine: Engine::Qatzip,
        class: EngineClass::Device,
        device: "0000:6b:00.0".to_owned(),
        report: Some(EngineReport { state, fault, since: second(100), probe: Some(second(302)) }),
        processes: (1, 2),
        total: EngineCounters::default(),
        now: second(290),
    }
}

#[test]
fn engines_out_of_service_say_why_and_how_long() {
    let of = |state, fault| Warning::of_engine(&engine(state, fault), Some(4242));
    let open = of(BreakerState::Open, Some(Fault::TimedOut)).unwrap();
    assert_eq!((open.code, open.severity), ("engine-open", Severity::Warning));
    assert_eq!(
        open.message,
        "qatzip on 0000:6b:00.0 is out of service in 1 of 2 processes after timed-out, for 3m 10s; tried again in 12s"
    );
    let wrong = of(BreakerState::Open, Some(Fault::BadOutput)).unwrap();
    assert_eq!(wrong.severity, Severity::Critical, "no result may be wrong");
    let half = of(BreakerState::HalfOpen, None).unwrap();
    assert_eq!((half.code, half.severity), ("engine-half-open", Severity::Note));
    let disabled = of(BreakerState::Disabled, Some(Fault::Error)).unwrap();
    assert!(disabled.message.contains("was disabled by hand in 1 of 2 processes, 3m 10s ago"));
    assert_eq!(disabled.fix, "Put it back with `hasten engine enable qatzip 4242`.");
    let anywhere = Warning::of_engine(&engine(BreakerState::Disabled, None), None).unwrap();
    assert_eq!(anywhere.fix, "Put it back with `hasten engine enable qatzip`.");
    assert_eq!(of(BreakerState::Closed, Some(Fault::TimedOut)), None);
}

#[test]
fn a_breaker_that_is_known_needs_no_count_beside_it() {
    let counted = counters(|c| {
        c[Event::DeflateStreams] = 1000;
        (c[Event::BreakerOpened], c[Reason::BreakerOpen]) = (1, 400);
    });
    assert_eq!(codes(&counted), ["breaker-opened", "breaker-open"]);
    let recent = Window { elapsed: Duration::from_secs(10), counted: counted.clone() };
    assert_eq!(Warning::of_counters(&counted, Some(&recent), true), []);
}

#[test]
fn a_page_that_tells_nothing_has_its_error_and_fix() {
    let warning = Warning::unreadable("the counter page has version 2", "restart the server");
    assert_eq!((warning.code, warning.fix.as_str()), ("unreadable", "Restart the server."));
    assert_eq!(Warning::of_older_page().code, "older-page");
}

#[test]
fn streams_that_gain_nothing_are_pointed_out() {
    let stream = |change: fn(&mut Counters)| {
        codes(&counters(|c| {
            c[Event::DeflateStreams] = 2000;
            (c[Event::DeflateBytesIn], c[Event::DeflateBytesOut]) = (100 << 20, 25 << 20);
            change(c);
        }))
    };
    assert!(stream(|_| {}).is_empty());
    assert_eq!(stream(|c| c[Event::DeflateBytesOut] = 100 << 20), ["incompressible"]);
    assert_eq!(stream(|c| c[Reason::SmallFlushes] = 1500), ["small-flushes"]);
    assert!(stream(|c| c[Reason::SmallFlushes] = 200).is_empty());
    assert!(stream(|c| c[Reason::StoredLevel] = 2000).is_empty(), "nothing to do about level 0");
    assert_eq!(stream(|c| c[Reason::UnknownAllocation] = 2000), ["unknown-allocation"]);
}

#[test]
fn each_reason_has_its_own_threshold() {
    assert_eq!(codes(&busy(|c| c[Reason::NoIfma] = 1)), ["no-ifma"]);
    assert!(codes(&busy(|c| c[Reason::UnsupportedKey] = 400)).is_empty());
    assert_eq!(codes(&busy(|c| c[Reason::UnsupportedKey] = 1600)), ["unsupported-key"]);
    assert!(codes(&busy(|c| c[Reason::ServerNotHandshaking] = 100_000)).is_empty());
    let spread_thin = busy(|c| {
        c[Algorithm::Rsa2048Sign].scalar = 12_000;
        c[Reason::BelowBreakEven] = 12_000;
    });
    assert_eq!(codes(&spread_thin), ["below-break-even"]);
}

#[test]
fn batches_thinner_than_break_even_are_named() {
    let mut snapshot = snapshot();
    let of = |snapshot: &Snapshot, batched| {
        let counted = counters(|c| {
            let one = &mut c[Algorithm::Rsa2048Sign];
            (one.batched, one.batches) = (batched, 100);
        });
        let recent = Window { elapsed: Duration::from_secs(10), counted };
        Warning::of_batches(|algorithm| snapshot.break_even(algorithm), &recent)
    };
    assert_eq!(of(&snapshot, 200), [], "the break-even is measured, and moves");
    snapshot.break_even[Algorithm::Rsa2048Sign.index()].as_mut().unwrap().lanes = 2;
    assert_eq!(of(&snapshot, 400), []);
    let thin = of(&snapshot, 200);
    assert_eq!(thin.len(), 1);
    assert_eq!(
        (thin[0].code, thin[0].message.as_str()),
        (
            "lanes-below-break-even",
            "batches of rsa-2048-sign fill 2.0 lanes on average, and 4 or more pay off: the break-even is set to 2"
        )
    );
    assert!(thin[0].fix.contains("HASTEN_TLS_BREAK_EVEN"));
    snapshot.break_even[Algorithm::Rsa2048Sign.index()] = None;
    assert_eq!(of(&snapshot, 200), [], "nobody has reported what pays");
}

/// If one way is always taken or never, the other is tried from time to time.
#[test]
fn lanes_that_were_set_are_told_from_measured_ones() {
    for (lanes, scalar_ns, batch_ns, measured) in [
        (4, 257_000, 976_000, true),
        (2, 257_000, 976_000, false),
        (1, 794_000, 168_000, true),
        (2, 794_000, 168_000, true),
        (3, 794_000, 168_000, false),
        (9, 11_000, 99_000, true),
        (8, 11_000, 99_000, true),
        (7, 11_000, 99_000, false),
        (4, 0, 99_000, false),
    ] {
        assert_eq!(BreakEven { lanes, scalar_ns, batch_ns }.is_measured(), measured, "{lanes} {scalar_ns}");
    }
}

/// A snapshot of a program whose RSA pays from four lanes.
fn snapshot() -> Snapshot {
    let mut break_even = [None; Algorithm::COUNT];
    break_even[Algorithm::Rsa2048Sign.index()] =
        Some(BreakEven { lanes: 4, scalar_ns: 257_000, batch_ns: 976_000 });
    Snapshot {
        creator_pid: 1,
        started: Duration::ZERO,
        started_boottime: Duration::ZERO,
        program: "nginx".to_owned(),
        accelerator: "tls".to_owned(),
        note: String::new(),
        writers: Vec::new(),
        break_even,
        engines: Vec::new(),
        control: None,
    }
}

#[test]
fn pool_and_handshakes_need_a_share_of_enough() {
    assert_eq!(codes(&busy(|c| (c[Event::PoolHit], c[Event::PoolMiss]) = (70, 30))), ["pool-misses"]);
    assert!(codes(&busy(|c| (c[Event::PoolHit], c[Event::PoolMiss]) = (0, 8))).is_empty());
    let failing = busy(|c| (c[Event::HandshakeFinished], c[Event::HandshakeFailed]) = (80, 20));
    assert_eq!(codes(&failing), ["handshakes-fail"]);
}

#[test]
fn durations_show_two_units() {
    let texts = [5, 190, 7980, 435_600].map(|s| duration(Duration::from_secs(s)));
    assert_eq!(texts, ["5s", "3m 10s", "2h 13m", "5d 1h"]);
}
