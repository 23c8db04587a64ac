//! The engines of a program: whether they are in service, and what they did.

use std::time::Duration;

use hasten_telemetry::{BreakerState, Engine, EngineCounters, EngineInfo, EngineReport, Process, Snapshot};

use crate::cmd::engine::programs::Condition;

/// An engine at the moment of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cmd::top) struct EngineStatus {
    pub(in crate::cmd::top) engine: Engine,
    pub(in crate::cmd::top) class: &'static str,
    /// Empty for software.
    pub(in crate::cmd::top) device: String,
    /// What speaks for all processes; `None` where none has used the engine so far.
    pub(in crate::cmd::top) report: Option<EngineReport>,
    /// How many processes are in that state, of how many that have used the engine.
    pub(in crate::cmd::top) processes: (usize, usize),
    pub(in crate::cmd::top) total: EngineCounters,
    /// Time since boot at which this was so.
    now: Duration,
}

impl EngineStatus {
    pub(super) fn of(info: &EngineInfo, snapshot: &Snapshot, alive: &[Process], now: Duration) -> Self {
        let is_alive = |pid| alive.iter().any(|process| process.namespace_pid == pid);
        let reports: Vec<EngineReport> = snapshot.reports(info.engine, is_alive).into_values().collect();
        let Condition { gravest, processes } = Condition::of(&reports);
        Self {
            engine: info.engine,
            class: info.class.as_str(),
            device: info.device.clone(),
            report: gravest,
            processes,
            total: snapshot.total()[info.engine],
            now,
        }
    }

    /// The name, and the device where there is one.
    pub(in crate::cmd::top) fn title(&self) -> String {
        match self.device.as_str() {
            "" => self.engine.to_string(),
            device => format!("{} on {device}", self.engine),
        }
    }

    pub(in crate::cmd::top) fn state(&self) -> Option<BreakerState> {
        self.report.map(|report| report.state)
    }

    /// The state in words, with how many processes where they do not agree.
    pub(in crate::cmd::top) fn state_text(&self) -> String {
        match (self.state(), self.processes) {
            (None, _) => "unused".to_owned(),
            (Some(state), (some, all)) if some < all => format!("{state} {some}/{all}"),
            (Some(state), _) => state.to_string(),
        }
    }

    /// How long it has been so.
    pub(in crate::cmd::top) fn age(&self) -> Option<Duration> {
        self.report.map(|report| self.now.saturating_sub(report.since))
    }

    /// When an open breaker tries the engine again.
    pub(in crate::cmd::top) fn retry(&self) -> Option<Duration> {
        let open = self.report.filter(|report| report.state == BreakerState::Open);
        open.and_then(|report| report.probe).map(|probe| probe.saturating_sub(self.now))
    }
}
