//! The state of an engine in words.

use hasten_telemetry::{BreakerState, EngineCondition};

/// The state in words, and the number of processes in it if they differ. A user who disables an engine sees that at
/// once, even before a process tries to use it again.
pub(in crate::cmd) fn in_words(engine: &EngineCondition, disabled_by_hand: bool) -> String {
    match (engine.state(), engine.processes) {
        (state, _) if disabled_by_hand && state != Some(BreakerState::Disabled) => {
            "disabled (from the next use)".to_owned()
        }
        (None, _) => "unused".to_owned(),
        (Some(state), (some, all)) if some < all => format!("{} in {some} of {all}", state.in_words()),
        (Some(state), _) => state.in_words().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hasten_telemetry::{Engine, EngineClass, EngineCounters, EngineReport};

    use super::*;

    fn engine(state: Option<BreakerState>, processes: (usize, usize)) -> EngineCondition {
        let report =
            state.map(|state| EngineReport { state, fault: None, since: Duration::ZERO, probe: None });
        EngineCondition {
            engine: Engine::Isal,
            class: EngineClass::Software,
            device: String::new(),
            report,
            processes,
            total: EngineCounters::default(),
            now: Duration::ZERO,
        }
    }

    #[test]
    fn no_state_reads_as_its_opposite() {
        use BreakerState::{Closed, Disabled, HalfOpen, Open};
        for (state, processes, by_hand, words) in [
            (Some(Closed), (2, 2), false, "in service"),
            (Some(Open), (1, 2), false, "resting in 1 of 2"),
            (Some(HalfOpen), (1, 1), false, "on trial"),
            (Some(Disabled), (2, 2), true, "disabled"),
            (Some(Disabled), (1, 2), true, "disabled in 1 of 2"),
            (Some(Closed), (2, 2), true, "disabled (from the next use)"),
            (None, (0, 0), true, "disabled (from the next use)"),
            (None, (0, 0), false, "unused"),
        ] {
            assert_eq!(in_words(&engine(state, processes), by_hand), words);
        }
    }
}
