//! CPU profiles in recordings: of a real program, of several chunks, damaged ones, and what is exported.

use std::path::Path;

use hasten_v8::export::{self, ExportError};
use hasten_v8::parse;
use hasten_v8::profile::End;
use hasten_v8::summary::Summary;
use serde_json::Value;

const HEADER: &str = r#"{"hasten_gc":1,"pid":7,"node":"v24.1.0","at_ms":90}"#;
const PROFILE: [&str; 6] = [
    r#"{"cpu":"start","version":1,"at_ms":100,"interval_us":1000,"thread":"main"}"#,
    r#"{"cpu":"functions","first":0,"functions":[["(root)","",0,0],["(idle)","",0,0],["a","file:///app.js",2,3],["b","file:///app.js",5,1]]}"#,
    r#"{"cpu":"nodes","first":1,"nodes":[0,0,1,1,1,2,3,3]}"#,
    r#"{"cpu":"samples","from_ms":101,"runs":[3,2,2000,4,1,1000,2,7,7000]}"#,
    r#"{"cpu":"samples","from_ms":131,"runs":[4,4,4000]}"#,
    r#"{"cpu":"end","at_ms":136,"samples":14,"cut":0,"why":"asked"}"#,
];
const END: &str =
    r#"{"end":true,"at_ms":140,"events":0,"detailed":0,"dropped":0,"unseen_ms":0,"why":"asked"}"#;

fn recording(lines: &[&str]) -> String {
    [&[HEADER], lines, &[END]].concat().join("\n") + "\n"
}

fn read(text: &str) -> Summary {
    parse::read(text.as_bytes(), "-", &mut |_| {}).expect("a trace")
}

fn exported(text: &str) -> Value {
    let profiles = export::cpuprofiles(text.as_bytes(), "-").expect("a profile");
    serde_json::from_str(&profiles[0].text).expect("JSON")
}

fn fixture() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorder-v24.cpu.jsonl");
    std::fs::read_to_string(path).expect("a fixture")
}

#[test]
fn a_real_program_spends_its_time_where_it_does() {
    let text = fixture();
    let summary = read(&text);
    assert_eq!(summary.lines.understood, summary.lines.total);
    let heap = &summary.isolates[0];
    let profile = heap.profile.as_ref().expect("a profile");
    let first = &profile.functions[0];
    assert_eq!((first.name.as_str(), first.place()), ("hotA", "/srv/app/server.js:2".to_owned()));
    assert!(profile.functions.is_sorted_by(|a, b| a.self_ms >= b.self_ms));
    let parts = profile.functions_ms + profile.program_ms + profile.collector_ms + profile.idle_ms;
    assert!((parts - profile.sampled_ms).abs() < 1e-6, "{parts} of {}", profile.sampled_ms);
    let functions: f64 = profile.functions.iter().map(|one| one.self_ms).sum();
    assert!((functions + profile.rest_ms - profile.functions_ms).abs() < 1e-6);
    assert!(profile.pauses_ms > 0.0 && profile.pauses_ms <= heap.pauses.total_ms + 1e-6);
    assert_eq!(profile.end, Some(End::Time));
    // Counted by other means.
    let last = text.lines().find(|line| line.starts_with("{\"cpu\":\"end\"")).expect("an end");
    assert_eq!(serde_json::from_str::<Value>(last).expect("JSON")["samples"], profile.samples);
}

#[test]
fn a_recording_without_a_collection_still_has_its_profile() {
    let summary = read(&recording(&PROFILE));
    assert!(summary.busiest().is_none());
    let profile = summary.profiled().and_then(|heap| heap.profile.as_ref()).expect("a profile");
    let self_ms: Vec<_> = profile.functions.iter().map(|one| (one.title(), one.self_ms)).collect();
    assert_eq!(self_ms, [("b", 5.0), ("a", 2.0)]);
    assert_eq!(
        (profile.idle_ms, profile.sampled_ms, profile.from_ms, profile.to_ms),
        (7.0, 14.0, 101.0, 135.0)
    );
    assert!(profile.overview(false).contains("20.0 ms without samples"), "{}", profile.overview(false));
    let advice =
        hasten_v8::advice::advise(std::slice::from_ref(&summary), &hasten_v8::advice::Facts::default());
    let page = hasten_v8::page::page(&[summary], &advice).expect("a page");
    assert!(page.contains("app.js:5"));
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_has() {
    let summary = read(&[&[HEADER], &PROFILE[..4]].concat().join("\n"));
    let profile = summary.profiled().and_then(|heap| heap.profile.as_ref()).expect("a profile");
    assert_eq!((profile.sampled_ms, profile.end), (10.0, None));
    assert!(profile.remarks()[0].contains("killed"), "{:?}", profile.remarks());
}

#[test]
fn a_damaged_line_is_counted_and_the_rest_still_read() {
    let damaged = PROFILE[3].replace("[3,2,", "[9,2,");
    let mut lines = PROFILE;
    lines[3] = &damaged;
    let summary = read(&recording(&lines));
    assert_eq!((summary.lines.unknown, summary.lines.samples.len()), (1, 1));
    let profile = summary.profiled().and_then(|heap| heap.profile.as_ref()).expect("a profile");
    assert_eq!(profile.sampled_ms, 4.0);
    // Of a version that is not known, nothing is understood.
    let later = PROFILE[0].replace("\"version\":1", "\"version\":2");
    let mut lines = PROFILE;
    lines[0] = &later;
    let summary = read(&recording(&lines));
    assert_eq!(summary.lines.unknown, PROFILE.len() as u64);
    assert!(summary.profiled().is_none());
}

#[test]
fn an_export_is_what_devtools_expect() {
    let file = exported(&recording(&PROFILE));
    let nodes = file["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 4);
    assert_eq!((&nodes[0]["id"], &nodes[0]["children"]), (&1.into(), &vec![2, 3].into()));
    let b = serde_json::json!({
        "id": 4, "hitCount": 5,
        "callFrame": { "functionName": "b", "scriptId": "1", "url": "file:///app.js", "lineNumber": 4, "columnNumber": 0 }
    });
    assert_eq!(nodes[3], b);
    assert_eq!(nodes[0]["callFrame"]["lineNumber"], -1);
    assert_eq!((&file["startTime"], &file["endTime"]), (&101_000.into(), &135_000.into()));
    let samples = file["samples"].as_array().expect("samples");
    // The root stands for the time without samples.
    assert_eq!(
        samples.iter().map(|one| one.as_u64().expect("a number")).collect::<Vec<_>>(),
        [3, 3, 4, 2, 2, 2, 2, 2, 2, 2, 1, 4, 4, 4, 4]
    );
    let deltas: Vec<i64> = file["timeDeltas"]
        .as_array()
        .expect("deltas")
        .iter()
        .map(|one| one.as_i64().expect("a number"))
        .collect();
    assert_eq!(
        deltas,
        [0, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 20_000, 1000, 1000, 1000]
    );
}

#[test]
fn an_export_of_a_real_profile_has_its_self_times() {
    let text = fixture();
    let summary = read(&text);
    let profile = summary.isolates[0].profile.as_ref().expect("a profile");
    let file = exported(&text);
    let names: Vec<_> = file["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| node["callFrame"]["functionName"].clone())
        .collect();
    let (samples, deltas) =
        (file["samples"].as_array().expect("samples"), file["timeDeltas"].as_array().expect("deltas"));
    assert_eq!(samples.len(), deltas.len());
    // As DevTools do: a sample is worth the time to the next.
    let mut at_us = file["startTime"].as_i64().expect("a time");
    let mut hot_us = 0;
    let times: Vec<i64> = deltas
        .iter()
        .map(|delta| {
            at_us += delta.as_i64().expect("a number");
            at_us
        })
        .collect();
    let ends = times.iter().skip(1).copied().chain([file["endTime"].as_i64().expect("a time")]);
    for ((sample, from), to) in samples.iter().zip(&times).zip(ends) {
        assert!(to >= *from);
        let node = sample.as_u64().expect("a number") as usize;
        hot_us += if names[node - 1] == "hotA" { to - from } else { 0 };
    }
    let expected: f64 =
        profile.functions.iter().filter(|one| one.name == "hotA").map(|one| one.self_ms).sum();
    assert!((hot_us as f64 / 1e3 - expected).abs() < 1.0, "{hot_us} µs, {expected} ms");
}

#[test]
fn each_worker_thread_has_a_profile_of_its_own() {
    let of = |line: &str| line.replacen(',', ",\"worker\":3,", 1);
    let start = of(PROFILE[0]).replace('}', ",\"name\":\"pool\",\"script\":\"file:///srv/work.js\"}");
    let workers: Vec<String> =
        std::iter::once(start).chain(PROFILE[1..].iter().map(|line| of(line))).collect();
    let lines: Vec<&str> = PROFILE.into_iter().chain(workers.iter().map(String::as_str)).collect();
    let text = recording(&lines);
    let summary = read(&text);
    assert_eq!(summary.lines.unknown, 0);
    let heap = summary.profiled().expect("profiles");
    let (main, [worker]) = (heap.profile.as_ref().expect("the main thread's"), &heap.workers[..]) else {
        panic!("{:?}", heap.workers)
    };
    assert_eq!(
        (main.thread(), worker.thread()),
        ("the main thread".to_owned(), "worker 3 (pool)".to_owned())
    );
    assert_eq!(worker.worker.as_ref().map(|worker| &*worker.script), Some("/srv/work.js"));
    assert_eq!((worker.samples, worker.sampled_ms), (main.samples, main.sampled_ms));
    assert_eq!(worker.functions, main.functions);
    assert!(main.overview(false).contains("pauses") && !worker.overview(false).contains("pauses"));
    let profiles = export::cpuprofiles(text.as_bytes(), "-").expect("profiles");
    assert_eq!(profiles.iter().map(|one| one.worker).collect::<Vec<_>>(), [None, Some(3)]);
    assert_eq!(profiles[0].text, profiles[1].text);
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let export = |text: &str| export::cpuprofiles(text.as_bytes(), "-").map(|_| ()).expect_err("an error");
    assert!(matches!(export(&recording(&[])), ExportError::None));
    let twice = recording(&PROFILE).repeat(2);
    assert!(matches!(export(&twice), ExportError::Several(2)));
    assert!(matches!(export("\u{1}\n{}"), ExportError::None));
}

#[test]
fn absurd_numbers_take_no_more_memory_than_sound_ones() {
    let absurd = PROFILE[3].replace("[3,2,2000,4,1,1000,2,7,7000]", "[3,4000000000,4000000000,4,1,1000]");
    let mut lines = PROFILE;
    lines[3] = &absurd;
    let text = recording(&lines);
    let summary = read(&text);
    let profile = summary.profiled().and_then(|heap| heap.profile.as_ref()).expect("a profile");
    assert!(profile.timeline.slices.len() <= 240);
    assert!(exported(&text)["samples"].as_array().expect("samples").len() < 10);
}
