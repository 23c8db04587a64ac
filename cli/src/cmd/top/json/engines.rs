//! Engines in JSON.

use serde::Serialize;

use crate::cmd::top::state::{EngineStatus, Window};

#[derive(Serialize)]
pub(super) struct EngineJson {
    name: &'static str,
    class: &'static str,
    device: Option<String>,
    state: Option<&'static str>,
    processes_in_state: usize,
    processes_reporting: usize,
    since_s: Option<f64>,
    fault: Option<&'static str>,
    retry_in_s: Option<f64>,
    operations_per_s: f64,
    total: EngineTotalJson,
}

#[derive(Serialize)]
struct EngineTotalJson {
    operations: u64,
    failures: u64,
    bytes_in: u64,
    bytes_out: u64,
    busy_s: f64,
    opened: u64,
}

impl EngineJson {
    pub(super) fn new(engine: &EngineStatus, window: &Window) -> Self {
        let total = &engine.total;
        Self {
            name: engine.engine.as_str(),
            class: engine.class,
            device: (!engine.device.is_empty()).then(|| engine.device.clone()),
            state: engine.state().map(|state| state.as_str()),
            processes_in_state: engine.processes.0,
            processes_reporting: engine.processes.1,
            since_s: engine.age().map(|age| age.as_secs_f64()),
            fault: engine.report.and_then(|report| report.fault).map(|fault| fault.as_str()),
            retry_in_s: engine.retry().map(|left| left.as_secs_f64()),
            operations_per_s: window.per_second(window.counted[engine.engine].operations()),
            total: EngineTotalJson {
                operations: total.operations(),
                failures: total.failed,
                bytes_in: total.bytes_in,
                bytes_out: total.bytes_out,
                busy_s: total.busy_ns as f64 / 1e9,
                opened: total.opened,
            },
        }
    }
}
