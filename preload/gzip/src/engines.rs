//! The engines as operators see them: what they did and whether they are in service, on the counter page, and the switches
//! on the page beside it.

use std::sync::OnceLock;

use hasten_deflate::engine::EngineKind;
use hasten_deflate::stream::Tally;
use hasten_deflate::{breaker, select};
use hasten_telemetry::{BreakerState, Engine, EngineClass, EngineWork, Fault, Slot};

/// With their rows on the page. The original needs none: it is what is left.
const ENGINES: [(EngineKind, Engine); 3] = [
    (EngineKind::Isal, Engine::Isal),
    (EngineKind::Libdeflate, Engine::Libdeflate),
    (EngineKind::ZlibRs, Engine::ZlibRs),
];

/// Says which engines this process has, and has the switches looked at.
pub(crate) fn register() {
    let page = hasten_telemetry::page();
    for (kind, engine) in ENGINES {
        if select::is_allowed(kind) {
            page.register(engine, EngineClass::Software, "", 0);
        }
    }
    boot_ns();
    select::consult(is_disabled);
}

fn is_disabled(kind: EngineKind) -> bool {
    ENGINES.iter().any(|(known, engine)| *known == kind && hasten_telemetry::is_disabled(*engine))
}

/// Tells of every engine whether it is in service. While nothing changes this reads a few words.
pub(crate) fn report(slot: &Slot) {
    for (kind, engine) in ENGINES {
        if !breaker::has_opened() && !hasten_telemetry::is_disabled(engine) {
            slot.engine_state(engine, BreakerState::Closed, None, 0);
            continue;
        }
        let view = breaker::view(kind);
        let (state, probe) = match BreakerState::from_index(view.state as usize) {
            _ if hasten_telemetry::is_disabled(engine) => (BreakerState::Disabled, 0),
            Some(BreakerState::Open) => (BreakerState::Open, boot_ns() + view.probe_ns),
            Some(state) => (state, 0),
            None => (BreakerState::Closed, 0),
        };
        let fault = view.fault.and_then(|fault| Fault::from_index(fault as usize - 1));
        slot.engine_state(engine, state, fault, probe);
    }
}

/// Adds what the engines did.
pub(crate) fn count(slot: &Slot, tally: &Tally) {
    for (kind, engine) in ENGINES {
        let work = &tally.engines[kind as usize];
        // Nearly all calls ask one engine, or only gather input.
        if work.busy_ns == 0 && work.chunks == 0 {
            continue;
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
}

/// When the breakers' clock began, on the page's.
fn boot_ns() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let boot = u64::try_from(hasten_telemetry::boottime().as_nanos()).unwrap_or(u64::MAX);
        boot.saturating_sub(breaker::now_ns())
    })
}

const _: () = assert!(EngineKind::ALL.len() == ENGINES.len() + 1);

#[cfg(test)]
mod tests {
    use hasten_deflate::breaker::State;

    use super::*;

    #[test]
    fn an_engine_has_one_name_everywhere() {
        for (kind, engine) in ENGINES {
            assert_eq!(kind.as_str(), engine.as_str());
        }
        for fault in breaker::Fault::ALL {
            let shown = Fault::from_index(fault as usize - 1).map(Fault::as_str);
            assert_eq!(shown, Some(fault.as_str()));
        }
        for state in [State::Closed, State::Open, State::HalfOpen, State::Disabled] {
            let shown = BreakerState::from_index(state as usize).map(BreakerState::as_str);
            assert_eq!(shown, Some(state.as_str()));
        }
    }
}
