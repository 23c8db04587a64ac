//! The page of `hasten gc` in a real browser: charts have data in them, nothing is fetched, nothing overflows.
//!
//! `HASTEN_TEST_PICTURES=DIR` keeps a picture of each page there, for eyes.

#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use hasten_tests::chromium::{Chromium, Size};
use hasten_v8::advice::{Facts, advise};
use hasten_v8::page::page;
use hasten_v8::parse;
use hasten_v8::summary::Summary;
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
    fn of(name: &'static str, traces: &[Summary]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let advice = advise(traces, &Facts::default());
        fs::write(directory.path().join("gc.html"), page(traces, &advice).unwrap()).unwrap();
        Self { directory, name }
    }

    fn url(&self) -> String {
        format!("file://{}/gc.html", self.directory.path().display())
    }
}

fn fixture(name: &str) -> Summary {
    let path = fixture_path(name);
    read(&fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())), name)
}

fn read(text: &[u8], name: &str) -> Summary {
    parse::read(text, name, &mut |_| {}).expect("a trace")
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
    assert!(!charts.is_empty(), "{what}");
    for chart in charts {
        assert!(chart["coloured"].as_u64().unwrap() >= DRAWN, "an empty chart, {}: {what}", chart["name"]);
        let width = chart["width"].as_u64().unwrap();
        assert!(width >= 180 && width <= u64::from(size.0), "{what}");
    }
    assert_eq!(seen["overflow"].as_i64(), Some(0), "{what}");
    let background = seen["background"].as_str().unwrap();
    assert_eq!(background == "rgb(16, 19, 23)", scheme == "dark", "{what}");
    keep(chromium, &format!("{}-{}-{scheme}.png", page.name, size.0));
    seen
}

fn keep(chromium: &mut Chromium, name: &str) {
    if let Some(directory) = std::env::var_os("HASTEN_TEST_PICTURES") {
        fs::write(PathBuf::from(directory).join(name.to_owned() + ".base64"), chromium.picture()).unwrap();
    }
}

/// The number of charts in a part of the page.
fn count(seen: &Value, part: &str) -> usize {
    seen["charts"].as_array().unwrap().iter().filter(|chart| chart["of"] == part).count()
}

#[test]
fn pages_of_every_format_have_their_charts_on_phones_and_desktops_by_day_and_by_night() {
    let mut chromium = Chromium::start();
    let nvp = Page::of("nvp", &[fixture("v24.trace-gc-nvp.txt")]);
    let verbose = Page::of("verbose", &[fixture("v22.trace-gc-verbose.txt")]);
    let json = Page::of("json", &[fixture("v26.trace-gc-nvp.txt")]);
    let oom = Page::of("oom", &[fixture("v20.oom.txt")]);
    for (page, size, scheme, spaces) in [
        (&nvp, DESKTOP, "light", 0),
        (&nvp, PHONE, "dark", 0),
        (&verbose, DESKTOP, "dark", 1),
        (&verbose, PHONE, "light", 1),
        (&json, DESKTOP, "light", 0),
        (&oom, PHONE, "light", 0),
    ] {
        let seen = look(&mut chromium, page, size, scheme);
        let of = |part| count(&seen, part);
        assert_eq!(
            [of("pauses"), of("share"), of("heap"), of("spaces"), of("allocation")],
            [1, 1, 1, spaces, 2]
        );
        assert!(of("histograms") >= 2, "{seen:#}");
        assert!(seen["tables"].as_u64().unwrap() >= 4, "{seen:#}");
    }
}

#[test]
fn a_cpu_profile_is_on_the_axis_of_the_pauses() {
    let mut chromium = Chromium::start();
    let page = Page::of("cpu", &[fixture("recorder-v24.cpu.jsonl")]);
    for (size, scheme) in [(DESKTOP, "light"), (PHONE, "dark")] {
        let seen = look(&mut chromium, &page, size, scheme);
        assert_eq!([count(&seen, "pauses"), count(&seen, "cpu")], [1, 1], "{seen:#}");
        let cpu = seen["charts"].as_array().unwrap().iter().find(|chart| chart["of"] == "cpu").unwrap();
        let labels: Vec<_> = cpu["labels"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(labels[..3], ["at", "collections", "hotA"], "{labels:?}");
        assert_eq!(
            cpu["name"],
            "CPU time over time . The same numbers are in the tables under “All numbers”."
        );
    }
    // Its table says the same, in the order of self time.
    let rows = "[...document.querySelectorAll('[aria-label=\"Functions by self time\"] tbody tr')].map((row) => row.textContent)";
    let rows = chromium.evaluate(rows);
    assert!(
        rows[0].as_str().unwrap().starts_with("hotA") && rows[0].as_str().unwrap().contains("server.js:2"),
        "{rows:#}"
    );
    let canvas = "document.querySelector('#cpu canvas').toDataURL()";
    let whole = chromium.evaluate(canvas);
    // Keys in one chart move all of them.
    chromium.evaluate("document.querySelector('#cpu figure').focus()");
    chromium.key("+");
    chromium.settle();
    let window = chromium.evaluate("document.getElementById('window').textContent");
    assert!(window.as_str().unwrap().starts_with("From "), "{window}");
    assert_ne!(chromium.evaluate(canvas), whole);
    chromium.evaluate("document.querySelector('#pauses figure').focus()");
    chromium.key("0");
    chromium.settle();
    assert_eq!(chromium.evaluate(canvas), whole);
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn a_profile_without_collections_is_a_page_too() {
    let text = fs::read_to_string(fixture_path("recorder-v24.cpu.jsonl")).unwrap();
    let kept: Vec<_> = text.lines().filter(|line| !line.starts_with("{\"gc\"")).collect();
    let summary = read(kept.join("\n").as_bytes(), "quiet.jsonl");
    assert!(summary.busiest().is_none());
    let mut chromium = Chromium::start();
    chromium.open(&Page::of("quiet", &[summary]).url(), DESKTOP, "light");
    chromium.settle();
    let seen = chromium.evaluate(PROBE);
    assert_eq!(count(&seen, "cpu"), 1, "{seen:#}");
    let cpu = seen["charts"].as_array().unwrap().iter().find(|chart| chart["of"] == "cpu").unwrap();
    assert!(cpu["coloured"].as_u64().unwrap() >= DRAWN, "{seen:#}");
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn several_traces_are_beside_each_other_where_they_can_be_compared() {
    let mut chromium = Chromium::start();
    let names =
        ["v20.trace-gc.txt", "v20.trace-gc.semi64.txt", "v22.trace-gc.txt", "v22.trace-gc.semi64.txt"];
    let page = Page::of("compared", &names.map(fixture));
    for (size, scheme) in [(DESKTOP, "light"), (PHONE, "dark")] {
        let seen = look(&mut chromium, &page, size, scheme);
        let of = |part| count(&seen, part);
        assert_eq!([of("pauses"), of("share"), of("heap"), of("allocation")], [4, 1, 1, 2], "{seen:#}");
        let share = seen["charts"].as_array().unwrap().iter().find(|chart| chart["of"] == "share").unwrap();
        let labels: Vec<_> = share["labels"].as_array().unwrap().iter().skip(1).collect();
        assert_eq!(labels, names, "{seen:#}");
    }
}

#[test]
fn one_window_of_time_for_all_charts_by_mouse_by_keys_and_by_buttons() {
    let mut chromium = Chromium::start();
    chromium.open(&Page::of("keys", &[fixture("v20.trace-gc.txt")]).url(), DESKTOP, "light");
    let window = |chromium: &mut Chromium| chromium.evaluate("document.getElementById('window').textContent");
    let all = window(&mut chromium);
    assert!(all.as_str().unwrap().starts_with("All, from "), "{all}");

    chromium.evaluate("document.querySelector('#heap figure').focus()");
    chromium.key("+");
    let nearer = window(&mut chromium);
    assert!(nearer.as_str().unwrap().starts_with("From "), "{nearer}");
    chromium.key("ArrowRight");
    assert_ne!(window(&mut chromium), nearer);
    chromium.key("0");
    assert_eq!(window(&mut chromium), all);

    chromium.evaluate("document.querySelector('[data-do=zoom-in]').click()");
    assert_eq!(window(&mut chromium), nearer);
    chromium.evaluate("document.querySelector('[data-do=all]').click()");
    assert_eq!(window(&mut chromium), all);

    let place = "(() => { const over = document.querySelector('#pauses .u-over'); over.scrollIntoView({ block: 'center' });
        const box = over.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()";
    let place = chromium.evaluate(place);
    let at = |index: usize| place[index].as_f64().unwrap();
    let middle = at(1) + at(3) / 2.0;
    chromium.drag((at(0) + at(2) * 0.25, middle), (at(0) + at(2) * 0.5, middle));
    chromium.settle();
    let dragged = window(&mut chromium);
    assert!(dragged.as_str().unwrap().starts_with("From "), "{dragged}");
    // The other charts show the same stretch: their axes begin at the same time.
    let share = "document.querySelector('#share .u-over').getBoundingClientRect().width > 0";
    assert_eq!(chromium.evaluate(share), true);
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn charts_follow_a_change_of_colours_and_of_width_and_come_back_from_paper() {
    let mut chromium = Chromium::start();
    let page = Page::of("changes", &[fixture("v22.trace-gc-verbose.txt")]);
    let light = look(&mut chromium, &page, DESKTOP, "light");
    let canvas = "document.querySelector('#heap canvas').toDataURL()";
    let by_day = chromium.evaluate(canvas);
    chromium.scheme("dark");
    chromium.settle();
    assert_ne!(chromium.evaluate(canvas), by_day);
    // Paper is white, whatever the screen.
    chromium.evaluate("window.dispatchEvent(new Event('beforeprint'))");
    chromium.settle();
    assert_eq!(chromium.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(246, 247, 249)");
    assert_eq!(chromium.evaluate(canvas), by_day);
    chromium.evaluate("window.dispatchEvent(new Event('afterprint'))");
    chromium.scheme("light");
    chromium.settle();
    assert_eq!(chromium.evaluate(canvas), by_day);
    let narrow = look(&mut chromium, &page, PHONE, "light");
    assert_eq!(narrow["charts"].as_array().unwrap().len(), light["charts"].as_array().unwrap().len());
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn each_heap_of_a_cluster_can_be_chosen() {
    let mut both = fs::read(fixture_path("v20.trace-gc.txt")).unwrap();
    both.extend(fs::read(fixture_path("v20.trace-gc.semi64.txt")).unwrap());
    let summary = read(&both, "cluster.log");
    assert_eq!(summary.isolates.len(), 2);
    let mut chromium = Chromium::start();
    let page = Page::of("cluster", &[summary]);
    look(&mut chromium, &page, DESKTOP, "light");
    let canvas = "document.querySelector('#pauses canvas').toDataURL()";
    let first = chromium.evaluate(canvas);
    chromium.evaluate(
        "(() => { const heaps = document.querySelector('#heaps select'); heaps.value = '1';
        heaps.dispatchEvent(new Event('change')); })()",
    );
    chromium.settle();
    let second = chromium.evaluate(canvas);
    assert_ne!(first, second);
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn nothing_in_a_trace_or_in_its_name_becomes_a_part_of_the_page() {
    let evil =
        "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><!--\u{2028}\"'&{{7*7}}";
    let mut text = fs::read_to_string(fixture_path("v20.trace-gc.txt")).unwrap();
    text = text.replace("allocation failure", evil);
    text.push_str(&format!("[1:0x1]  99 ms: Scavenge {evil}\n{evil}\n"));
    // A recording contains the program's name, which ends up in the charts' data, along with the trace's name.
    let recording = fs::read_to_string(fixture_path("recorder-v20.fast.jsonl")).unwrap();
    let script = "\"script\":\"</script><script>window.hacked=1</script><!--<script>\",\"was\":";
    let recording = recording.replace("\"script\":", script);
    let recorded = read(recording.as_bytes(), "<!--<script>window.hacked=1");
    assert!(recorded.isolates[0].name().contains("</script>"), "{}", recorded.isolates[0].name());
    let traces = [recorded, read(text.as_bytes(), evil), read(text.as_bytes(), &format!("{evil}/other"))];
    let mut chromium = Chromium::start();
    for page in [
        Page::of("hostile-recording", &traces[..1]),
        Page::of("hostile", &traces[1..2]),
        Page::of("hostile-compared", &traces),
    ] {
        let seen = look(&mut chromium, &page, DESKTOP, "light");
        assert_eq!((&seen["hacked"], &seen["images"]), (&"undefined".into(), &0.into()), "{seen:#}");
        assert_eq!(seen["scripts"], 2, "{seen:#}");
        assert!(chromium.evaluate("document.body.textContent").as_str().unwrap().contains("window.hacked"));
    }
}

fn fixture_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../core/v8/tests/fixtures").join(name)
}
