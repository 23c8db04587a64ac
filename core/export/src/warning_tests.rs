use hasten_device::health::Health;
use hasten_device::{Device, DeviceKind};
use hasten_telemetry::{
    Algorithm, BreakEven, BreakerState, Engine, EngineClass, EngineCondition, EngineCounters, EngineReport,
    Event, Fault, Reason, Window,
};
use std::time::Duration;

use super::*;
use crate::collector::{self, Unreadable};
use crate::totals::Live;

fn look(change: impl FnOnce(&mut Program)) -> Look {
    let mut program = Program::default();
    change(&mut program);
    let key = Key { program: "nginx".to_owned(), accelerator: "tls".to_owned(), container: String::new() };
    Look { programs: [(key, program)].into(), ..Look::default() }
}

fn codes(look: &Look) -> Vec<&'static str> {
    let all = warnings(look);
    assert!(all.is_sorted_by_key(|warning| warning.severity), "{all:?}");
    for warning in &all {
        let ends = warning.fix.ends_with('.') && !warning.message.ends_with('.');
        assert!(ends && !warning.subject.is_empty() && !warning.fix.contains("  "), "{warning:?}");
    }
    all.iter().map(|warning| warning.code).collect()
}

fn engine(state: BreakerState, fault: Option<Fault>) -> Live {
    let second = Duration::from_secs;
    let report = EngineReport { state, fault, since: second(99), probe: Some(second(104)) };
    let condition = EngineCondition {
        engine: Engine::Qatzip,
        class: EngineClass::Device,
        device: "0000:6b:00.0".to_owned(),
        report: Some(report),
        processes: (1, 2),
        total: EngineCounters::default(),
        now: second(100),
    };
    Live { processes: 2, engines: vec![condition], ..Live::default() }
}

#[test]
fn what_runs_well_has_none() {
    assert!(codes(&Look::default()).is_empty());
    let healthy = look(|program| {
        program.counters[Algorithm::P256Sign].batched = 1000;
        program.live.push(engine(BreakerState::Closed, Some(Fault::TimedOut)));
    });
    assert!(codes(&healthy).is_empty());
}

#[test]
fn a_breaker_says_for_what_it_opened_and_when_it_tries_again() {
    let open = look(|program| program.live.push(engine(BreakerState::Open, Some(Fault::TimedOut))));
    assert_eq!(codes(&open), ["engine-open"]);
    let warning = &warnings(&open)[0];
    let expected = "qatzip on 0000:6b:00.0 is out of service in 1 of 2 processes after timed-out, for 1s; tried again in 4s";
    assert_eq!((warning.subject.as_str(), warning.message.as_str()), ("nginx (tls)", expected));
    let half = look(|program| program.live.push(engine(BreakerState::HalfOpen, None)));
    assert_eq!(codes(&half), ["engine-half-open"]);
    let disabled = look(|program| program.live.push(engine(BreakerState::Disabled, Some(Fault::Error))));
    assert_eq!(codes(&disabled), ["engine-disabled"]);
    assert!(warnings(&disabled)[0].fix.contains("`hasten engine enable qatzip`"));
}

#[test]
fn a_wrong_result_is_critical_and_stays() {
    for (event, code) in
        [(Event::VerifyFailed, "verify-failed"), (Event::DeflateMismatch, "deflate-mismatch")]
    {
        let wrong = look(|program| program.counters[event] = 1);
        assert_eq!((codes(&wrong), warnings(&wrong)[0].severity), (vec![code], Severity::Critical));
    }
}

#[test]
fn what_was_counted_recently_is_judged_and_nothing_older() {
    let recent = |reason| {
        look(|program| {
            let mut window = Window { elapsed: Duration::from_secs(60), ..Window::default() };
            (window.counted[Algorithm::P256Sign].batched, window.counted[reason]) = (100, 30);
            program.recent = Some(window);
        })
    };
    assert_eq!(codes(&recent(Reason::NotPolled)), ["not-polled"]);
    assert!(codes(&recent(Reason::ServerNotHandshaking)).is_empty());
    let past = look(|program| program.counters[Reason::NotPolled] = 1000);
    assert!(codes(&past).is_empty());
}

#[test]
fn batches_that_do_not_pay_are_named_by_what_the_pages_ask_for() {
    let rsa = Algorithm::Rsa2048Sign;
    let page = |lanes| {
        let mut page = Live::default();
        page.break_even[rsa.index()] = Some(BreakEven { lanes, scalar_ns: 257_000, batch_ns: 976_000 });
        page
    };
    let filling = |lanes: u64, pages: &[u64]| {
        look(|program| {
            let mut window = Window { elapsed: Duration::from_secs(60), ..Window::default() };
            let counted = &mut window.counted[rsa];
            (counted.batched, counted.batches) = (lanes * 100, 100);
            program.recent = Some(window);
            program.live.extend(pages.iter().map(|lanes| page(*lanes)));
        })
    };
    let thin = filling(2, &[3, 2]);
    assert_eq!(codes(&thin), ["lanes-below-break-even"]);
    let expected = "batches of rsa-2048-sign fill 2.0 lanes on average, and 4 or more pay off: the break-even is set to 2";
    assert_eq!(warnings(&thin)[0].message, expected);
    assert!(codes(&filling(4, &[3, 2])).is_empty());
    assert!(codes(&filling(2, &[4])).is_empty(), "as it was measured");
    assert!(codes(&filling(2, &[])).is_empty(), "nobody has reported what pays");
}

#[test]
fn a_breaker_that_is_known_needs_no_reason_beside_it() {
    let window = |program: &mut Program| {
        let mut window = Window { elapsed: Duration::from_secs(60), ..Window::default() };
        (window.counted[Event::DeflateStreams], window.counted[Reason::BreakerOpen]) = (100, 50);
        program.recent = Some(window);
    };
    assert_eq!(codes(&look(window)), ["breaker-open"]);
    let known = look(|program| {
        window(program);
        program.live.push(engine(BreakerState::Open, Some(Fault::BadOutput)));
    });
    assert_eq!(codes(&known), ["engine-open"]);
}

#[test]
fn pages_that_cannot_be_read_and_processes_that_may_not_be_are_told() {
    let mut look = look(|_| {});
    look.denied = 3;
    look.unreadable.push(Unreadable {
        program: "envoy".to_owned(),
        pid: 12,
        reason: collector::Reason::Version,
        message: "the counter page has version 2".to_owned(),
        fix: "restart the server".to_owned(),
    });
    assert_eq!(codes(&look), ["unreadable", "denied"]);
    assert_eq!(warnings(&look)[0].fix, "Restart the server.");
}

#[test]
fn a_device_that_is_silent_is_graver_than_one_that_is_not_set_up() {
    let device = |health: Health| {
        let mut look = Look::default();
        look.devices.push(DeviceState { device: qat(), health, traffic: None });
        codes(&look)
    };
    assert!(device(Health { up: true, ..Health::default() }).is_empty());
    assert_eq!(device(Health::default()), ["device-down"]);
    assert_eq!(device(Health { heartbeat: Some(Heartbeat::Lost), ..Health::default() }), ["heartbeat-lost"]);
    let hint = Some("telemetry of 0000:6b:00.0 is off: echo 1 > /sys/x".to_owned());
    assert_eq!(device(Health { up: true, hint, ..Health::default() }), ["no-telemetry"]);
}

fn qat() -> Device {
    Device {
        kind: DeviceKind::Qat,
        model: "4xxx",
        address: "0000:6b:00.0".to_owned(),
        pci_id: 0x4940,
        virtual_function: false,
        driver: Some("4xxx".to_owned()),
        state: Some("up".to_owned()),
        queues: None,
        numa_node: Some(0),
        virtual_functions: None,
        file: None,
        qat: None,
        unit: None,
        dlb: None,
    }
}
