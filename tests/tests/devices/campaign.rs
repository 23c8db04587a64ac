//! Faults, one every 50 ms for a while, under handshakes and compressed responses.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::{BreakerState, Engine, Event, boottime};
use hasten_tests::{Subject, bodies, effort, wait};

use crate::simulation::{Injected, Simulated, Simulation};
use crate::{LENGTHS, LEVELS, get_all, report, wait_until_closed, with_files};

/// Seconds of faults, and in `make thorough`.
const SECONDS: [u64; 2] = [15, 60];
const INTERVAL: Duration = Duration::from_millis(50);

/// Clients that request compressed files, besides those that make handshakes.
const CLIENTS: usize = 4;

/// The longest interval between two attempts to use a device, in milliseconds, as configured below.
const LONGEST: u64 = 1000;

const ENGINES: [Simulated; 3] = [Simulated::QatZip, Simulated::Qpl, Simulated::Qat];

/// How many successful attempts close the breaker.
const GOOD: u64 = 3;

#[test]
fn faults_under_load() {
    let simulation = Simulation::new();
    let site = with_files(simulation.site("qatzip,qpl,qat").under("tls,gzip"))
        .signing_with(KeyKind::Rsa2048)
        // Longer than a busy machine keeps a device's thread waiting: the faults are to be those that are injected.
        .env("HASTEN_DEVICE_TIMEOUT_MS", "250")
        .env("HASTEN_DEVICE_RETRY_MS", "20-1000");
    let server = Subject::accelerated(&site.spec());
    wait_until_closed(&site, &server, Engine::Qatzip);
    let (stop, answers, wrong) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let pages = LENGTHS.map(bodies::page);
    let before = server.cpu_times();
    let began = Instant::now();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (stop, answers, wrong, pages, site) = (&stop, &answers, &wrong, &pages, &site);
            scope.spawn(move || {
                for turn in client.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    let (level, index) = (LEVELS[turn % LEVELS.len()], turn / LEVELS.len() % LENGTHS.len());
                    let answer = site.client().get(&format!("/{level}/{}.html", LENGTHS[index]));
                    let body = answer.and_then(|answer| answer.plain());
                    let is_right = body.is_ok_and(|body| body == pages[index]);
                    (if is_right { answers } else { wrong }).fetch_add(1, Relaxed);
                    // Faults last; it is not the number of answers that counts.
                    thread::sleep(effort(Duration::from_millis(10), Duration::ZERO));
                }
            });
        }
        server.under_load(|| inject(&simulation));
        stop.store(true, Relaxed);
    });
    let elapsed = began.elapsed();
    let cpu = server.cpu_times().since(&before);
    let (answers, wrong) = (answers.load(Relaxed), wrong.load(Relaxed));
    let handshakes = server.counters()[Event::HandshakeFinished];
    let returned = back(&server, Engine::Qatzip, || get_all(&site));
    let signing = server.under_load(|| back(&server, Engine::Qat, || {}));
    let counters = server.counters();
    let engines =
        [Engine::Qatzip, Engine::Qpl, Engine::Qat].map(|engine| (engine.as_str(), counters[engine]));
    let mut text = format!(
        "{:.0} s of faults: {handshakes} handshakes, none failed; {answers} compressed answers, {wrong} wrong or missing; \
         {:.2} CPUs used; after its next attempt was due, qatzip was back in {} ms, qat in {} ms\n",
        elapsed.as_secs_f64(),
        cpu.as_secs_f64() / elapsed.as_secs_f64(),
        returned.as_millis(),
        signing.as_millis(),
    );
    for (name, counters) in engines {
        text += &format!(
            "  {name}: {} done, {} failed and redone, {} openings\n",
            counters.ok, counters.failed, counters.opened
        );
    }
    // Past the test harness's capture: these figures are meant to be seen.
    let _ = std::io::stderr().write_all(text.as_bytes());

    assert_eq!(wrong, 0);
    assert!(answers > 0);
    for (name, counters) in engines {
        assert!(counters.opened > 3 && counters.failed > 3, "{name} met no faults: {counters:?}");
    }
    // One worker and its device threads: a loop that busy-waits for a device would use more.
    assert!(cpu < elapsed * 2, "{cpu:?} in {elapsed:?}");
    server.finish();
}

/// Every 50 ms another fault in one of the devices, or its end; the same in every run.
fn inject(simulation: &Simulation) {
    let began = Instant::now();
    let mut random = 1_u32;
    let duration = Duration::from_secs(effort(SECONDS[0], SECONDS[1]));
    while began.elapsed() < duration {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = (random >> 16) as usize;
        let engine = ENGINES[number % ENGINES.len()];
        // Half of the time all is well; otherwise the breakers would hardly ever close.
        let fault = *Injected::FAULTS.get(number / ENGINES.len() % 24).unwrap_or(&Injected::None);
        simulation.inject(engine, fault);
        if number.is_multiple_of(29) {
            simulation.reset(engine);
        }
        thread::sleep(INTERVAL);
    }
    for engine in ENGINES {
        simulation.inject(engine, Injected::None);
    }
}

/// How long after its next attempt was due the device returned to service. Attempts are made when there is work.
fn back(server: &Subject, engine: Engine, work: impl Fn()) -> Duration {
    let due = match report(server, engine) {
        Some(report) if report.state != BreakerState::Closed => report.probe,
        _ => None,
    };
    wait::until("the engine to be back", || {
        work();
        report(server, engine).is_some_and(|report| report.state == BreakerState::Closed)
    });
    // An attempt in progress when the faults ended may have failed and delayed the next one.
    let limit = Duration::from_millis(LONGEST * 12 / 10 * (GOOD + 1)) + Duration::from_secs(20);
    let returned = due.map_or(Duration::ZERO, |due| boottime().saturating_sub(due));
    assert!(returned < limit, "{returned:?}");
    returned
}
