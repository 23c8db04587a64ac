//! Endurance (`make soak`), and that it would notice.

use std::env;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hasten_bench::interrupt;
use hasten_tests::soak::Soak;
use hasten_tests::soak::page::page;
use hasten_tests::soak::report::Report;
use hasten_tests::soak::schedule::Schedule;
use hasten_tests::{Side, product};
use serde_json::Value;

const USUAL_MINUTES: f64 = 60.0;
const USUAL_SEED: u64 = 20_261_122;

#[test]
#[ignore = "takes as long as one wants: `make soak` runs it"]
fn endurance() {
    let minutes = setting("SOAK_MINUTES", USUAL_MINUTES);
    let seed = setting("SOAK_SEED", USUAL_SEED);
    let schedule = Schedule::new(seed, Duration::from_secs_f64(minutes * 60.0));
    let stop = interrupt::flag().expect("a handler for Ctrl-C");
    let soak = Soak::start(&[Side::Stock, Side::Accelerated]);
    let records = soak.run(&schedule, &stop);
    let is_complete = !stop.load(Relaxed);
    let Report { document, complaints } = Report::of(&soak, &schedule, &records, is_complete);
    keep(&document);
    assert!(is_complete, "it was interrupted");
    assert!(complaints.is_empty(), "seed {seed}: {complaints:#?}");
}

/// Writes the report and its page beside the builds.
fn keep(document: &Value) {
    let directory = product::target_directory().join("soak");
    fs::create_dir_all(&directory).expect("a directory for the report");
    let [json, html] = ["json", "html"].map(|kind| directory.join(format!("hasten-report.{kind}")));
    let text = serde_json::to_string_pretty(document).expect("JSON") + "\n";
    fs::write(&json, text).expect("a report");
    fs::write(&html, page(document)).expect("a page");
    eprintln!("the report: {} and, to look at, {}", json.display(), html.display());
}

/// A number from the environment.
fn setting<T: std::str::FromStr>(name: &str, usual: T) -> T {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}: give a number")),
        Err(_) => usual,
    }
}

/// Stock servers and files that are not what they should be: every client has to notice.
#[test]
fn one_wrong_byte_in_a_file_is_noticed() {
    let schedule = Schedule::new(USUAL_SEED, Duration::from_secs(2));
    let soak = Soak::start(&[Side::Stock]);
    soak.corpus.corrupt();
    let records = soak.run(&schedule, &AtomicBool::new(false));
    let Report { document, complaints } = Report::of(&soak, &schedule, &records, true);
    for row in document["rows"].as_array().expect("rows") {
        let stock = &row["stock"];
        assert_eq!(stock["answers"], 0, "{stock}");
        assert!(stock["failed"].as_u64() > Some(0), "{stock}");
    }
    assert!(
        complaints.iter().any(|complaint| complaint.contains("which differ first at byte")),
        "{complaints:#?}"
    );
}
