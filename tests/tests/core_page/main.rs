//! The page of `hasten core` in a real browser: boxes fill their place, can be walked by keys, nothing is fetched, nothing overflows.

#![forbid(unsafe_code)]

use std::fs;

use hasten_corefile::{Entry, Frame, HeldPath, Report, Retainer, Step, Suspect, Thread, TreeBox, page};
use hasten_tests::chromium::{Chromium, Size};
use serde_json::Value;

const PROBE: &str = include_str!("probe.js");
const PHONE: Size = (320, 640);
const DESKTOP: Size = (1280, 900);

fn leaf(name: &str, count: u64, bytes: u64) -> TreeBox {
    TreeBox { name: name.to_owned(), address: String::new(), count, bytes, inside: Vec::new() }
}

fn step(reference: &str, name: &str) -> Step {
    Step { reference: reference.to_owned(), name: name.to_owned(), address: "1f3a90c1".to_owned() }
}

/// A report as it is made of a core file, with a name of its own choice.
fn report(name: &str) -> Report {
    let map = TreeBox {
        address: "c0de1".to_owned(),
        inside: vec![leaf(name, 100_000, 30_000_000), leaf("(string)", 9, 5_000_000)],
        ..leaf("Map", 1, 40_000_000)
    };
    let cache = TreeBox { address: "ca11".to_owned(), inside: vec![map], ..leaf("Cache", 1, 45_000_000) };
    let mut inside = vec![cache, leaf("(closure)", 700, 6_000_000)];
    inside.extend((1..30).map(|size| leaf(&format!("Kind{size}"), 1, size * 50_000)));
    let bytes = inside.iter().map(|one| one.bytes).sum();
    let entry = |name: &str, count, bytes| Entry {
        name: name.to_owned(),
        count,
        shallow_bytes: bytes / 2,
        retained_bytes: Some(bytes),
    };
    let mut histogram = vec![entry(name, 100_000, 30_000_000), entry("Map", 3, 40_000_000)];
    histogram.extend((1..30).map(|size| entry(&format!("Kind{size}"), 1, size)));
    let frame = Frame {
        function: name.to_owned(),
        script: "/srv/app/a-folder-with-a-long-name/another-folder-with-a-long-name/index.js".to_owned(),
        line: 17,
        column: 3,
        kind: "interpreted",
        exact: true,
        arguments: vec![format!("\"{name}\"")],
    };
    let path = vec![
        step("(global handles)", "global"),
        step(".cache", "Cache"),
        step(".all", "Map"),
        step("[7]", name),
    ];
    let mut report = Report {
        file: "/var/crash/core.1234".into(),
        node: "24.21.0".to_owned(),
        signal: "SIGABRT".to_owned(),
        threads: vec![Thread { id: 1234, name: "main".to_owned(), frames: vec![frame] }],
        histogram,
        retainers: vec![Retainer {
            address: "ca11".to_owned(),
            name: "Cache".to_owned(),
            retained_bytes: 45_000_000,
            held_by: vec!["global @1".to_owned()],
        }],
        suspects: vec![Suspect {
            name: name.to_owned(),
            count: 100_000,
            retained_bytes: 30_000_000,
            share: 1.0,
            held_by: vec!["Map @c0de1".to_owned()],
            example: "e1".to_owned(),
        }],
        walked_share: 1.0,
        notes: vec!["the file is cut off".to_owned()],
        paths: vec![
            HeldPath { address: "ca11".to_owned(), steps: path[..2].to_vec() },
            HeldPath { address: "e1".to_owned(), steps: path },
        ],
        tree: Some(TreeBox { inside, ..leaf("everything", 1_000_000, bytes) }),
        ..Report::default()
    };
    report.heap.live_bytes = bytes;
    report
}

/// A page on disk, as people open it.
struct Page(tempfile::TempDir);

impl Page {
    fn of(report: &Report) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("core.html"), page(report).unwrap()).unwrap();
        Self(directory)
    }

    fn url(&self) -> String {
        format!("file://{}/core.html", self.0.path().display())
    }
}

/// What must hold for every page in every window.
fn look(chromium: &mut Chromium, page: &Page) -> Value {
    chromium.settle();
    let seen = chromium.evaluate(PROBE);
    assert_eq!(chromium.complaints(), [""; 0], "{seen:#}");
    assert_eq!(chromium.requests(), [page.url()], "{seen:#}");
    assert_eq!((&seen["overflow"], &seen["outside"]), (&0.into(), &0.into()), "{seen:#}");
    seen
}

fn share(seen: &Value) -> f64 {
    seen["covered"].as_f64().unwrap()
}

#[test]
fn boxes_fill_their_place_on_phones_and_desktops_by_day_and_by_night() {
    let mut chromium = Chromium::start();
    let page = Page::of(&report("Session"));
    for (size, scheme) in [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")] {
        chromium.open(&page.url(), size, scheme);
        let seen = look(&mut chromium, &page);
        assert_eq!(seen["boxes"], 31, "{seen:#}");
        assert!((0.97..=1.01).contains(&share(&seen)), "{seen:#}");
        assert_eq!(seen["background"] == "rgb(16, 19, 23)", scheme == "dark", "{seen:#}");
        let text = seen["text"].as_str().unwrap();
        for part in
            ["SIGABRT in Session", "the file is cut off", "index.js:17:3", "100000 × Session", ".cache"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn keys_lead_into_boxes_and_out_and_search_finds_rows() {
    let mut chromium = Chromium::start();
    let page = Page::of(&report("Session"));
    chromium.open(&page.url(), DESKTOP, "light");
    let all = look(&mut chromium, &page);
    chromium.evaluate("document.querySelector('#boxes button').focus()");
    chromium.key("Enter");
    let inside = look(&mut chromium, &page);
    assert_eq!((&inside["boxes"], inside["crumbs"].as_array().unwrap().len()), (&1.into(), 2), "{inside:#}");
    assert!(inside["focused"].as_str().unwrap().starts_with("Map @c0de1, 40.0 MB"), "{inside:#}");
    chromium.key("Enter");
    let deeper = look(&mut chromium, &page);
    let labels = deeper["labels"].as_array().unwrap();
    assert!(labels[0].as_str().unwrap().starts_with("100000 × Session, 30.0 MB"), "{deeper:#}");
    chromium.key("Backspace");
    chromium.key("Escape");
    let out = look(&mut chromium, &page);
    assert_eq!((&out["labels"], &out["crumbs"]), (&all["labels"], &all["crumbs"]));

    let search = |text: &str| {
        format!(
            "(() => {{ const input = document.getElementById('search'); input.value = '{text}';
            input.dispatchEvent(new Event('input')); }})()"
        )
    };
    assert_eq!(out["rows"], 31);
    chromium.evaluate(&search("sess"));
    let found = look(&mut chromium, &page);
    assert_eq!((&found["rows"], &found["hits"]), (&1.into(), &"1 of 31".into()));
    chromium.evaluate(&search(""));
    assert_eq!(look(&mut chromium, &page)["rows"], 31);
}

#[test]
fn nothing_of_a_heap_becomes_a_part_of_the_page() {
    let evil =
        "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><!--\u{2028}\"'&{{7*7}}";
    let mut chromium = Chromium::start();
    let page = Page::of(&report(evil));
    chromium.open(&page.url(), DESKTOP, "light");
    let seen = look(&mut chromium, &page);
    assert_eq!(
        (&seen["hacked"], &seen["images"], &seen["scripts"]),
        (&"undefined".into(), &0.into(), &2.into())
    );
    assert!(seen["text"].as_str().unwrap().contains("window.hacked"));
}

#[test]
fn a_report_without_sizes_has_a_page_without_boxes() {
    let mut chromium = Chromium::start();
    let mut report = report("Session");
    (report.tree, report.suspects, report.retainers) = (None, Vec::new(), Vec::new());
    report.refused = Some("for a reason".to_owned());
    let page = Page::of(&report);
    chromium.open(&page.url(), PHONE, "light");
    chromium.settle();
    assert_eq!(chromium.complaints(), [""; 0]);
    let text = chromium.evaluate("document.body.innerText");
    assert!(text.as_str().unwrap().contains("no retained sizes: for a reason"), "{text}");
    assert_eq!(chromium.evaluate("document.getElementById('boxes')"), Value::Null);
}
