//! Everything one look has found, as JSON: the same series as the metrics, plus what only people read.

use std::time::UNIX_EPOCH;

use hasten_telemetry::{BreakerState, Doubt, EngineCondition, SuspensionShare};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::catalogue::Kind;
use crate::collector::{DeviceState, Look, Unreadable};
use crate::encode::{Sample, Value};
use crate::families::families;
use crate::totals::{Key, Program};
use crate::warning::{Warning, warnings};

/// The document's version: names stay, new ones may appear.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Status<'a> {
    schema: u32,
    version: &'static str,
    time_unix_s: f64,
    denied_processes: usize,
    standby_processes: usize,
    programs: Vec<ProgramView<'a>>,
    devices: Vec<DeviceView<'a>>,
    unreadable: Vec<UnreadableView<'a>>,
    warnings: Vec<Warning>,
    series: Vec<SeriesView>,
}

#[derive(Serialize)]
struct ProgramView<'a> {
    program: &'a str,
    accelerator: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    container_id: &'a str,
    processes: usize,
    pages: Vec<PageView<'a>>,
}

#[derive(Serialize)]
struct PageView<'a> {
    processes: usize,
    note: &'a str,
    started_unix_s: u64,
    engines: Vec<EngineView<'a>>,
    suspension: Vec<SuspensionView>,
}

#[derive(Serialize)]
struct SuspensionView {
    state: &'static str,
    doubt: Option<&'static str>,
    age_s: f64,
    processes: usize,
    of_processes: usize,
}

#[derive(Serialize)]
struct EngineView<'a> {
    engine: &'static str,
    class: &'static str,
    device: &'a str,
    state: &'static str,
    fault: Option<&'static str>,
    age_s: Option<f64>,
    probe_s: Option<f64>,
    processes: usize,
    of_processes: usize,
}

#[derive(Serialize)]
struct DeviceView<'a> {
    device: &'a str,
    kind: &'static str,
    model: &'a str,
    driver: Option<&'a str>,
    state: Option<&'a str>,
    numa: Option<i32>,
    up: bool,
    utilization: Vec<(&'a str, f64)>,
}

#[derive(Serialize)]
struct UnreadableView<'a> {
    program: &'a str,
    pid: u32,
    reason: &'static str,
    message: &'a str,
    fix: &'a str,
}

/// A series under its name in queries.
#[derive(Serialize)]
struct SeriesView {
    name: String,
    labels: Map<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// For a histogram: each bucket's upper bound and count.
    #[serde(skip_serializing_if = "Option::is_none")]
    buckets: Option<Vec<(f64, u64)>>,
}

pub(crate) fn json(look: &Look) -> String {
    let at = look.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let status = Status {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        time_unix_s: at.as_secs_f64(),
        denied_processes: look.denied,
        standby_processes: look.standing_by,
        programs: look.programs.iter().map(|(key, program)| ProgramView::of(key, program)).collect(),
        devices: look.devices.iter().map(DeviceView::of).collect(),
        unreadable: look.unreadable.iter().map(UnreadableView::of).collect(),
        warnings: warnings(look),
        series: series(look),
    };
    serde_json::to_string(&status).expect("names are texts and numbers are finite")
}

fn series(look: &Look) -> Vec<SeriesView> {
    let of = |about: &crate::Description, sample: Sample| {
        let labels = sample.labels.into_iter().map(|(name, text)| (name.to_owned(), Json::from(text)));
        let (value, buckets) = match sample.value {
            Value::Count(count) => (Some(Json::from(count)), None),
            Value::Number(number) => (Some(Json::from(number)), None),
            Value::Histogram { buckets, .. } => (None, Some(buckets)),
        };
        SeriesView { name: about.metric(), labels: labels.collect(), value, buckets }
    };
    let families = families(look).into_iter().filter(|family| family.about.kind != Kind::Info);
    families
        .flat_map(|family| family.samples.into_iter().map(move |sample| of(family.about, sample)))
        .collect()
}

impl<'a> ProgramView<'a> {
    fn of(key: &'a Key, program: &'a Program) -> Self {
        let page = |page: &'a crate::Live| PageView {
            processes: page.processes,
            note: &page.note,
            started_unix_s: page.started.as_secs(),
            engines: page.engines.iter().map(EngineView::of).collect(),
            suspension: page.suspension.iter().map(SuspensionView::of).collect(),
        };
        Self {
            program: &key.program,
            accelerator: &key.accelerator,
            container_id: &key.container,
            processes: program.live.iter().map(|page| page.processes).sum(),
            pages: program.live.iter().map(page).collect(),
        }
    }
}

impl SuspensionView {
    fn of(share: &SuspensionShare) -> Self {
        Self {
            state: share.report.state.as_str(),
            doubt: share.report.doubt.map(Doubt::as_str),
            age_s: share.age().as_secs_f64(),
            processes: share.processes,
            of_processes: share.of,
        }
    }
}

impl<'a> EngineView<'a> {
    fn of(state: &'a EngineCondition) -> Self {
        Self {
            engine: state.engine.as_str(),
            class: state.class.as_str(),
            device: &state.device,
            state: state.state().unwrap_or(BreakerState::Closed).as_str(),
            fault: state.fault().map(|fault| fault.as_str()),
            age_s: state.age().map(|age| age.as_secs_f64()),
            probe_s: state.retry().map(|probe| probe.as_secs_f64()),
            processes: state.processes.0,
            of_processes: state.processes.1,
        }
    }
}

impl<'a> DeviceView<'a> {
    fn of(DeviceState { device, health, .. }: &'a DeviceState) -> Self {
        Self {
            device: &device.address,
            kind: device.kind.label(),
            model: device.model,
            driver: device.driver.as_deref(),
            state: device.state.as_deref(),
            numa: device.numa_node,
            up: health.up,
            utilization: health.utilization.iter().map(|part| (part.part.as_str(), part.ratio)).collect(),
        }
    }
}

impl<'a> UnreadableView<'a> {
    fn of(page: &'a Unreadable) -> Self {
        let Unreadable { program, pid, reason, message, fix } = page;
        Self { program, pid: *pid, reason: reason.as_str(), message, fix }
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
