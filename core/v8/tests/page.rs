//! The page as text: bounded, self-contained, and immune to the contents of a trace. tests/tests/gc_page looks at it in
//! a browser.

use std::fmt::Write;
use std::path::Path;

use hasten_v8::advice::{Facts, advise};
use hasten_v8::page::page;
use hasten_v8::parse;
use hasten_v8::summary::Summary;

fn read(text: &str, name: &str) -> Summary {
    parse::read(text.as_bytes(), name, &mut |_| {}).expect("a trace")
}

fn fixture(name: &str) -> Summary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read(&std::fs::read_to_string(path).unwrap(), name)
}

fn render(traces: &[Summary]) -> String {
    page(traces, &advise(traces, &Facts::default())).unwrap()
}

/// The data that the charts are drawn from.
fn data(page: &str) -> serde_json::Value {
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(json).unwrap()
}

/// A cluster of many processes that collect for hours.
fn long_trace(processes: u32, collections: u32) -> String {
    let mut text = String::new();
    for at in 0..collections {
        for pid in 1..=processes {
            let time = at * 1000 + pid;
            let (kind, reason) = match at % 50 {
                0 => ("Mark-Compact", "finalize incremental marking via stack guard"),
                _ => ("Scavenge", "allocation failure"),
            };
            let used = 100.0 + f64::from(at % 50);
            let _ = writeln!(
                text,
                "[{pid}:0x{pid:x}]  {time} ms: {kind} {:.1} ({:.1}) -> {used:.1} ({:.1}) MB, {}.{} / 0.00 ms  \
                 (average mu = 0.9, current mu = 0.9) {reason};",
                used + 16.0,
                used + 40.0,
                used + 40.0,
                1 + at * 31 % 90,
                at % 10,
            );
        }
    }
    text
}

#[test]
fn a_page_stays_below_a_megabyte_whatever_the_traces() {
    let summary = read(&long_trace(40, 800), "cluster.log");
    assert_eq!(summary.isolates.len() as u64 + summary.rest.map_or(0, |rest| rest.isolates), 40);
    let longest = read(&long_trace(1, 40_000), "long.log");
    let long_name = "very/".repeat(800) + "long.log";
    let many: Vec<_> =
        (0..16).map(|at| Summary { source: format!("{at}/{long_name}"), ..summary.clone() }).collect();
    for traces in [&[summary][..], &[longest], &many] {
        let page = render(traces);
        assert!(page.len() < 1 << 20, "{} traces: {} bytes", traces.len(), page.len());
        assert!(page.len() > 150_000, "{} bytes can hold no such trace", page.len());
    }
}

#[test]
fn every_collection_of_a_short_trace_is_in_its_charts() {
    let summary = fixture("v24.trace-gc-nvp.txt");
    let count = summary.isolates[0].pauses.count;
    let data = data(&render(&[summary]));
    let heap = &data["traces"][0]["heaps"][0];
    assert_eq!(heap["is_complete"], true);
    assert_eq!(heap["pauses"]["ms"].as_array().unwrap().len() as u64, count);
    let of_kinds: u64 =
        heap["histograms"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).sum();
    assert_eq!(of_kinds, count);
}

#[test]
fn a_page_asks_nobody_for_anything() {
    let page = render(&[fixture("v20.trace-gc.txt"), fixture("v20.trace-gc.semi64.txt")]);
    assert!(page.contains("default-src 'none'"));
    for request in
        ["<link", "<img", "<iframe", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!page.contains(request), "{request}");
    }
    let addresses = page.matches("http").count() - page.matches("http-equiv").count();
    assert!(addresses <= page.matches("https://github.com/leeoniya/uPlot").count(), "{addresses} addresses");
}

#[test]
fn markup_in_a_trace_is_text() {
    let evil = "</script><script>alert(1)</script><!--{{7*7}}{% raw %}\u{2028}";
    let text =
        format!("{}[1:0x1]  99 ms: Scavenge {evil}\n", long_trace(1, 20).replace("allocation failure", evil));
    let page = render(&[read(&text, evil)]);
    assert!(!page.contains("<script>alert") && !page.contains("<!--"), "markup");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("{{7*7}}"), "what a trace says is shown, not evaluated");
}

#[test]
fn nothing_is_a_page_too() {
    let page = render(&[]);
    assert!(page.contains("No trace") && page.ends_with("</html>"));
}
