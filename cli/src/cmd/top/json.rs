//! `hasten top --json`: names are stable and documented in docs/telemetry.md.

mod engines;
mod streams;

use hasten_telemetry::{
    Algorithm, AlgorithmCounters, Counters, Doubt, Event, LANES, Reason, Snapshot, SuspensionShare, Tiers,
    Warning, Window,
};
use serde::Serialize;

use self::engines::EngineJson;
use self::streams::StreamsJson;
use super::sampler::Missing;
use super::state::{Condition, Direction, Program, State};

/// Raised when a name is removed or changes its meaning; not when one is added.
const SCHEMA: u32 = 1;

pub(super) fn render(state: &State, missing: &Missing) -> String {
    let document = Document {
        schema: SCHEMA,
        denied_processes: missing.denied,
        standby_processes: missing.standing_by,
        failed_processes: missing.failed.len(),
        programs: state.programs().iter().map(ProgramJson::new).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).expect("plain data with string keys");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    denied_processes: usize,
    standby_processes: usize,
    failed_processes: usize,
    programs: Vec<ProgramJson>,
}

#[derive(Serialize)]
struct ProgramJson {
    program: String,
    page_inode: u64,
    processes: Vec<ProcessJson>,
    /// Why there are no counters; they are absent then.
    error: Option<String>,
    #[serde(flatten)]
    counters: Option<CountersJson>,
    warnings: Vec<WarningJson>,
}

#[derive(Serialize)]
struct ProcessJson {
    pid: u32,
    namespace_pid: u32,
    operations_per_s: f64,
    /// In words; null if the process has not reported it.
    suspension: Option<String>,
    /// Absent if it has one kind of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<TierJson>,
}

/// Where a process has its memory.
#[derive(Serialize)]
struct TierJson {
    near_bytes: u64,
    far_bytes: u64,
    threshold: u64,
    target_share: f64,
    share: f64,
}

#[derive(Serialize)]
struct CountersJson {
    accelerator: String,
    note: String,
    started_unix_s: f64,
    uptime_s: f64,
    interval_s: f64,
    operations_per_s: f64,
    cpu_saved: CpuJson,
    #[serde(flatten)]
    work: WorkJson,
    engines: Vec<EngineJson>,
    reasons: Vec<CountJson>,
    events: Vec<CountJson>,
}

/// An accelerator's information beyond what all have.
#[derive(Serialize)]
#[serde(untagged)]
enum WorkJson {
    Operations { share: Option<ShareJson>, suspension: Vec<SuspensionJson>, algorithms: Vec<AlgorithmJson> },
    Streams { deflate: StreamsJson, inflate: StreamsJson },
}

#[derive(Serialize)]
struct ShareJson {
    batched: f64,
    single: f64,
    scalar: f64,
    bypassed: f64,
}

/// Processes with the same report on suspended handshakes.
#[derive(Serialize)]
struct SuspensionJson {
    state: &'static str,
    /// Why it is off.
    doubt: Option<&'static str>,
    processes_in_state: usize,
    since_s: f64,
}

#[derive(Serialize)]
struct CpuJson {
    cores: f64,
    total_s: f64,
}

#[derive(Serialize)]
struct AlgorithmJson {
    name: &'static str,
    per_s: RatesJson,
    total: TotalsJson,
    average_lanes: Option<f64>,
    break_even: Option<BreakEvenJson>,
}

#[derive(Serialize)]
struct RatesJson {
    batched: f64,
    single: f64,
    scalar: f64,
    failed: f64,
    batches: f64,
    batches_by_lanes: [f64; LANES],
}

#[derive(Serialize)]
struct TotalsJson {
    batched: u64,
    single: u64,
    scalar: u64,
    failed: u64,
    batches: u64,
    batches_by_lanes: [u64; LANES],
    batch_cpu_s: f64,
    saved_cpu_s: f64,
}

#[derive(Serialize)]
struct BreakEvenJson {
    /// Above 8: a batch never pays.
    lanes: u64,
    scalar_us: f64,
    batch_us: f64,
}

#[derive(Serialize)]
struct CountJson {
    name: &'static str,
    per_s: f64,
    total: u64,
}

#[derive(Serialize)]
struct WarningJson {
    severity: &'static str,
    code: &'static str,
    message: String,
    fix: String,
}

impl ProgramJson {
    fn new(program: &Program) -> Self {
        let window = program.interval();
        let rate = |pid| window.as_ref().map_or(0.0, |window| window.per_second(program.operations_of(pid)));
        let (suspensions, tiers) = (program.suspensions(), program.tiers());
        let process = |process: &hasten_telemetry::Process| ProcessJson {
            pid: process.pid,
            namespace_pid: process.namespace_pid,
            operations_per_s: rate(process.namespace_pid),
            suspension: suspensions.get(&process.namespace_pid).map(ToString::to_string),
            tier: tiers.get(&process.namespace_pid).map(TierJson::new),
        };
        let (error, counters) = match program.condition() {
            Condition::Unreadable(error) => (Some(error.to_string()), None),
            Condition::Readable(snapshot) => {
                (None, window.as_ref().map(|window| CountersJson::new(program, snapshot, window)))
            }
        };
        Self {
            program: program.name().to_owned(),
            page_inode: program.inode(),
            processes: program.processes().iter().map(process).collect(),
            error,
            counters,
            warnings: program.warnings().into_iter().map(WarningJson::new).collect(),
        }
    }
}

impl TierJson {
    fn new(tiers: &Tiers) -> Self {
        Self {
            near_bytes: tiers.near,
            far_bytes: tiers.far,
            threshold: tiers.threshold,
            target_share: tiers.target_share(),
            share: tiers.share(),
        }
    }
}

impl CountersJson {
    fn new(program: &Program, snapshot: &Snapshot, window: &Window) -> Self {
        let total = program.total();
        Self {
            accelerator: snapshot.accelerator.clone(),
            note: snapshot.note.clone(),
            started_unix_s: snapshot.started.as_secs_f64(),
            uptime_s: program.uptime().as_secs_f64(),
            interval_s: window.elapsed.as_secs_f64(),
            operations_per_s: window.per_second(window.operations()),
            cpu_saved: CpuJson { cores: window.cores_saved(), total_s: seconds(total.saved_ns()) },
            work: WorkJson::new(program, snapshot, window, &total),
            engines: program.engines().iter().map(|engine| EngineJson::new(engine, window)).collect(),
            reasons: Reason::ALL
                .map(|r| CountJson::new(r.as_str(), window, window.counted[r], total[r]))
                .into(),
            events: Event::ALL
                .map(|e| CountJson::new(e.as_str(), window, window.counted[e], total[e]))
                .into(),
        }
    }
}

impl WorkJson {
    fn new(program: &Program, snapshot: &Snapshot, window: &Window, total: &Counters) -> Self {
        if program.counts_streams() {
            let streams = |direction| StreamsJson::new(direction, window, total);
            return Self::Streams {
                deflate: streams(Direction::Deflate),
                inflate: streams(Direction::Inflate),
            };
        }
        Self::Operations {
            share: window.share().map(|share| ShareJson {
                batched: share.batched,
                single: share.single,
                scalar: share.scalar,
                bypassed: share.bypassed,
            }),
            suspension: program.suspension().iter().map(SuspensionJson::new).collect(),
            algorithms: Algorithm::ALL.map(|a| AlgorithmJson::new(a, snapshot, window, total)).into(),
        }
    }
}

impl SuspensionJson {
    fn new(share: &SuspensionShare) -> Self {
        Self {
            state: share.report.state.as_str(),
            doubt: share.report.doubt.map(Doubt::as_str),
            processes_in_state: share.processes,
            since_s: share.age().as_secs_f64(),
        }
    }
}

impl AlgorithmJson {
    fn new(algorithm: Algorithm, snapshot: &Snapshot, window: &Window, total: &Counters) -> Self {
        let counted = &window.counted[algorithm];
        Self {
            name: algorithm.as_str(),
            per_s: RatesJson {
                batched: window.per_second(counted.batched),
                single: window.per_second(counted.single),
                scalar: window.per_second(counted.scalar),
                failed: window.per_second(counted.failed),
                batches: window.per_second(counted.batches),
                batches_by_lanes: counted.lanes.map(|batches| window.per_second(batches)),
            },
            total: TotalsJson::new(&total[algorithm]),
            average_lanes: counted.average_lanes(),
            break_even: snapshot.break_even(algorithm).map(|known| BreakEvenJson {
                lanes: known.lanes,
                scalar_us: known.scalar_ns as f64 / 1e3,
                batch_us: known.batch_ns as f64 / 1e3,
            }),
        }
    }
}

impl TotalsJson {
    fn new(total: &AlgorithmCounters) -> Self {
        Self {
            batched: total.batched,
            single: total.single,
            scalar: total.scalar,
            failed: total.failed,
            batches: total.batches,
            batches_by_lanes: total.lanes,
            batch_cpu_s: seconds(total.batch_ns),
            saved_cpu_s: seconds(total.saved_ns),
        }
    }
}

impl CountJson {
    fn new(name: &'static str, window: &Window, counted: u64, total: u64) -> Self {
        Self { name, per_s: window.per_second(counted), total }
    }
}

impl WarningJson {
    fn new(warning: Warning) -> Self {
        Self {
            severity: warning.severity.as_str(),
            code: warning.code,
            message: warning.message,
            fix: warning.fix,
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::fixture;
    use hasten_telemetry::Unseen;

    #[test]
    fn the_document_keeps_its_names() {
        insta::assert_snapshot!(render(&fixture::state(true), &Missing { denied: 3, ..Missing::default() }));
    }

    #[test]
    fn nothing_found_is_still_a_document() {
        let missing = Missing {
            standing_by: 2,
            failed: vec![Unseen { pid: 7, program: "nginx".to_owned() }],
            ..Missing::default()
        };
        let document: serde_json::Value = serde_json::from_str(&render(&State::default(), &missing)).unwrap();
        let expected = serde_json::json!({
            "schema": 1, "denied_processes": 0, "standby_processes": 2, "failed_processes": 1, "programs": [],
        });
        assert_eq!(document, expected);
    }

    /// The manual documents every name in the document.
    #[test]
    fn the_manual_names_every_key() {
        fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                    into.push(key.clone());
                    keys(value, into);
                }),
                serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
                _ => {}
            }
        }
        let manual = include_str!("../../../../docs/telemetry.md");
        let mut names = Vec::new();
        keys(&serde_json::from_str(&render(&fixture::state(true), &Missing::default())).unwrap(), &mut names);
        assert!(names.len() > 100);
        for name in names {
            assert!(manual.contains(&format!("`{name}`")), "{name}");
        }
    }
}
