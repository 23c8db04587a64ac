//! nginx with devices that fail in every way: no client notices, and the device is used again once it is well. With
//! simulated libraries, not on hardware.

mod campaign;
mod handshakes;
mod idle;
mod simulation;

use hasten_telemetry::{BreakerState, Engine, EngineReport};
use hasten_tests::program::Program;
use hasten_tests::site::Site;
use hasten_tests::{Subject, bodies, wait};

use crate::simulation::{Injected, Simulated, Simulation};

/// From too short for a device to too long for a single call.
const LENGTHS: [usize; 6] = [20, 1000, 5000, 60_000, 200_000, 900_000];

fn with_files(mut site: Site) -> Site {
    for length in LENGTHS {
        site = site.file(&format!("{length}.html"), &bodies::page(length));
    }
    for level in LEVELS {
        site = site.location(&level.to_string(), &format!("gzip_comp_level {level};"));
    }
    site
}

const LEVELS: [u8; 3] = [1, 6, 9];

/// Requests every file at every level; each must be right.
fn get_all(site: &Site) {
    let client = site.client();
    for level in LEVELS {
        for length in LENGTHS {
            let answer = client.get(&format!("/{level}/{length}.html")).unwrap();
            let is_right = answer.is_packed() && answer.plain().unwrap() == bodies::page(length);
            assert!(is_right, "/{level}/{length}");
        }
    }
}

/// The living processes' report on an engine.
fn report(server: &Subject, engine: Engine) -> Option<EngineReport> {
    let pages = hasten_telemetry::pages_of(server.pid()).unwrap_or_default();
    let snapshots: Vec<_> = pages.iter().map(|page| page.read().unwrap()).collect();
    let serving = server.serving();
    let reports: Vec<_> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.reports(engine, |pid| serving.contains(&pid)).into_values())
        .collect();
    EngineReport::gravest(&reports)
}

fn wait_until_closed(site: &Site, server: &Subject, engine: Engine) {
    wait::until("the engine to be back", || {
        get_all(site);
        report(server, engine).is_some_and(|report| report.state == BreakerState::Closed)
    });
}

#[test]
fn whole_responses_are_packed_by_the_device_that_is_named() {
    for (name, simulated, engine) in
        [("qatzip", Simulated::QatZip, Engine::Qatzip), ("qpl", Simulated::Qpl, Engine::Qpl)]
    {
        let simulation = Simulation::new();
        let site = with_files(simulation.site(name).env("HASTEN_DEVICE_TIMEOUT_MS", "10000"));
        let server = Subject::accelerated(&site.spec());
        wait::until("the device to be used", || {
            get_all(&site);
            server.counters()[engine].ok > 0
        });
        let before = (server.counters()[engine], simulation.operations(simulated));
        get_all(&site);
        let after = (server.counters()[engine], simulation.operations(simulated));
        let done = after.0.ok - before.0.ok;
        assert!(done >= 6 && done <= after.1 - before.1, "{name}: {before:?} {after:?}");
        assert_eq!((after.0.failed, after.0.opened), (0, 0), "{name}");
        assert!(after.0.bytes_in > 2 * after.0.bytes_out, "{name}: {after:?}");
        server.finish();
    }
}

/// Nginx forks its workers, as do other servers whose parent has compressed before.
#[test]
fn a_child_leaves_alone_what_its_parent_has_of_a_device_for_compression() {
    for (name, simulated, engine) in
        [("qatzip", Simulated::QatZip, Engine::Qatzip), ("qpl", Simulated::Qpl, Engine::Qpl)]
    {
        let simulation = Simulation::new();
        let program = Program::using_zlib("zlib_device_fork");
        let control = simulation.folder().join("control");
        let place = (simulated as usize).to_string();
        let run = program
            .preloaded(&[control.to_str().unwrap(), &place], &simulation.environment(name))
            .succeeded();
        assert_eq!(run.output, program.stock(&[]).succeeded().output, "{name}");
        assert_eq!(simulation.trespasses(simulated), 0, "{name}");
        assert!(run.counters[engine].ok > 8, "{name}: {:?}", run.counters);
    }
}

#[test]
fn devices_that_are_not_requested_are_not_asked() {
    for (request, has_device) in [("off", true), ("qpl", true), ("auto", false)] {
        let simulation = Simulation::new();
        let mut site = with_files(simulation.site(request));
        if !has_device {
            site = site.env("HASTEN_SYSFS_ROOT", "/nonexistent");
        }
        let server = Subject::accelerated(&site.spec());
        for _ in 0..3 {
            get_all(&site);
        }
        assert_eq!(simulation.operations(Simulated::QatZip), 0, "{request}");
        server.finish();
    }
}

#[test]
fn no_client_notices_any_fault_and_the_device_is_used_again() {
    let simulation = Simulation::new();
    let site = with_files(simulation.site("qatzip"))
        .env("HASTEN_DEVICE_TIMEOUT_MS", "500")
        .env("HASTEN_DEVICE_RETRY_MS", "5-50");
    let server = Subject::accelerated(&site.spec());
    wait_until_closed(&site, &server, Engine::Qatzip);
    for fault in Injected::FAULTS {
        let opened = server.counters()[Engine::Qatzip].opened;
        simulation.inject(Simulated::QatZip, fault);
        if matches!(fault, Injected::InitFailure | Injected::NoInstance | Injected::HangInit) {
            // Existing sessions are not affected.
            simulation.reset(Simulated::QatZip);
        }
        wait::until("the breaker to open", || {
            get_all(&site);
            // On a busy machine it may be open before the fault is there.
            server.counters()[Engine::Qatzip].opened > opened
                || report(&server, Engine::Qatzip).is_some_and(|report| report.state != BreakerState::Closed)
        });
        simulation.inject(Simulated::QatZip, Injected::None);
        wait_until_closed(&site, &server, Engine::Qatzip);
        let ok = server.counters()[Engine::Qatzip].ok;
        wait::until("the device to be used again", || {
            get_all(&site);
            server.counters()[Engine::Qatzip].ok > ok
        });
    }
    server.finish();
}

#[test]
fn new_workers_use_the_device_too() {
    let simulation = Simulation::new();
    let site = with_files(simulation.site("qatzip").env("HASTEN_DEVICE_TIMEOUT_MS", "10000"));
    let server = Subject::accelerated(&site.spec());
    wait_until_closed(&site, &server, Engine::Qatzip);
    let old = server.serving();
    server.signal(rustix::process::Signal::HUP).unwrap();
    wait::until("new workers", || server.serving().iter().all(|worker| !old.contains(worker)));
    let ok = server.counters()[Engine::Qatzip].ok;
    wait::until("the device to be used by them", || {
        get_all(&site);
        server.counters()[Engine::Qatzip].ok > ok + 3
    });
    server.finish();
}
