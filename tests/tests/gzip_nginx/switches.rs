//! The user's settings: verification, engines, and the switch that turns everything off.

use hasten_telemetry::{Counters, Event};
use hasten_tests::site::Site;
use hasten_tests::{Subject, bodies};

const LENGTHS: [usize; 4] = [20, 5000, 100_000, 1_000_000];

/// Serves some files at some levels, which must be right; returns the counters.
fn counted(variable: &'static str, value: &'static str) -> Counters {
    let mut site = Site::new().env(variable, value);
    for length in LENGTHS {
        site = site.file(&format!("{length}.html"), &bodies::page(length));
    }
    for level in [1, 4, 6, 9] {
        site = site.location(&level.to_string(), &format!("gzip_comp_level {level};"));
    }
    let server = Subject::accelerated(&site.spec());
    for level in [1, 4, 6, 9] {
        for length in LENGTHS {
            let answer = site.client().get(&format!("/{level}/{length}.html")).unwrap();
            assert!(
                answer.is_packed() && answer.plain().unwrap() == bodies::page(length),
                "/{level}/{length}"
            );
        }
    }
    // A disabled library counts nothing, and has nothing to count with.
    let pages = hasten_telemetry::pages_of(server.pid()).unwrap_or_default();
    let mut counters = Counters::default();
    pages.iter().for_each(|page| counters += &page.read().unwrap().total());
    server.finish();
    counters
}

const ALL_BYTES: u64 = {
    let mut sum = 0;
    let mut i = 0;
    while i < LENGTHS.len() {
        sum += LENGTHS[i] as u64;
        i += 1;
    }
    4 * sum
};

/// The total of the smallest bodies. For those nginx gives zlib so little memory that they are left to it.
const SMALLEST: u64 = 4 * LENGTHS[0] as u64;

#[test]
fn everything_is_counted() {
    use Event::{DeflateBucket, DeflateIsal, DeflateLibdeflate, DeflateOriginal, DeflateZlibRs};
    let counters = counted("HASTEN_GZIP_VERIFY", "0");
    assert_eq!(counters[Event::DeflateStreams], 4 * (LENGTHS.len() as u64 - 1));
    assert_eq!(counters[Event::DeflateBytesIn], ALL_BYTES - SMALLEST);
    let engines: u64 = [DeflateIsal, DeflateLibdeflate, DeflateBucket, DeflateOriginal, DeflateZlibRs]
        .iter()
        .map(|e| counters[*e])
        .sum();
    assert_eq!(engines, ALL_BYTES - SMALLEST);
    assert!(
        [DeflateIsal, DeflateLibdeflate, DeflateBucket, DeflateZlibRs]
            .map(|e| counters[e])
            .iter()
            .sum::<u64>()
            > ALL_BYTES / 2
    );
    assert!((1..ALL_BYTES).contains(&counters[Event::DeflateBytesOut]));
    assert_eq!(counters[Event::DeflateVerified], 0);
}

#[test]
fn everything_is_verified() {
    let counters = counted("HASTEN_GZIP_VERIFY", "1");
    assert!(counters[Event::DeflateVerified] > ALL_BYTES / 2, "{}", counters[Event::DeflateVerified]);
    assert_eq!((counters[Event::DeflateMismatch], counters[Event::BreakerOpened]), (0, 0));
}

#[test]
fn the_kill_switch() {
    let counters = counted("HASTEN_DISABLE", "gzip");
    assert_eq!(counters, Counters::default());
}

#[test]
fn one_engine_at_a_time() {
    use Event::{DeflateBucket, DeflateIsal, DeflateLibdeflate, DeflateZlibRs};
    for (engines, event) in [
        ("isal", DeflateIsal),
        ("libdeflate", DeflateLibdeflate),
        ("bucket", DeflateBucket),
        ("zlib-rs", DeflateZlibRs),
    ] {
        let counters = counted("HASTEN_GZIP_ENGINES", engines);
        let others = [DeflateIsal, DeflateLibdeflate, DeflateBucket, DeflateZlibRs]
            .iter()
            .filter(|other| **other != event);
        assert!(others.map(|other| counters[*other]).sum::<u64>() == 0, "others than {engines}");
        // The original does what an engine cannot.
        let all = counters[event] + counters[Event::DeflateOriginal];
        assert!((ALL_BYTES - SMALLEST..=ALL_BYTES).contains(&all), "{engines}: {all} of {ALL_BYTES}");
    }
    assert_eq!(counted("HASTEN_GZIP_ENGINES", "original"), Counters::default());
}
