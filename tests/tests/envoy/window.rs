//! The gzip filter with the operator's leave to use the largest window.

use std::fs;
use std::path::Path;
use std::process::Command;

use hasten_bench::gzip::corpus::Corpus;
use hasten_telemetry::{Event, Reason};
use hasten_tests::http::unpack;
use hasten_tests::product;
use serde_json::{Value, json};

use crate::gzip::{all, compare, whole};
use crate::subject::{Envoy, How, Place, RELEASES, build};

const FULL: (&str, &str) = ("HASTEN_GZIP_WINDOW", "full");
const VERIFY: (&str, &str) = ("HASTEN_GZIP_VERIFY", "1");

/// A body of the corpus, and pieces of it: what fits a small window in them is a larger part of a short one.
fn bodies() -> Vec<(String, Vec<u8>)> {
    let pieces = |name: &str, bytes: &[u8]| {
        let lengths =
            [9000, 20_000, 50_000, 100_000, bytes.len()].into_iter().filter(|length| *length <= bytes.len());
        lengths
            .map(|length| {
                (format!("{name}/{length}"), bytes[(bytes.len() - length) / 2..][..length].to_vec())
            })
            .collect::<Vec<_>>()
    };
    Corpus::of_this_machine().0.iter().flat_map(|file| pieces(&file.name, &file.bytes)).collect()
}

/// An Envoy that answers with each of the bodies, whole.
fn start(place: &Place, bodies: &[(String, Vec<u8>)], gzip: &Value, how: How) -> Envoy {
    let config = |socket: &Path| {
        let mut config = place.config(socket, gzip);
        let manager =
            &mut config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
        let routes = manager["route_config"]["virtual_hosts"][0]["routes"].as_array_mut().expect("routes");
        let own = bodies.iter().map(|(name, bytes)| {
            let file = place.path().join(name.replace('/', "-"));
            fs::write(&file, bytes).expect("a body");
            json!({
                "match": {"path": format!("/corpus/{name}")},
                "direct_response": {"status": 200, "body": {"filename": file}},
                "response_headers_to_add": [{"header": {"key": "content-type", "value": "text/html"}}],
            })
        });
        routes.splice(0..0, own);
        config
    };
    place.launch(&build(RELEASES[0]), config, how).wait_for("/whole/1")
}

fn level(level: u8, window: u8) -> Value {
    json!({"compression_level": format!("COMPRESSION_LEVEL_{level}"), "window_bits": window})
}

/// The packed lengths of the bodies, which are checked.
fn lengths(envoy: &Envoy, bodies: &[(String, Vec<u8>)]) -> Vec<usize> {
    let length = |(name, bytes): &(String, Vec<u8>)| {
        let answer = envoy.client().get(&format!("/corpus/{name}")).expect(name);
        assert!(answer.header("content-encoding").is_some_and(|coding| coding == "gzip"), "{name}");
        // The decoder has 32 KiB.
        assert!(unpack(&answer.body).expect(name) == *bytes, "{name}: another body");
        answer.body.len()
    };
    bodies.iter().map(length).collect()
}

#[test]
fn no_body_becomes_larger_and_all_together_much_smaller() {
    let bodies = bodies();
    assert!(bodies.len() > 40, "{} bodies", bodies.len());
    for gzip in [
        json!({}),
        level(1, 12),
        level(2, 12),
        level(3, 12),
        level(4, 12),
        level(5, 12),
        level(6, 13),
        level(2, 14),
    ] {
        let place = Place::new();
        let stock = lengths(&start(&place, &bodies, &gzip, How::Stock), &bodies);
        let accelerated = start(&place, &bodies, &gzip, How::Accelerated(&[FULL, VERIFY]));
        let ours = lengths(&accelerated, &bodies);
        for ((stock, ours), (name, _)) in stock.iter().zip(&ours).zip(&bodies) {
            assert!(*ours <= stock * 101 / 100 + 24, "{gzip} {name}: {ours} bytes, stock {stock}");
        }
        let [stock, ours] = [stock, ours].map(|lengths| lengths.iter().sum::<usize>());
        assert!(ours < stock, "{gzip}: {ours} bytes, stock {stock}");
        let counters = accelerated.counters();
        let is_default = gzip.get("window_bits").is_none_or(|bits| *bits == 12);
        assert!(!is_default || counters[Event::DeflateIsal] > 500_000, "{gzip}: {counters:?}");
        assert_eq!(counters[Event::DeflateMismatch], 0, "{gzip}");
        accelerated.finish();
    }
}

/// Bodies in pieces, too; and those that begin with a short piece stay the original's.
#[test]
fn answers_say_the_same() {
    for gzip in [json!({}), level(1, 12), level(3, 12)] {
        let place = Place::new();
        let stock = place.start(&build(RELEASES[0]), &gzip, How::Stock);
        let accelerated = place.start(&build(RELEASES[0]), &gzip, How::Accelerated(&[FULL, VERIFY]));
        compare(&all(&stock), &all(&accelerated), &gzip.to_string());
        let counters = accelerated.counters();
        assert!(
            counters[Event::DeflateStreams] >= 4 && counters[Reason::SmallFlushes] >= 3,
            "{gzip}: {counters:?}"
        );
        assert_eq!(counters[Event::DeflateMismatch], 0, "{gzip}");
        accelerated.finish();
    }
}

/// Without the leave nothing changes, byte for byte; with it, what fits the small window stays the same.
#[test]
fn without_leave_nothing_changes() {
    let place = Place::new();
    let page = generated("html/100KB");
    let packed = |variables| {
        let envoy = start(&place, &page, &json!({}), How::Accelerated(variables));
        let page = envoy.client().get(&format!("/corpus/{}", page[0].0)).expect("an answer").body;
        let bodies = (whole(&envoy), page);
        assert!(envoy.counters()[Event::DeflateStreams] > 0, "{variables:?}");
        envoy.finish();
        bodies
    };
    let without = packed(&[]);
    assert!(packed(&[("HASTEN_GZIP_WINDOW", "configured")]) == without);
    let full = packed(&[FULL]);
    assert!(full.0[0] == without.0[0]);
    let [full, without] = [full.1.len(), without.1.len()];
    assert!(full < without, "{full} bytes, {without} without");
}

/// A file of the corpus.
fn generated(name: &str) -> Vec<(String, Vec<u8>)> {
    let files = Corpus::of_this_machine().0.into_iter().filter(|file| file.name == name);
    files.map(|file| (file.name, file.bytes)).collect()
}

#[test]
fn other_values_are_refused() {
    let output = Command::new(product::hasten())
        .args(["run", "--dry-run", "--"])
        .arg(build(RELEASES[0]))
        .env("HASTEN_GZIP_WINDOW", "15")
        .output()
        .expect("hasten");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("HASTEN_GZIP_WINDOW: `15` is neither `configured` nor `full`"), "{text}");
}
