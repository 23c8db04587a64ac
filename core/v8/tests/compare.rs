//! The reference case side by side: the same program, semi-spaces of other sizes; and one trace's verdict.

use std::fmt::Write;
use std::path::Path;

use hasten_v8::compare::{Comparison, Row, Unit};
use hasten_v8::parse;
use hasten_v8::summary::{Summary, Trend};
use hasten_v8::verdict::{Headline, Tone};

fn read(text: &str, name: &str) -> Summary {
    parse::read(text.as_bytes(), name, &mut |_| {}).expect("a trace")
}

fn fixture(name: &str) -> Summary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read(&std::fs::read_to_string(path).unwrap(), name)
}

/// A scavenge a second for two minutes, each as long as `pause_ms`, each after `allocated` MB.
fn steady(name: &str, pause_ms: f64, allocated: f64) -> Summary {
    let mut text = String::new();
    for second in 1..=120 {
        let _ = writeln!(
            text,
            "[7:0x7]  {second}000 ms: Scavenge {:.1} (80.0) -> 20.0 (80.0) MB, {pause_ms:.2} / 0.00 ms  \
             (average mu = 1.000, current mu = 1.000) allocation failure; ",
            20.0 + allocated
        );
    }
    read(&text, name)
}

fn row<'a>(comparison: &'a Comparison, id: &str) -> &'a Row {
    comparison.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn ratios_are_against_the_first_trace() {
    let traces = ["v22.trace-gc.txt", "v22.trace-gc.semi64.txt"].map(fixture);
    let comparison = Comparison::of(&traces).unwrap();
    let names: Vec<_> = comparison.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["v22.trace-gc.txt", "v22.trace-gc.semi64.txt"]);
    let scavenges = row(&comparison, "scavenges");
    assert_eq!((scavenges.unit, scavenges.values.len()), (Unit::Count, 2));
    assert_eq!(
        scavenges.ratios,
        [Some(1.0), Some(scavenges.values[1].unwrap() / scavenges.values[0].unwrap())]
    );
    assert!(scavenges.ratios[1].unwrap() < 0.5, "{scavenges:?}");
    for row in &comparison.rows {
        assert_eq!((row.values.len(), row.ratios.len()), (2, 2), "{row:?}");
    }
}

#[test]
fn one_trace_is_no_comparison_and_a_missing_value_has_no_ratio() {
    assert!(Comparison::of(&[fixture("v20.trace-gc.txt")]).is_none());
    let traces = [steady("a", 1.0, 16.0), fixture("v20.trace-gc.txt")];
    let comparison = Comparison::of(&traces).unwrap();
    // The first trace has no full collection: a count of none is 0, a total of none does not exist.
    assert_eq!((row(&comparison, "full").values[0], row(&comparison, "full").ratios[1]), (Some(0.0), None));
    assert_eq!(row(&comparison, "full_total_ms").values[0], None);
}

#[test]
fn the_headline_names_the_trace_that_pauses_least() {
    let headline = |traces: &[Summary]| Comparison::of(traces).unwrap().headline();
    let (slow, fast) = (steady("logs/slow.log", 10.0, 16.0), steady("logs/fast.log", 4.0, 16.0));
    let text = "fast.log pauses 0.40× as long as slow.log per GiB allocated";
    assert_eq!(headline(&[slow.clone(), fast.clone()]), Headline { tone: Tone::Good, text: text.to_owned() });
    let text = "fast.log pauses least per GiB allocated".to_owned();
    assert_eq!(headline(&[fast, slow.clone()]), Headline { tone: Tone::Notable, text });
    let same = headline(&[slow.clone(), steady("same.log", 10.1, 16.0)]);
    assert_eq!(
        (same.tone, same.text.as_str()),
        (Tone::Unknown, "No difference in time in pauses per GiB allocated")
    );
    // Having less to do is not an achievement.
    let idle = headline(&[slow, steady("idle.log", 8.0, 4.0)]);
    assert_eq!(idle.tone, Tone::Unknown);
    assert!(
        idle.text.starts_with("idle.log pauses the smallest part of its time, slow.log"),
        "{}",
        idle.text
    );
}

#[test]
fn names_are_as_long_as_they_must_be() {
    let traces = ["a/gc.log", "b/gc.log"].map(|name| steady(name, 1.0, 16.0));
    let columns = Comparison::of(&traces).unwrap().columns;
    assert_eq!([&columns[0].name, &columns[1].name], ["a/gc.log", "b/gc.log"]);
}

#[test]
fn the_worst_thing_comes_first() {
    let headline = |summary: &Summary| (Headline::of(summary).tone, Headline::of(summary).text);
    let cheap = steady("gc.log", 1.0, 16.0);
    assert_eq!(
        headline(&cheap),
        (Tone::Good, "Collections cost little: 0.1 % of the time, for up to 1.00 ms".to_owned())
    );
    let (tone, text) = headline(&steady("gc.log", 40.0, 16.0));
    assert_eq!(
        (tone, text.as_str()),
        (Tone::Notable, "Collections stop the program 4.0 % of the time, for up to 40.0 ms")
    );
    let (tone, text) = headline(&steady("gc.log", 150.0, 16.0));
    assert_eq!(
        (tone, text.as_str()),
        (Tone::Bad, "Collections stop the program 15 % of the time, for up to 150 ms")
    );

    let mut seldom = cheap.clone();
    seldom.isolates[0].pauses.max_ms = 150.0;
    let text = "Collections cost little, but stop the program for up to 150 ms";
    assert_eq!(headline(&seldom), (Tone::Notable, text.to_owned()));

    let mut leaking = cheap;
    let slope = 64.0 * f64::from(1 << 20);
    leaking.isolates[0].heap.trend = Some(Trend {
        bytes_per_hour: slope,
        low: slope / 2.0,
        high: slope * 2.0,
        collections: 20,
        is_suspicious: true,
    });
    let text = "What survives grows by 64 MiB an hour: perhaps a leak";
    assert_eq!(headline(&leaking), (Tone::Bad, text.to_owned()));

    let dead = fixture("v20.oom.txt");
    assert_eq!(headline(&dead), (Tone::Bad, "The heap was full, and the process ended".to_owned()));
    assert_eq!(headline(&read("nothing\n", "gc.log")).0, Tone::Unknown);
}
