//! The gzip filter.

use std::io::{BufRead, Read};
use std::thread;

use hasten_telemetry::{Event, Reason};
use hasten_tests::http::{Answer, Essence, Unpacker, read_chunk, read_head, unpack};
use serde_json::{Value, json};

use crate::subject::{Envoy, How, Place, RELEASES, build};

/// Bodies in all ways in which they reach the filter: whole, in pieces, long, empty, and compressed already.
pub(crate) const PATHS: [&str; 12] = [
    "/whole/1",
    "/whole/100",
    "/whole/1500",
    "/whole/9000",
    "/whole/20000",
    "/whole/100000",
    "/whole/1500000",
    "/length/0",
    "/length/100000",
    "/chunked/100",
    "/chunked/3000000",
    "/packed/20000",
];

/// How many of them certainly come in pieces that are long enough, and their bytes; where the window is larger, only those
/// that come whole.
const OURS: (u64, u64) = (4, 9000 + 20_000 + 100_000 + 1_500_000);
const OURS_IN_LARGE_WINDOWS: (u64, u64) = (2, 100_000 + 1_500_000);

pub(crate) fn all(envoy: &Envoy) -> Vec<Answer> {
    PATHS
        .iter()
        .map(|path| envoy.client().get(path).unwrap_or_else(|error| panic!("{path}: {error}")))
        .collect()
}

/// An answer without what depends on the time.
pub(crate) fn essence(answer: &Answer) -> Essence {
    let mut essence = answer.essence();
    essence.headers.retain(|(name, _)| name != "x-envoy-upstream-service-time");
    essence
}

/// The bytes of bodies that come whole: those of others depend on the pieces in which they reach Envoy.
pub(crate) fn whole(envoy: &Envoy) -> Vec<Vec<u8>> {
    let get = |path| envoy.client().get(path).unwrap_or_else(|error| panic!("{path}: {error}")).body;
    ["/whole/100", "/whole/9000", "/whole/100000"].map(get).to_vec()
}

/// Asserts that the answers say the same, and that ours are not larger.
pub(crate) fn compare(stock: &[Answer], ours: &[Answer], what: &str) {
    for ((stock, ours), path) in stock.iter().zip(ours).zip(PATHS) {
        assert_eq!(essence(ours), essence(stock), "{what} {path}");
        let (len, limit) = (ours.body.len(), stock.body.len() * 101 / 100 + 24);
        assert!(len <= limit, "{what} {path}: {len} bytes, stock {}", stock.body.len());
    }
}

/// Starts both, stock and accelerated, with these settings.
fn pair(release: &str, gzip: &Value) -> (Place, Envoy, Envoy) {
    let place = Place::new();
    let stock = place.start(&build(release), gzip, How::Stock);
    let accelerated = place.start(&build(release), gzip, How::Accelerated(&[("HASTEN_GZIP_VERIFY", "1")]));
    (place, stock, accelerated)
}

#[test]
fn answers_are_the_same_and_none_is_larger() {
    let settings = [
        json!({}),
        json!({"compression_level": "COMPRESSION_LEVEL_1"}),
        json!({"compression_level": "COMPRESSION_LEVEL_5", "window_bits": 15, "memory_level": 9}),
        json!({"compression_level": "COMPRESSION_LEVEL_4", "window_bits": 13, "memory_level": 4, "chunk_size": 4096}),
    ];
    let each = settings.into_iter().flat_map(|gzip| RELEASES.map(|release| (release, gzip.clone())));
    let levels = [(2, 12), (3, 12), (5, 12), (6, 12), (1, 15), (2, 15), (3, 15), (4, 15), (5, 15)].map(|(level, window)| {
        json!({"compression_level": format!("COMPRESSION_LEVEL_{level}"), "window_bits": window})
    });
    for (release, gzip) in each.chain(levels.map(|gzip| (RELEASES[0], gzip))) {
        let what = format!("{release} {gzip}");
        let (_place, stock, accelerated) = pair(release, &gzip);
        compare(&all(&stock), &all(&accelerated), &what);
        let counters = accelerated.counters();
        let is_large = gzip["window_bits"].as_u64().is_some_and(|bits| bits > 12);
        let (streams, bytes) = if is_large { OURS_IN_LARGE_WINDOWS } else { OURS };
        assert!(counters[Event::DeflateStreams] >= streams, "{what}");
        assert!(counters[Event::DeflateBytesIn] >= bytes, "{what}");
        // The bodies of 1, 100 and 1500 bytes, and those that say that they are empty.
        assert!(counters[Reason::SmallFlushes] >= 3, "{what}");
        assert_eq!(counters[Event::DeflateMismatch], 0, "{what}");
        assert_eq!(accelerated.note(), "every result is inflated again and compared", "{what}");
        accelerated.finish();
    }
}

/// What no engine does better is made by the original compressor, byte for byte.
#[test]
fn unusual_settings_are_left_to_the_original() {
    let settings = [
        json!({"compression_strategy": "HUFFMAN_ONLY"}),
        json!({"memory_level": 1}),
        json!({"window_bits": 9}),
        json!({"window_bits": 15}),
    ];
    for gzip in settings {
        let (_place, stock, accelerated) = pair(RELEASES[0], &gzip);
        assert!(whole(&accelerated) == whole(&stock), "{gzip}");
        let counters = accelerated.counters();
        assert_eq!(counters[Event::DeflateStreams], 0, "{gzip}");
        assert!(counters[Reason::UnusualStrategy] >= 4, "{gzip}");
    }
}

/// Asserts that each line arrives before the next is said, and returns the body.
fn follow(place: &Place, envoy: &Envoy, lines: &[String]) {
    let mut answer = envoy.client().ask("/lines").unwrap();
    let (mut packed, mut unpacker, mut expected) = (Vec::new(), Unpacker::new(), String::new());
    for (number, line) in lines.iter().enumerate() {
        place.upstream.say(line);
        expected.push_str(line);
        if number == 0 {
            let (_, headers) = read_head(&mut answer).unwrap();
            assert!(headers.iter().any(|(name, value)| name == "content-encoding" && value == "gzip"));
        }
        while unpacker.unpack(&packed).len() < expected.len() {
            assert!(read_chunk(&mut answer, &mut packed).unwrap(), "line {number} does not arrive");
        }
    }
    place.upstream.hush();
    while read_chunk(&mut answer, &mut packed).unwrap() {}
    assert_eq!(unpacker.unpack(&packed), expected.as_bytes());
    assert!(answer.fill_buf().unwrap().is_empty());
    // The checksum, too.
    assert_eq!(unpack(&packed).unwrap(), expected.as_bytes());
}

/// A line of this length, roughly.
fn line(number: usize, length: usize) -> String {
    const SAID: &str = "something happened ";
    format!("event {number}: {}\n", SAID.repeat(length.div_ceil(SAID.len())))
}

/// Nothing that has been received waits for more.
#[test]
fn lines_arrive_when_they_are_said() {
    let place = Place::new();
    let envoy = place.start(&build(RELEASES[0]), &json!({}), How::Accelerated(&[]));
    let lines: Vec<_> = (0..60).map(|number| line(number, number % 7 * 19)).collect();
    follow(&place, &envoy, &lines);
    assert_eq!(envoy.counters()[Event::DeflateStreams], 0, "short lines are the original's");
}

/// A body that begins with a long piece is an engine's, and stays ours when the pieces become short, and long again.
#[test]
fn lines_arrive_behind_a_long_piece() {
    const LENGTHS: [usize; 12] = [60_000, 20, 9000, 30, 5, 0, 700, 20_000, 3000, 1, 150_000, 10];
    for release in RELEASES {
        for level in ["1", "2", "4", "6"] {
            let place = Place::new();
            let gzip = json!({"compression_level": format!("COMPRESSION_LEVEL_{level}")});
            let envoy = place.start(&build(release), &gzip, How::Accelerated(&[("HASTEN_GZIP_VERIFY", "1")]));
            for count in [1, 2, 3, 4, LENGTHS.len()] {
                let lines: Vec<_> =
                    LENGTHS[..count].iter().enumerate().map(|(n, length)| line(n, *length)).collect();
                follow(&place, &envoy, &lines);
            }
            let counters = envoy.counters();
            assert!(counters[Event::DeflateStreams] >= 5, "{release} {level}");
            assert!(counters[Event::DeflateZlibRs] > 0, "{release} {level}: no habit of short pieces");
            assert_eq!(counters[Event::DeflateMismatch], 0, "{release} {level}");
        }
    }
}

/// Clients that go away in the middle of a body leave nothing behind.
#[test]
fn abandoned_bodies_are_freed() {
    let place = Place::new();
    let envoy = place.start(&build(RELEASES[0]), &json!({}), How::Accelerated(&[]));
    let abandon = |count: usize| {
        for _ in 0..count {
            let mut answer = envoy.client().ask("/chunked/3000000").unwrap();
            let mut some = [0; 4000];
            answer.read_exact(&mut some).unwrap();
        }
    };
    abandon(100);
    let before = envoy.memory();
    abandon(400);
    let grown = envoy.memory().saturating_sub(before);
    let counters = envoy.counters();
    assert!(counters[Reason::SmallFlushes] + counters[Event::DeflateStreams] >= 500);
    // A stream of zlib takes more than 40 KiB: 400 of them would be 16 MiB, besides what waits in front of them.
    assert!(grown < 8000, "{grown} KiB more than after the first hundred");
    envoy.finish();
}

#[test]
fn both_workers_compress_at_once() {
    let (_place, stock, accelerated) =
        pair(RELEASES[0], &json!({"compression_level": "COMPRESSION_LEVEL_5"}));
    let expected: Vec<_> = all(&stock).iter().map(essence).collect();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let ours: Vec<_> = all(&accelerated).iter().map(essence).collect();
                    assert!(ours == expected, "an answer differs");
                }
            });
        }
    });
    accelerated.finish();
}

#[test]
fn switched_off_is_stock() {
    let place = Place::new();
    let build = build(RELEASES[0]);
    let stock = whole(&place.start(&build, &json!({}), How::Stock));
    for variable in [
        ("HASTEN_DISABLE", "gzip"),
        ("HASTEN_DISABLE", "envoy"),
        ("HASTEN_DISABLE", "all"),
        ("HASTEN_GZIP_ENGINES", "original"),
    ] {
        let envoy = place.start(&build, &json!({}), How::Accelerated(&[variable]));
        assert!(whole(&envoy) == stock, "{variable:?}");
    }
}
