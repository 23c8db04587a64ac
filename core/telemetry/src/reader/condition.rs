//! An engine across all processes of a page: their combined reports.

use super::{EngineCounters, EngineInfo, EngineReport, Snapshot};
use crate::{BreakerState, Engine, EngineClass, Fault};
use std::time::Duration;

/// An engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCondition {
    pub engine: Engine,
    pub class: EngineClass,
    /// Empty for software.
    pub device: String,
    /// The report that speaks for all processes; `None` if none has used the engine so far.
    pub report: Option<EngineReport>,
    /// How many processes are in that state, out of those that have used the engine.
    pub processes: (usize, usize),
    /// Its counters since the start.
    pub total: EngineCounters,
    /// Time since boot at which this was the state.
    pub now: Duration,
}

impl EngineCondition {
    /// The conditions of all engines of a page, from the reports of live processes.
    pub fn all(snapshot: &Snapshot, is_alive: impl Fn(u32) -> bool, now: Duration) -> Vec<Self> {
        let condition = |info: &EngineInfo| {
            let reports: Vec<_> = snapshot.reports(info.engine, &is_alive).into_values().collect();
            let report = EngineReport::gravest(&reports);
            let state = report.map(|report| report.state);
            let same = reports.iter().filter(|one| Some(one.state) == state).count();
            Self {
                engine: info.engine,
                class: info.class,
                device: info.device.clone(),
                report,
                processes: (same, reports.len()),
                total: snapshot.total()[info.engine],
                now,
            }
        };
        snapshot.engines.iter().map(condition).collect()
    }

    /// The name, and the device if there is one.
    pub fn title(&self) -> String {
        match self.device.as_str() {
            "" => self.engine.to_string(),
            device => format!("{} on {device}", self.engine),
        }
    }

    pub fn state(&self) -> Option<BreakerState> {
        self.report.map(|report| report.state)
    }

    /// What its breaker last opened for.
    pub fn fault(&self) -> Option<Fault> {
        self.report.and_then(|report| report.fault)
    }

    /// How long this has been the state.
    pub fn age(&self) -> Option<Duration> {
        self.report.map(|report| self.now.saturating_sub(report.since))
    }

    /// The time until an open breaker tries the engine again.
    pub fn retry(&self) -> Option<Duration> {
        let open = self.report.filter(|report| report.state == BreakerState::Open);
        open.and_then(|report| report.probe).map(|probe| probe.saturating_sub(self.now))
    }
}
