use hasten_device::health::Health;
use hasten_device::{Device, DeviceKind};
use hasten_telemetry::{Algorithm, Engine, EngineClass, Fault};

use super::*;
use crate::collector::{self, Unreadable};
use crate::totals::Live;

fn look(change: impl FnOnce(&mut Program)) -> Look {
    let mut program = Program::default();
    change(&mut program);
    let key = Key { program: "nginx".to_owned(), accelerator: "tls".to_owned() };
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

fn engine(breaker: BreakerState, fault: Option<Fault>) -> Live {
    let state = EngineState {
        engine: Engine::Qatzip,
        class: EngineClass::Device,
        device: "0000:6b:00.0".to_owned(),
        breaker,
        fault,
        age: Some(Duration::from_secs(1)),
        probe: Some(Duration::from_secs(4)),
        processes: (1, 2),
    };
    Live { processes: 2, engines: vec![state], ..Live::default() }
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
    assert_eq!(codes(&open), ["breaker-open"]);
    let warning = &warnings(&open)[0];
    let expected = "the engine qatzip on 0000:6b:00.0 is out of service in 1 of 2 processes: timed-out, to be tried again in 4 s";
    assert_eq!((warning.subject.as_str(), warning.message.as_str()), ("nginx (tls)", expected));
    let half = look(|program| program.live.push(engine(BreakerState::HalfOpen, None)));
    assert_eq!(codes(&half), ["breaker-half-open"]);
    let disabled = look(|program| program.live.push(engine(BreakerState::Disabled, Some(Fault::Error))));
    assert_eq!(codes(&disabled), ["engine-disabled"]);
    assert!(warnings(&disabled)[0].fix.contains("hasten engine enable qatzip"));
}

#[test]
fn a_wrong_result_is_critical_and_stays() {
    for event in [Event::VerifyFailed, Event::DeflateMismatch] {
        let wrong = look(|program| {
            program.counters[event] = 1;
            program.live.push(engine(BreakerState::Open, Some(Fault::BadOutput)));
        });
        assert_eq!(codes(&wrong), ["verify-failed", "breaker-open"]);
    }
}

#[test]
fn a_reason_has_to_be_frequent_and_recent() {
    let recent = |count: u64, all: u64, seconds: u64, reason| {
        let window = |program: &mut Program| {
            let mut window = Window { elapsed: Duration::from_secs(seconds), ..Window::default() };
            window.counted[Algorithm::P256Sign].batched = all;
            window.counted[reason] = count;
            program.recent = Some(window);
        };
        codes(&look(window))
    };
    assert_eq!(recent(30, 100, 60, Reason::NotPolled), ["not-polled"]);
    assert!(recent(3, 100, 60, Reason::NotPolled).is_empty());
    assert!(recent(9, 9, 60, Reason::NotPolled).is_empty(), "too few to say anything");
    assert_eq!(recent(1, 100, 60, Reason::NoIfma), ["no-ifma"]);
    assert!(recent(100, 10, 60, Reason::ServerNotHandshaking).is_empty());
    assert!(recent(60, 100, 60, Reason::Alone).is_empty(), "one at a time is right at low load");
    assert_eq!(recent(60_000, 100_000, 60, Reason::Alone), ["alone"]);
    let past = look(|program| program.counters[Reason::NotPolled] = 1000);
    assert!(codes(&past).is_empty());
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
    assert_eq!(codes(&known), ["breaker-open"]);
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
        look.devices.push(DeviceState { device: qat(), health });
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
