use serde_json::json;

use super::*;
use crate::totals::Live;
use hasten_telemetry::{
    Algorithm, Engine, EngineClass, EngineCounters, EngineReport, Fault, Suspension, SuspensionReport,
};
use std::time::Duration;

fn look() -> Look {
    let mut program = Program::default();
    program.counters[Algorithm::P256Sign].batched = 8;
    program.counters[Algorithm::P256Sign].batches = 1;
    program.counters[Algorithm::P256Sign].lanes[7] = 1;
    program.live.push(Live {
        processes: 2,
        note: "</script>".to_owned(),
        started: Duration::from_secs(1_790_000_000),
        engines: vec![EngineCondition {
            engine: Engine::Multibuffer,
            class: EngineClass::Software,
            device: String::new(),
            report: Some(EngineReport {
                state: BreakerState::Open,
                fault: Some(Fault::BadOutput),
                since: Duration::from_secs(7),
                probe: None,
            }),
            processes: (1, 2),
            total: EngineCounters::default(),
            now: Duration::from_secs(10),
        }],
        suspension: vec![SuspensionShare {
            report: SuspensionReport {
                state: Suspension::Off,
                doubt: Some(Doubt::NobodyCame),
                since: Duration::from_secs(4),
            },
            processes: 1,
            of: 2,
            now: Duration::from_secs(10),
        }],
        ..Live::default()
    });
    let key = Key { program: "nginx".to_owned(), accelerator: "tls".to_owned(), container: String::new() };
    Look { programs: [(key, program)].into(), denied: 4, ..Look::default() }
}

#[test]
fn the_document_has_what_the_manual_says() {
    let status: Json = serde_json::from_str(&json(&look())).unwrap();
    assert_eq!((&status["schema"], &status["denied_processes"]), (&json!(1), &json!(4)));
    let page = &status["programs"][0]["pages"][0];
    assert_eq!(page["started_unix_s"], 1_790_000_000);
    let engine = json!({
        "engine": "multibuffer", "class": "software", "device": "", "state": "open", "fault": "bad-output",
        "age_s": 3.0, "probe_s": null, "processes": 1, "of_processes": 2,
    });
    assert_eq!(page["engines"][0], engine);
    let suspension =
        json!({ "state": "off", "doubt": "nobody-came", "age_s": 6.0, "processes": 1, "of_processes": 2 });
    assert_eq!(page["suspension"][0], suspension);
    assert_eq!(status["warnings"][0]["severity"], "critical");
    assert_eq!(status["warnings"][1]["code"], "suspension-off");
    let manual = include_str!("../../../docs/metrics.md");
    let objects = [
        &status,
        &status["programs"][0],
        page,
        &page["engines"][0],
        &page["suspension"][0],
        &status["warnings"][0],
    ];
    for key in objects.iter().flat_map(|object| object.as_object().unwrap().keys()) {
        assert!(manual.contains(&format!("`{key}`")), "the manual does not say what {key} is");
    }
}

#[test]
fn series_are_those_of_the_metrics() {
    let status: Json = serde_json::from_str(&json(&look())).unwrap();
    let series = status["series"].as_array().unwrap();
    let of = |name: &str| {
        series.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {series:#?}"))
    };
    assert_eq!(of("hasten_processes")["value"], 2);
    assert_eq!(of("hasten_processes")["labels"], json!({"program": "nginx", "accelerator": "tls"}));
    assert_eq!(of("hasten_batch_lanes")["buckets"][7], json!([8.0, 1]));
    assert!(series.iter().all(|one| one["value"].is_null() != one["buckets"].is_null()), "{series:#?}");
}
