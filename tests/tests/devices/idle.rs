//! A device that fails while idle: operators see it at once, not with the next request.

use std::fs;

use hasten_bench::certificates::KeyKind;
use hasten_bench::server::ServerKind;
use hasten_telemetry::{BreakerState, Engine, Event, Fault};
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, wait};

use crate::handshakes::{PATIENT, spec, wait_for_signatures};
use crate::simulation::Simulation;
use crate::{get_all, report, wait_until_closed, with_files};

const HEARTBEAT: &str = "sys/kernel/debug/qat_4xxx_0000:6b:00.0/heartbeat/status";
const STATE: &str = "sys/bus/pci/devices/0000:6b:00.0/qat/state";

/// Changes what the driver says, and waits until that is on the page, whichever process put it there.
fn opens(
    simulation: &Simulation,
    server: &Subject,
    engine: Engine,
    (file, says): (&str, &str),
    fault: Fault,
) {
    let before = server.counters();
    let file = simulation.host().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, says).unwrap();
    wait::until("the breaker to be open on the page", || {
        report(server, engine).is_some_and(|report| report.state == BreakerState::Open)
    });
    assert_eq!(report(server, engine).unwrap().fault, Some(fault));
    wait::until("that to be counted", || server.counters()[engine].opened > before[engine].opened);
    let new = server.counters().since(&before);
    assert_eq!((new[engine].opened, new[engine].operations()), (1, 0), "{new:?}");
    assert_eq!(new[Event::BreakerOpened], 1, "{new:?}");
}

#[test]
fn the_page_tells_of_a_device_for_handshakes() {
    let (pki, simulation) = (Pki::new(), Simulation::new());
    let server = Subject::accelerated(
        &spec(&simulation, ServerKind::Nginx, KeyKind::Rsa2048, &pki, "qat").env(PATIENT.0, PATIENT.1),
    );
    server.under_load(|| wait_for_signatures(&server, 20));
    opens(&simulation, &server, Engine::Qat, (HEARTBEAT, "-1\n"), Fault::HeartbeatLost);
    fs::write(simulation.host().join(HEARTBEAT), "0\n").unwrap();
    server.under_load(|| wait_for_signatures(&server, 20));
    wait::until("the page to say that it is back", || {
        report(&server, Engine::Qat).is_some_and(|report| report.state == BreakerState::Closed)
    });
    server.finish();
}

#[test]
fn the_page_tells_of_a_device_for_compression() {
    let simulation = Simulation::new();
    let site = with_files(simulation.site("qatzip").env(PATIENT.0, PATIENT.1));
    let server = Subject::accelerated(&site.spec());
    wait_until_closed(&site, &server, Engine::Qatzip);
    opens(&simulation, &server, Engine::Qatzip, (STATE, "down\n"), Fault::Gone);
    fs::write(simulation.host().join(STATE), "up\n").unwrap();
    get_all(&site);
    wait_until_closed(&site, &server, Engine::Qatzip);
    server.finish();
}
