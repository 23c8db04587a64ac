//! The report of `hasten tune` in a real browser: charts have data in them, nothing is fetched, nothing overflows.
//!
//! `HASTEN_TEST_PICTURES=DIR` keeps a picture of each page there, for eyes.

#![forbid(unsafe_code)]

mod sample;

use std::fs;
use std::path::PathBuf;

use hasten_tests::chromium::{Chromium, Size};
use hasten_tune::report::{Report, Verdict};
use serde_json::Value;

const PROBE: &str = include_str!("probe.js");
const PHONE: Size = (320, 640);
const DESKTOP: Size = (1280, 900);
/// A chart with fewer pixels than this has only its frame.
const DRAWN: u64 = 20;

/// A page on disk, as people open it.
struct Page {
    directory: tempfile::TempDir,
    name: &'static str,
}

impl Page {
    fn of(name: &'static str, report: &Report) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("report.html"), report.html().unwrap()).unwrap();
        Self { directory, name }
    }

    fn url(&self) -> String {
        format!("file://{}/report.html", self.directory.path().display())
    }
}

/// Opens the page, and asserts what must hold for every page in every window.
fn look(chromium: &mut Chromium, page: &Page, size: Size, scheme: &str) -> Value {
    chromium.open(&page.url(), size, scheme);
    chromium.settle();
    let seen = chromium.evaluate(PROBE);
    let what = format!("{} at {size:?}, {scheme}: {seen:#}", page.name);
    assert_eq!(chromium.complaints(), [""; 0], "{what}");
    assert_eq!(chromium.requests(), [page.url()], "{what}");
    let charts = seen["charts"].as_array().unwrap();
    assert_eq!(seen["declared"].as_u64(), Some(charts.len() as u64), "{what}");
    for chart in charts {
        assert!(chart["coloured"].as_u64().unwrap() >= DRAWN, "an empty chart, {}: {what}", chart["name"]);
        let width = chart["width"].as_u64().unwrap();
        assert!(width >= 180 && width <= u64::from(size.0), "{what}");
    }
    assert_eq!((seen["overflow"].as_i64(), &seen["wide"]), (Some(0), &Value::Array(Vec::new())), "{what}");
    let background = seen["background"].as_str().unwrap();
    assert_eq!(background == "rgb(16, 19, 23)", scheme == "dark", "{what}");
    if let Some(directory) = std::env::var_os("HASTEN_TEST_PICTURES") {
        let name = format!("tune-{}-{}-{scheme}.png.base64", page.name, size.0);
        fs::write(PathBuf::from(directory).join(name), chromium.picture()).unwrap();
    }
    seen
}

/// The number of charts in a part of the page.
fn count(seen: &Value, part: &str) -> usize {
    seen["charts"].as_array().unwrap().iter().filter(|chart| chart["of"] == part).count()
}

#[test]
fn a_report_has_its_charts_on_phones_and_desktops_by_day_and_by_night() {
    let mut chromium = Chromium::start();
    let report = sample::better();
    let page = Page::of("better", &report);
    for (size, scheme) in [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")] {
        let seen = look(&mut chromium, &page, size, scheme);
        let of = |part| count(&seen, part);
        assert_eq!(
            [of("winner-chart"), of("parts-charts"), of("noise-chart"), of("trials-chart")],
            [1, 2, 1, 1],
            "{seen:#}"
        );
        assert_eq!(seen["heading"], report.headline().as_str());
        assert_eq!(seen["rows"].as_u64(), Some(report.trials.len() as u64));
        // The verdict comes first, whatever the window.
        assert!(seen["headingTop"].as_f64().unwrap() < 200.0, "{seen:#}");
    }
}

#[test]
fn sessions_that_prove_nothing_say_so_and_what_would_help() {
    let mut chromium = Chromium::start();
    for (name, verdict, words) in [
        (
            "nothing",
            Verdict::NoDifference,
            "None of 6 settings saves 3.0 % of CPU per request, 1 disqualified, 1 not tried",
        ),
        ("undecided", Verdict::Undecided, "Could not tell whether"),
        ("noisy", Verdict::TooNoisy, "Too noisy to see a difference of 3.0 %"),
        ("unfinished", Verdict::Unfinished, "Stopped before"),
    ] {
        let report = sample::without_winner(verdict);
        let seen = look(&mut chromium, &Page::of(name, &report), PHONE, "light");
        assert!(seen["heading"].as_str().unwrap().starts_with(words), "{seen:#}");
        let text = chromium.evaluate("document.body.textContent");
        assert_eq!(text.as_str().unwrap().contains("run longer"), verdict == Verdict::TooNoisy);
        assert_eq!(count(&seen, "winner-chart"), 0);
    }
    // Stopped at once: nothing to draw, and still a page.
    let seen = look(&mut chromium, &Page::of("empty", &sample::empty()), PHONE, "light");
    assert_eq!(seen["charts"].as_array().unwrap().len(), 0);
}

#[test]
fn measurements_are_sorted_by_any_column_and_filtered_by_words() {
    let mut chromium = Chromium::start();
    chromium.open(&Page::of("table", &sample::better()).url(), DESKTOP, "light");
    let column = |chromium: &mut Chromium, at: usize| -> Vec<f64> {
        let script = format!(
            "[...document.getElementById('trials').tBodies[0].rows].map((row) => Number(row.cells[{at}].dataset.order)).filter((n) => !Number.isNaN(n))"
        );
        chromium.evaluate(&script).as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let press = "document.querySelectorAll('#trials th button')[3].click()";
    chromium.evaluate(press);
    let rising = column(&mut chromium, 3);
    assert!(rising.len() > 10 && rising.is_sorted(), "{rising:?}");
    chromium.evaluate(press);
    assert!(column(&mut chromium, 3).iter().rev().is_sorted());
    chromium.evaluate("document.querySelectorAll('#trials th button')[0].click()");
    assert!(column(&mut chromium, 0).is_sorted());

    let typed = "(() => { const filter = document.getElementById('filter'); filter.value = 'RECHECK stock';
        filter.dispatchEvent(new Event('input')); })()";
    chromium.evaluate(typed);
    let shown = "[...document.getElementById('trials').tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.textContent)";
    let shown = chromium.evaluate(shown);
    let shown = shown.as_array().unwrap();
    assert!(
        !shown.is_empty() && shown.iter().all(|row| row.as_str().unwrap().contains("recheck")),
        "{shown:?}"
    );
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn nothing_that_a_service_says_becomes_a_part_of_the_page() {
    let mut chromium = Chromium::start();
    let report = sample::hostile();
    let seen = look(&mut chromium, &Page::of("hostile", &report), DESKTOP, "light");
    assert_eq!((&seen["hacked"], &seen["images"]), (&"undefined".into(), &0.into()), "{seen:#}");
    assert_eq!(seen["scripts"], 2, "{seen:#}");
    assert!(chromium.evaluate("document.body.textContent").as_str().unwrap().contains("window.hacked"));
}

#[test]
fn the_json_of_a_report_is_read_back_as_it_was() {
    let report = sample::better();
    let json = report.json().unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["version"], &value["verdict"]), (&1.into(), &"better".into()));
    let headline = "16.4 % less CPU per request: 2 of 8 settings kept, 1 not tried";
    assert_eq!((&value["summary"]["headline"], &value["summary"]["untried"]), (&headline.into(), &1.into()));
    assert!(value["summary"]["support"].as_str().unwrap().contains("bytes on the wire +0.2 %"), "{value}");
    assert_eq!(value["winner"]["settings"][0]["knob"], "node-cache");
}
