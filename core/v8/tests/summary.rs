//! A summary's conclusions, compared with known facts.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use hasten_v8::event::Kind;
use hasten_v8::parse;
use hasten_v8::summary::{IsolateSummary, Summary};

fn read(text: impl AsRef<[u8]>) -> Summary {
    parse::read(text.as_ref(), "test", &mut |_| {}).expect("a trace")
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::read_to_string(path).expect("a fixture")
}

fn only(summary: &Summary) -> &IsolateSummary {
    let [heap] = &summary.isolates[..] else { panic!("{} heaps", summary.isolates.len()) };
    heap
}

/// A collection as Node 20 writes it; sizes in MiB.
fn line(at_ms: u64, kind: &str, before: f64, after: f64, pause_ms: f64) -> String {
    format!(
        "[1:0x1f]  {at_ms:>7} ms: {kind} {before:.1} ({before:.1}) -> {after:.1} ({after:.1}) MB, {pause_ms:.2} / 0.00 ms  \
         (average mu = 1.000, current mu = 1.000) task; \n"
    )
}

/// A pseudo-random number between 0 and 1.
fn noise(n: u64) -> f64 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1_u64 << 24) as f64
}

/// The same totals by other means: words between spaces, no parser.
#[test]
fn totals_agree_with_a_simple_count() {
    for name in [
        "v18.trace-gc.txt",
        "v20.trace-gc.txt",
        "v22.trace-gc.txt",
        "v24.trace-gc.txt",
        "v26.trace-gc.semi64.txt",
    ] {
        let text = fixture(name);
        let (mut scavenges, mut fulls, mut pause_ms, mut allocated) = (0, 0, 0.0, 0.0);
        let mut used = None;
        for line in text.lines() {
            let number =
                |word: Option<&str>| word.and_then(|word| word.parse::<f64>().ok()).expect("a number");
            scavenges += usize::from(line.contains(" Scavenge "));
            fulls += usize::from(line.contains(" Mark-"));
            let (before, after) = line.split_once(" -> ").expect("an arrow");
            pause_ms += number(
                after.split(" / ").next().and_then(|text| text.rsplit(", ").next()?.split(' ').next_back()),
            );
            let before = number(before.rsplit(' ').nth(1));
            allocated += used.map_or(0.0, |used: f64| (before - used).max(0.0));
            used = Some(number(after.split(' ').next()));
        }
        let summary = read(text);
        let heap = only(&summary);
        let count = |kind| {
            heap.by_kind.iter().find(|one| one.kind == kind).map_or(0, |one| one.pauses.count as usize)
        };
        assert_eq!((count(Kind::Scavenge), count(Kind::MarkCompact)), (scavenges, fulls), "{name}");
        assert!((heap.pauses.total_ms - pause_ms).abs() < 1e-6, "{name}");
        let reported = heap.young.allocated_bytes.expect("allocation") as f64;
        assert!((reported - allocated * 1_048_576.0).abs() < 1000.0, "{name}: {reported}");
    }
}

/// What --trace-gc-nvp measures is inferred from the same trace with only sizes left.
#[test]
fn conclusions_are_near_what_is_measured() {
    for name in [
        "v18.trace-gc-nvp.txt",
        "v20.trace-gc-nvp.txt",
        "v22.trace-gc-nvp.txt",
        "v24.trace-gc-nvp.txt",
        "v26.trace-gc-nvp.txt",
    ] {
        let text = fixture(name);
        let measured = only(&read(&text)).young;
        let plain: String = parse::collections(text.as_bytes())
            .iter()
            .map(|one| {
                let kind = if one.kind == Kind::MarkCompact { "Mark-Compact" } else { "Scavenge" };
                let mib = |bytes: Option<u64>| bytes.expect("a size") as f64 / 1_048_576.0;
                line(one.at_ms as u64, kind, mib(one.used_before), mib(one.used_after), one.pause_ms)
            })
            .collect();
        let concluded = only(&read(plain)).young;
        assert!(measured.is_measured && !concluded.is_measured, "{name}");
        let near = |what: &str, a: f64, b: f64, share: f64| {
            assert!((a / b - 1.0).abs() <= share, "{name}: {what} {a} and {b}");
        };
        let both = |of: fn(&hasten_v8::summary::YoungSummary) -> Option<f64>| {
            (of(&concluded).expect("a figure"), of(&measured).expect("a figure"))
        };
        let (a, b) = both(|young| young.allocation_rate);
        near("allocation", a, b, 0.01);
        let (a, b) = both(|young| young.survival);
        near("survival", a, b, 0.1);
        let (a, b) = both(|young| young.promotion_rate);
        near("promotion", a, b, 0.3);
        assert_eq!(concluded.semi_space, measured.semi_space, "{name}");
    }
}

#[test]
fn percentiles_are_right_to_one_percent() {
    let mut pauses: Vec<f64> =
        (0..5000).map(|n| (10.0 * 0.01_f64.powf(noise(n)) * 100.0).round() / 100.0).collect();
    let text: String =
        pauses.iter().enumerate().map(|(n, ms)| line(n as u64 * 50, "Scavenge", 9.0, 3.0, *ms)).collect();
    let summary = read(text);
    let reported = only(&summary).pauses;
    pauses.sort_by(f64::total_cmp);
    for (reported, quantile) in
        [(reported.p50_ms, 0.5), (reported.p90_ms, 0.9), (reported.p99_ms, 0.99), (reported.max_ms, 1.0)]
    {
        let exact = pauses[((pauses.len() as f64 * quantile).ceil() as usize).max(1) - 1];
        assert!((reported / exact - 1.0).abs() <= 0.01, "{quantile}: {reported} for {exact}");
    }
    assert!((reported.mean_ms - pauses.iter().sum::<f64>() / 5000.0).abs() < 1e-9);
    let buckets = &only(&summary).by_kind[0].histogram;
    for (n, (edge, count)) in buckets.iter().enumerate() {
        let below = if n == 0 { 0.0 } else { buckets[n - 1].0 };
        let exact = pauses.iter().filter(|ms| (n == 0 || **ms > below) && **ms <= *edge).count();
        assert_eq!(*count, exact as u64, "up to {edge}");
    }
}

#[test]
fn the_share_of_pauses_is_of_the_time_between_the_first_and_the_last() {
    let text = line(1000, "Scavenge", 9.0, 3.0, 50.0)
        + &line(1500, "Scavenge", 9.0, 3.0, 20.0)
        + &line(2000, "Scavenge", 9.0, 3.0, 30.0);
    let summary = read(text.clone());
    let heap = only(&summary);
    assert_eq!(heap.pause_share, Some(0.05));
    assert_eq!(heap.young.allocation_rate, Some(12.0 * 1_048_576.0));
    // Each kind by the same definition: without the first pause.
    let parts: Vec<f64> = heap.by_kind.iter().filter_map(|kind| kind.pause_share).collect();
    assert_eq!(parts, [0.05]);
    let mixed = read(text + &line(3000, "Mark-Compact", 9.0, 3.0, 50.0));
    let heap = only(&mixed);
    let parts: Vec<f64> = heap.by_kind.iter().filter_map(|kind| kind.pause_share).collect();
    assert_eq!((heap.pause_share, parts.len()), (Some(0.05), 2));
    assert!((parts.iter().sum::<f64>() - 0.05).abs() < 1e-12, "{parts:?}");
    let one = read(line(1000, "Scavenge", 9.0, 3.0, 50.0));
    assert_eq!((only(&one).pause_share, only(&one).young.allocation_rate), (None, None));
    let at_once = read(line(7, "Scavenge", 9.0, 3.0, 5.0) + &line(8, "Scavenge", 9.0, 3.0, 1.4));
    assert_eq!(only(&at_once).pause_share, Some(1.0));
}

#[test]
fn slices_and_pauses_stay_few_and_keep_their_sums() {
    let count = 50_000_u64;
    let text: String = (0..count)
        .map(|n| {
            let kind = if n % 97 == 0 { "Mark-Compact" } else { "Scavenge" };
            line(n * 7, kind, 9.0, 3.0, if n == 31_000 { 77.0 } else { 1.0 })
        })
        .collect();
    let summary = read(text);
    let heap = only(&summary);
    let line = &heap.timeline;
    assert!(line.slices.len() <= 512 && line.slices.len() > 128, "{}", line.slices.len());
    assert!(line.pauses.len() <= 3 * 512 && !line.is_complete, "{}", line.pauses.len());
    assert!(line.pauses.contains(&(31_000.0 * 7.0, Kind::Scavenge, 77.0)), "the longest is kept");
    assert!(line.pauses.is_sorted_by(|a, b| a.0 <= b.0));
    assert_eq!(line.slices.iter().map(|slice| slice.collections).sum::<u64>(), count);
    assert_eq!(
        line.slices.iter().map(|slice| slice.allocated).sum::<u64>(),
        heap.young.allocated_bytes.unwrap_or(0)
    );
    assert!(
        (line.slices.iter().map(|slice| slice.pause_ms).sum::<f64>() - heap.pauses.total_ms).abs() < 1e-6
    );
    assert!(line.slices.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
    let rate = |slice: &hasten_v8::summary::Slice| slice.allocated as f64 / (slice.to_ms - slice.from_ms);
    let inner = &line.slices[1..line.slices.len() - 1];
    let even = rate(&inner[0]);
    assert!(
        inner.iter().all(|slice| (rate(slice) / even - 1.0).abs() < 0.02),
        "a steady program has even slices"
    );
    assert!(heap.heap.after_full.len() <= 1024 && heap.longest.len() == 20);
    assert_eq!((heap.longest[0].pause_ms, heap.longest[1].pause_ms), (77.0, 1.0));
}

/// A gap of a year between two collections must not be walked through millisecond by millisecond.
#[test]
fn a_trace_may_sleep() {
    let text = line(10, "Scavenge", 9.0, 3.0, 1.0) + &line(31_536_000_000, "Scavenge", 9.0, 3.0, 1.0);
    let summary = read(text);
    assert!(only(&summary).timeline.slices.len() <= 512);
}

/// Endless input in constant memory: what a summary holds is bounded.
#[test]
fn a_long_trace_is_no_larger_than_a_short_one() {
    struct Endless(u64, Vec<u8>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while self.1.len() < buffer.len().min(1 << 16) && self.0 < 100_000 {
                let kind = if self.0.is_multiple_of(50) { "Mark-Compact" } else { "Scavenge" };
                self.1.extend(line(self.0 * 13, kind, 9.0, 3.0 + noise(self.0), 1.0 + noise(self.0)).bytes());
                self.0 += 1;
            }
            let length = self.1.len().min(buffer.len());
            buffer[..length].copy_from_slice(&self.1[..length]);
            self.1.drain(..length);
            Ok(length)
        }
    }
    let size = |collections: u64| {
        let source = Endless(100_000 - collections, Vec::new());
        let summary = parse::read(source, "endless", &mut |_| {}).expect("a trace");
        assert_eq!(only(&summary).pauses.count, collections);
        serde_json::to_vec(&summary).expect("JSON").len()
    };
    let (short, long) = (size(10_000), size(100_000));
    assert!(long < short * 2 && long < 400_000, "{short} and {long} bytes");
}

mod trend {
    use super::*;

    /// Full collections every ten seconds, with the heap that `used` gives after each, in MiB, and noise of 2 MiB.
    fn trace(minutes: u64, used: impl Fn(f64) -> f64) -> Summary {
        let text: String = (0..minutes * 6)
            .map(|n| {
                let after = used(n as f64 / 6.0) + 2.0 * noise(n);
                line(n * 10_000 + 500, "Mark-Compact", after + 20.0, after, 5.0)
            })
            .collect();
        read(text)
    }

    fn is_suspicious(summary: &Summary) -> bool {
        only(summary).heap.trend.is_some_and(|trend| trend.is_suspicious)
    }

    #[test]
    fn a_leak_is_suspected_and_measured() {
        let summary = trace(30, |minutes| 50.0 + minutes);
        let trend = only(&summary).heap.trend.expect("a trend");
        assert!(trend.is_suspicious);
        let hourly = 60.0 * 1_048_576.0;
        assert!((trend.low..trend.high).contains(&hourly), "{trend:?}");
        assert!((trend.bytes_per_hour / hourly - 1.0).abs() < 0.05, "{trend:?}");
    }

    /// Servers in miniature under `--trace-gc`: each request leaves something behind, or fills a cache of fixed size.
    #[test]
    fn real_leaks_are_told_from_caches_that_fill() {
        for (name, expected) in [
            ("v20.leak.txt", true),
            ("v24.leak.txt", true),
            ("v20.cache.txt", false),
            ("v24.cache.txt", false),
        ] {
            assert_eq!(is_suspicious(&read(fixture(name))), expected, "{name}");
        }
        for name in ["v18.oom.txt", "v22.trace-gc.txt", "recorder-v22.app.jsonl", "recorder-v26.busy.jsonl"] {
            assert!(
                !read(fixture(name))
                    .isolates
                    .iter()
                    .any(|heap| heap.heap.trend.is_some_and(|trend| trend.is_suspicious))
            );
        }
    }

    #[test]
    fn a_leak_between_caches_that_come_and_go_is_suspected() {
        assert!(is_suspicious(&trace(60, |minutes| 50.0 + minutes + 5.0 * (minutes / 1.7).sin())));
    }

    #[test]
    fn what_is_steady_is_not() {
        let steady: [fn(f64) -> f64; 5] = [
            |_| 50.0,
            // Start-up, then nothing.
            |minutes| 20.0 + 100.0 * (minutes / 3.0).min(1.0),
            // A cache that fills.
            |minutes| 50.0 + 200.0 * (1.0 - (-minutes / 6.0).exp()),
            // A sawtooth.
            |minutes| 50.0 + 3.0 * (minutes % 12.0),
            |minutes| 50.0 + 10.0 * (minutes / 9.0).sin(),
        ];
        for (n, used) in steady.into_iter().enumerate() {
            assert!(!is_suspicious(&trace(60, used)), "{n}: {:?}", only(&trace(60, used)).heap.trend);
        }
    }

    #[test]
    fn too_little_accuses_nobody() {
        assert!(!is_suspicious(&trace(1, |minutes| 50.0 + 10.0 * minutes)), "few collections");
        assert!(!is_suspicious(&trace(60, |minutes| 500.0 + minutes / 30.0)), "a small amount");
        let text: String =
            (0..40).map(|n| line(n * 500, "Mark-Compact", 90.0, 10.0 + n as f64, 5.0)).collect();
        assert!(!is_suspicious(&read(text)), "twenty seconds");
        assert!(only(&read(line(5, "Mark-Compact", 9.0, 3.0, 1.0))).heap.trend.is_none());
    }

    /// A line through a random walk rises or falls; few may be accused.
    #[test]
    fn random_walks_are_seldom_suspected() {
        let suspected = (0..200_u64)
            .filter(|seed| {
                let mut after = 100.0;
                let text: String = (0..120)
                    .map(|n| {
                        after = (after + 4.0 * (noise(seed * 1000 + n) - 0.5)).max(10.0);
                        line(n * 10_000, "Mark-Compact", after + 20.0, after, 5.0)
                    })
                    .collect();
                is_suspicious(&read(text))
            })
            .count();
        assert!(suspected <= 10, "{suspected} of 200");
    }
}
