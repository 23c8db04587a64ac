//! The engines as operators see them: their work and whether they are in service, on the counter page, and the switches
//! on the page next to it.

use std::sync::atomic::{AtomicU32, Ordering};

use hasten_deflate::devices::{Active, DeviceEngine};
use hasten_deflate::engine::EngineKind;
use hasten_deflate::engines::Engines;
use hasten_deflate::stream::{Tally, Work};
use hasten_device::watch;
use hasten_telemetry::{BreakerState, Engine, EngineClass, EngineWork, Event, Reason, Slot, slot};

use crate::config;

/// The engines of this process.
pub static ENGINES: Engines = Engines::new();

/// The software engines, with their rows on the page. Devices, if any, are asked first.
fn engines() -> impl Iterator<Item = (EngineKind, Engine)> {
    EngineKind::ALL.into_iter().filter_map(|kind| Some((kind, kind.name()?)))
}

/// Publishes which engines this process has, and makes them obey the switches.
pub fn register() {
    let page = hasten_telemetry::page();
    if config::get().verify {
        page.set_note("every result is inflated again and compared");
    }
    for (kind, engine) in engines() {
        if ENGINES.is_allowed(kind) {
            page.register(engine, EngineClass::Software, "", 0);
        }
    }
    ENGINES.disable_if(is_disabled);
    ENGINES.devices.disable_if(|device| hasten_telemetry::is_disabled(device.name()));
    watch::when_opened(tell_of_devices);
}

/// Called by a thread that looks after a device while the program makes no requests.
fn tell_of_devices() {
    let slot = slot();
    for active in ENGINES.devices.active() {
        report_device(slot, active);
        let opened = active.unreported();
        slot.engine_ran(active.engine.name(), &EngineWork { opened, ..EngineWork::default() });
        slot.event_n(Event::BreakerOpened, opened);
    }
}

fn is_disabled(kind: EngineKind) -> bool {
    kind.name().is_some_and(hasten_telemetry::is_disabled)
}

/// Reports for every engine whether it is in service. As long as nothing changes, this only reads a few words.
pub fn report(slot: &Slot) {
    for (kind, engine) in engines() {
        if !ENGINES.breakers.has_opened() && !hasten_telemetry::is_disabled(engine) {
            slot.engine_state(engine, BreakerState::Closed, None, 0);
            continue;
        }
        let view = ENGINES.breakers.view(kind);
        let (state, probe) = view.shown(hasten_telemetry::is_disabled(engine));
        slot.engine_state(engine, state, view.fault, probe);
    }
    for active in ENGINES.devices.active() {
        report_device(slot, active);
    }
}

fn report_device(slot: &Slot, active: &Active) {
    let engine = active.engine.name();
    make_known(active, engine);
    let view = active.view();
    let (state, probe) = view.shown(hasten_telemetry::is_disabled(engine));
    slot.engine_state(engine, state, view.fault, probe);
}

/// Devices are discovered with the first input meant for one, in any of the processes that share the page.
fn make_known(active: &Active, engine: Engine) {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    let bit = 1 << active.engine as u32;
    if KNOWN.load(Ordering::Relaxed) & bit == 0 && KNOWN.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let timeout = u64::try_from(active.timeout.as_nanos()).unwrap_or(u64::MAX);
        hasten_telemetry::page().register(engine, EngineClass::Device, &active.devices, timeout);
    }
}

/// Adds the work of a call, which took `bytes_in` and gave `bytes_out`, to this thread's counters.
pub fn count(tally: &Tally, bytes_in: u64, bytes_out: u64) {
    let slot = slot();
    let add = |event, n: u64| {
        if n > 0 {
            slot.event_n(event, n);
        }
    };
    add(Event::DeflateBytesIn, bytes_in);
    add(Event::DeflateBytesOut, bytes_out);
    for kind in EngineKind::ALL {
        add(bytes_of(kind), tally.engines[kind as usize].bytes_in);
    }
    add(Event::DeflateHasten, tally.plain);
    add(Event::DeflateVerified, tally.verified);
    add(Event::DeflateBuffered, tally.buffered);
    add(Event::DeflateSavedNs, tally.saved_ns);
    count_engines(slot, tally);
    report(slot);
    if tally.mismatches > 0 {
        slot.event_n(Event::DeflateMismatch, tally.mismatches);
        slot.bypass_n(Reason::BreakerOpen, tally.mismatches);
    }
    add(Event::BreakerOpened, tally.engines.iter().chain(&tally.devices).map(|work| work.opened).sum());
}

/// The event that counts an engine's input.
const fn bytes_of(kind: EngineKind) -> Event {
    match kind {
        EngineKind::Isal => Event::DeflateIsal,
        EngineKind::Libdeflate => Event::DeflateLibdeflate,
        EngineKind::Bucket => Event::DeflateBucket,
        EngineKind::ZlibRs => Event::DeflateZlibRs,
        EngineKind::Original => Event::DeflateOriginal,
    }
}

fn count_engines(slot: &Slot, tally: &Tally) {
    for (kind, engine) in engines() {
        add(slot, engine, &tally.engines[kind as usize]);
    }
    for device in DeviceEngine::ALL {
        add(slot, device.name(), &tally.devices[device as usize]);
    }
}

fn add(slot: &Slot, engine: Engine, work: &Work) {
    // Nearly all calls use one engine, or only gather input.
    if work.busy_ns == 0 && work.chunks == 0 {
        return;
    }
    slot.engine_ran(
        engine,
        &EngineWork {
            ok: work.chunks,
            failed: work.wrong,
            bytes_in: work.bytes_in,
            bytes_out: work.bytes_out,
            busy_ns: work.busy_ns,
            opened: work.opened,
        },
    );
}
