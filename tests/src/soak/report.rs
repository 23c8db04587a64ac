//! A run as a document: what was done, what was found, and the curves.

use std::time::Duration;

use hasten_bench::affinity::Placement;
use hasten_bench::host;
use serde_json::{Value, json};

use super::findings::{Findings, Growth};
use super::samples::{Holding, Sample};
use super::schedule::{Action, Engines, Event, SERVERS, Schedule};
use super::slope::Slope;
use super::{Record, Soak};
use crate::Side;

/// A kept report has at most as many points per curve as a page can show.
const POINTS: usize = 240;

/// The findings about every server, and what is held against the accelerated and the stock ones.
pub struct Report {
    pub document: Value,
    pub complaints: Vec<String>,
}

impl Report {
    #[must_use]
    pub fn of(soak: &Soak, schedule: &Schedule, records: &[Record], is_complete: bool) -> Self {
        let stations = || soak.stations.iter().zip(records);
        let found: Vec<_> = stations()
            .map(|(station, record)| (station, Findings::of(station, record, schedule.phases)))
            .collect();
        let of = |kind, side| {
            let station = found.iter().find(|(station, _)| station.kind == kind && station.side == side);
            station.map(|(_, findings)| findings)
        };
        let (mut rows, mut complaints) = (Vec::new(), Vec::new());
        for kind in SERVERS {
            let mut row = json!({ "server": kind.as_str() });
            for side in [Side::Stock, Side::Accelerated] {
                let Some(findings) = of(kind, side) else { continue };
                let stock = of(kind, Side::Stock).filter(|_| side == Side::Accelerated);
                let held = findings.complaints(side, stock, Engines::of(kind));
                row[name(side)] = figures(findings, &held);
                complaints.extend(held.into_iter().map(|what| format!("{kind} ({}): {what}", name(side))));
            }
            rows.push(row);
        }
        let document = json!({
            "workload": "soak",
            "complete": is_complete,
            "host": facts(),
            "minutes": schedule.phases.steady.as_secs_f64() / 60.0,
            "seed": schedule.seed,
            "phases": {
                "warm_s": seconds(schedule.phases.warm),
                "reloads_s": seconds(schedule.phases.reloads),
                "steady_s": seconds(schedule.phases.steady),
            },
            "rows": rows,
            "schedule": schedule.events.iter().map(event).collect::<Vec<_>>(),
            "series": stations().map(|(station, record)| {
                let mut series = series(&record.samples);
                series["server"] = station.kind.as_str().into();
                series["side"] = name(station.side).into();
                series
            }).collect::<Vec<_>>(),
        });
        Self { document, complaints }
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Stock => "stock",
        Side::Accelerated => "hasten",
    }
}

/// The machine and the programs; nothing is pinned here.
fn facts() -> Value {
    let facts = host::facts(&SERVERS, &Placement::of_this_machine());
    facts
        .0
        .into_iter()
        .filter(|(name, _)| *name != "placement")
        .map(|(name, value)| (name, json!(value)))
        .collect()
}

fn figures(findings: &Findings, held: &[String]) -> Value {
    let Findings { answers, packed, bytes, full, resumed, rude, reloads, kills, .. } = findings;
    let Findings {
        killed, nobody, without_worker, repeated, failures, workers, master, tree, peak_kib, ..
    } = findings;
    let Findings { allocated, idle_descriptors, left_over, alarms, batched, compressed, .. } = findings;
    json!({
        "answers": answers, "packed": packed, "bytes": bytes,
        "full_handshakes": full, "resumed_handshakes": resumed, "rude_clients": rude,
        "reloads": reloads, "kills": kills,
        "lost_with_a_killed_worker": killed, "came_while_there_was_none": nobody, "without_worker_s": seconds(*without_worker),
        "repeated_after_reload": repeated, "failed": failures.len(), "failures": failures,
        "workers_while_steady": growth(workers, "answer"),
        "allocated_while_steady": {
            "kib_per_minute": slope(allocated.kib_per_minute),
            "bytes_per_answer": slope(allocated.bytes_per_step),
        },
        "master_while_reloading": growth(master, "reload"),
        "all_while_reloading": growth(tree, "reload"),
        "peak_kib": peak_kib,
        "idle_descriptors": { "before": idle_descriptors.0, "after": idle_descriptors.1 },
        "old_workers_left": left_over, "alarms": alarms,
        "batched_operations": batched, "compressed_chunks": compressed,
        "held_against_it": held,
    })
}

fn slope(slope: Option<Slope>) -> Value {
    match slope {
        Some(Slope { value, low, high }) => {
            json!({ "value": round(value), "low": round(low), "high": round(high) })
        }
        None => Value::Null,
    }
}

fn growth(growth: &Growth, step: &str) -> Value {
    json!({
        "kib_per_minute": slope(growth.kib_per_minute),
        "descriptors_per_minute": slope(growth.descriptors_per_minute),
        (format!("bytes_per_{step}")): slope(growth.bytes_per_step),
        (format!("descriptors_per_{step}")): slope(growth.descriptors_per_step),
    })
}

/// No figure here is exact to more than a few digits.
fn round(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e3).round() / 1e3
}

fn event(event: &Event) -> Value {
    let (what, which) = match event.action {
        Action::Reload => ("reload", None),
        Action::Kill(_) => ("kill", None),
        Action::Disable(engine) => ("disable", Some(engine)),
        Action::Enable(engine) => ("enable", Some(engine)),
    };
    json!({ "at_s": seconds(event.at), "server": event.server.as_str(), "action": what, "engine": which })
}

/// Curves of the whole tree, thinned.
fn series(samples: &[Sample]) -> Value {
    let every = samples.len().div_ceil(POINTS).max(1);
    let of = |of: &dyn Fn(&Sample) -> Value| samples.iter().step_by(every).map(of).collect::<Vec<_>>();
    json!({
        "at_s": of(&|sample| json!(sample.at.as_secs())),
        "answers": of(&|sample| json!(sample.answers)),
        "generation": of(&|sample| json!(sample.generation)),
        "workers": of(&|sample| json!(sample.workers().len())),
        "memory_kib": of(&|sample| json!(sample.sum(|holding: &Holding| holding.proportional_kib))),
        "allocated_kib": of(&|sample| {
            let workers = sample.workers().iter().map(|worker| worker.allocated);
            json!(workers.sum::<Option<u64>>().map(|bytes| bytes / 1024))
        }),
        "master_kib": of(&|sample| json!(sample.master().resident_kib)),
        "descriptors": of(&|sample| json!(sample.descriptors())),
    })
}
