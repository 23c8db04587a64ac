//! Engines in JSON.

use hasten_telemetry::{EngineCondition, Window};
use serde::Serialize;

use crate::cmd::engine::json;

#[derive(Serialize)]
pub(super) struct EngineJson {
    #[serde(flatten)]
    engine: json::EngineJson,
    operations_per_s: f64,
    total: json::TotalJson,
}

impl EngineJson {
    pub(super) fn new(engine: &EngineCondition, window: &Window) -> Self {
        Self {
            engine: json::EngineJson::new(engine),
            operations_per_s: window.per_second(window.counted[engine.engine].operations()),
            total: json::TotalJson::new(&engine.total),
        }
    }
}
