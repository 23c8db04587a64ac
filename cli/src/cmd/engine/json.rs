//! An engine in JSON, for both `hasten engine list` and `hasten top`.

use hasten_telemetry::{EngineCondition, EngineCounters};
use serde::Serialize;

#[derive(Serialize)]
pub(in crate::cmd) struct EngineJson {
    name: &'static str,
    class: &'static str,
    device: Option<String>,
    /// `null` if no process has used it so far.
    state: Option<&'static str>,
    /// Processes in that state, among those that have used the engine.
    processes_in_state: usize,
    processes_reporting: usize,
    since_s: Option<f64>,
    /// The fault for which its breaker last opened.
    fault: Option<&'static str>,
    /// When an open breaker tries it again.
    retry_in_s: Option<f64>,
}

/// Since the start.
#[derive(Serialize)]
pub(in crate::cmd) struct TotalJson {
    operations: u64,
    failures: u64,
    bytes_in: u64,
    bytes_out: u64,
    busy_s: f64,
    opened: u64,
}

impl EngineJson {
    pub(in crate::cmd) fn new(engine: &EngineCondition) -> Self {
        Self {
            name: engine.engine.as_str(),
            class: engine.class.as_str(),
            device: (!engine.device.is_empty()).then(|| engine.device.clone()),
            state: engine.state().map(|state| state.as_str()),
            processes_in_state: engine.processes.0,
            processes_reporting: engine.processes.1,
            since_s: engine.age().map(|age| age.as_secs_f64()),
            fault: engine.fault().map(|fault| fault.as_str()),
            retry_in_s: engine.retry().map(|left| left.as_secs_f64()),
        }
    }
}

impl TotalJson {
    pub(in crate::cmd) fn new(total: &EngineCounters) -> Self {
        Self {
            operations: total.operations(),
            failures: total.failed,
            bytes_in: total.bytes_in,
            bytes_out: total.bytes_out,
            busy_s: total.busy_ns as f64 / 1e9,
            opened: total.opened,
        }
    }
}
