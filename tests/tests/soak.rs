//! Endurance (`make soak`), and proof that it would notice.

use std::env;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hasten_bench::interrupt;
use hasten_tests::chromium::Chromium;
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

/// Stock servers with wrong files; one short run for both tests.
fn wrong_files() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| {
        // A curve of one or two samples, as a busy machine takes in half that time, is hardly a curve.
        let schedule = Schedule::new(USUAL_SEED, Duration::from_secs(4));
        let soak = Soak::start(&[Side::Stock]);
        soak.corpus.corrupt();
        let records = soak.run(&schedule, &AtomicBool::new(false));
        Report::of(&soak, &schedule, &records, true)
    })
}

#[test]
fn every_client_notices_one_wrong_byte() {
    let Report { document, complaints } = wrong_files();
    for row in document["rows"].as_array().expect("rows") {
        let stock = &row["stock"];
        assert_eq!(stock["answers"], 0, "{stock}");
        assert!(stock["failed"].as_u64() > Some(0), "{stock}");
    }
    let is_it = |complaint: &String| complaint.contains("which differ first at byte");
    assert!(complaints.iter().any(is_it), "{complaints:#?}");
}

#[test]
fn the_page_has_its_figures_and_its_curves() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("soak.html"), page(&wrong_files().document)).expect("a page");
    let url = format!("file://{}/soak.html", directory.path().display());
    let mut chromium = Chromium::start();
    for (size, scheme) in [((1280, 900), "light"), ((320, 640), "dark")] {
        chromium.open(&url, size, scheme);
        chromium.settle();
        let seen = chromium.evaluate(PROBE);
        assert_eq!(chromium.complaints(), [""; 0], "{seen:#}");
        assert_eq!(chromium.requests(), [url.as_str()], "{seen:#}");
        assert_eq!(seen["headline"], "Something is wrong", "{seen:#}");
        assert_eq!(seen["overflow"], 0, "{seen:#}");
        assert!(seen["rows"].as_u64() > Some(15), "{seen:#}");
        let drawn = seen["drawn"].as_array().expect("charts");
        assert_eq!(drawn.len(), 12, "four for each server: {seen:#}");
        assert!(drawn.iter().all(|colour| colour.as_u64() > Some(20)), "{seen:#}");
    }
}

/// What a page shows. The stock server's curve is grey, like its key: pixels that differ from the axes'.
const PROBE: &str = "(() => {
    const drawn = (canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const stock = getComputedStyle(document.documentElement).getPropertyValue('--stock').trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(stock.slice(at, at + 2), 16));
        let count = 0;
        for (let at = 0; at < data.length; at += 4) {
            if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] > 100) count++;
        }
        return count;
    };
    return {
        headline: document.querySelector('h1').textContent,
        rows: document.querySelectorAll('#figures tr').length,
        drawn: [...document.querySelectorAll('#curves canvas')].map(drawn),
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    };
})()";
