//! What the processes of a page say about their engines.

use std::time::Duration;

use hasten_telemetry::{BreakerState, Engine, EngineClass, EngineReport, Fault, Process, Snapshot, boottime};

/// An engine of the processes that share a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineState {
    pub engine: Engine,
    pub class: EngineClass,
    /// Empty for software.
    pub device: String,
    /// The gravest that any process says; in service, if none has looked at the engine yet.
    pub breaker: BreakerState,
    /// What that breaker last opened for.
    pub fault: Option<Fault>,
    /// How long it has been so, if anybody has looked.
    pub age: Option<Duration>,
    /// When it is tried again, from now.
    pub probe: Option<Duration>,
    /// Processes that say so, of those that have looked at the engine.
    pub processes: (usize, usize),
}

impl EngineState {
    pub(crate) fn all(snapshot: &Snapshot, processes: &[Process]) -> Vec<Self> {
        let is_alive = |pid| processes.iter().any(|process| process.namespace_pid == pid);
        let now = boottime();
        let state = |info: &hasten_telemetry::EngineInfo| {
            let reports = snapshot.reports(info.engine, is_alive);
            let gravest = EngineReport::gravest(reports.values());
            let breaker = gravest.map_or(BreakerState::Closed, |report| report.state);
            let same = reports.values().filter(|report| report.state == breaker).count();
            Self {
                engine: info.engine,
                class: info.class,
                device: info.device.clone(),
                breaker,
                fault: gravest.and_then(|report| report.fault),
                age: gravest.map(|report| now.saturating_sub(report.since)),
                probe: gravest.and_then(|report| report.probe).map(|probe| probe.saturating_sub(now)),
                processes: (same, reports.len()),
            }
        };
        snapshot.engines.iter().map(state).collect()
    }
}
