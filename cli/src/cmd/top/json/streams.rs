//! Compression and decompression in the JSON document.

use hasten_telemetry::{Counters, Window};
use serde::Serialize;

use super::seconds;
use crate::cmd::top::state::{Direction, ENGINES, Traffic};

#[derive(Serialize)]
pub(super) struct StreamsJson {
    streams_per_s: f64,
    bytes_in_per_s: f64,
    bytes_out_per_s: f64,
    verified_bytes_per_s: f64,
    ratio: Option<f64>,
    saved_cores: f64,
    engines: Vec<EngineJson>,
    total: TotalJson,
}

#[derive(Serialize)]
struct EngineJson {
    name: &'static str,
    bytes_per_s: f64,
    share: Option<f64>,
    total_bytes: u64,
}

#[derive(Serialize)]
struct TotalJson {
    streams: u64,
    bytes_in: u64,
    bytes_out: u64,
    verified_bytes: u64,
    saved_cpu_s: f64,
}

impl StreamsJson {
    pub(super) fn new(direction: Direction, window: &Window, total: &Counters) -> Self {
        let (counted, total) = (direction.of(&window.counted), direction.of(total));
        Self {
            streams_per_s: window.per_second(counted.streams),
            bytes_in_per_s: window.per_second(counted.bytes_in),
            bytes_out_per_s: window.per_second(counted.bytes_out),
            verified_bytes_per_s: window.per_second(counted.verified),
            ratio: counted.ratio(direction),
            saved_cores: window.per_second(counted.saved_ns) / 1e9,
            engines: (0..ENGINES.len())
                .map(|engine| EngineJson::new(engine, window, &counted, &total))
                .collect(),
            total: TotalJson::new(&total),
        }
    }
}

impl EngineJson {
    fn new(engine: usize, window: &Window, counted: &Traffic, total: &Traffic) -> Self {
        Self {
            name: ENGINES[engine],
            bytes_per_s: window.per_second(counted.by_engine[engine]),
            share: counted.share(engine),
            total_bytes: total.by_engine[engine],
        }
    }
}

impl TotalJson {
    fn new(total: &Traffic) -> Self {
        Self {
            streams: total.streams,
            bytes_in: total.bytes_in,
            bytes_out: total.bytes_out,
            verified_bytes: total.verified,
            saved_cpu_s: seconds(total.saved_ns),
        }
    }
}
