//! What hasten extracts from the output of real load tools.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hasten_tune::load::{Load, LoadError, LoadResult, Printed};

/// Correct requests, seconds, failures, mean, p50, p99 and longest latency in milliseconds.
type Numbers = (f64, f64, u64, [Option<f64>; 4]);

const OUTPUT: &[(&str, &str, Numbers)] = &[
    ("wrk -d1s http://x/", "wrk-4.1.0.txt", (50497.0, 1.0, 0, [Some(1.07), None, None, Some(35.74)])),
    (
        "wrk -d1s http://x/",
        "wrk-4.1.0-latency.txt",
        (27182.0, 1.01, 0, [Some(0.86), Some(0.188), Some(6.6), Some(14.11)]),
    ),
    (
        "wrk -d1s http://x/",
        "wrk-4.1.0-non-2xx.txt",
        (28285.0, 1.0, 28376, [Some(0.23249), None, None, Some(4.68)]),
    ),
    (
        "wrk -d1s http://x/",
        "wrk-4.1.0-socket-errors.txt",
        (16844.0, 1.0, 4367, [Some(0.70243), None, None, Some(15.94)]),
    ),
    (
        "wrk -d1s http://x/",
        "wrk-4.1.0-slow.txt",
        (32.0, 1.0, 0, [Some(122.13), Some(121.38), Some(127.12), Some(127.12)]),
    ),
    ("ab -n 9 http://x/", "ab-2.3.txt", (2000.0, 0.418, 0, [Some(1.671), Some(1.0), Some(7.0), Some(8.0)])),
    (
        "ab -n 9 http://x/",
        "ab-2.3-non-2xx.txt",
        (0.0, 1.0, 5289, [Some(1.513), Some(1.0), Some(9.0), Some(16.0)]),
    ),
    (
        "ab -n 9 http://x/",
        "ab-2.3-reset.txt",
        (79.0, 0.011, 21, [Some(0.856), Some(1.0), Some(2.0), Some(2.0)]),
    ),
    ("h2load http://x/", "h2load-1.52.0.txt", (2000.0, 0.05572, 0, [Some(0.188), None, None, Some(4.3)])),
    (
        "h2load http://x/",
        "h2load-1.52.0-non-2xx.txt",
        (22390.0, 1.0, 22557, [Some(0.177), None, None, Some(14.07)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0.txt",
        (33808.0, 1.01, 0, [Some(0.03), Some(0.0), Some(1.0), Some(17.0)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0-amount.txt",
        (500.0, 1.01, 0, [Some(0.39), Some(0.0), Some(16.0), Some(18.0)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0-errors.txt",
        (8396.0, 1.02, 1096, [Some(89.86), Some(104.0), Some(146.0), Some(155.0)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0-non-2xx.txt",
        (17063.0, 1.01, 17223, [Some(0.03), Some(0.0), Some(0.0), Some(22.0)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0.json",
        (39357.0, 1.01, 0, [Some(0.01), Some(0.0), Some(0.0), Some(22.0)]),
    ),
    (
        "autocannon x",
        "autocannon-9.0.0-non-2xx.json",
        (18154.0, 1.01, 18337, [Some(0.02), Some(0.0), Some(0.0), Some(17.0)]),
    ),
    (
        "oha http://x/",
        "oha-1.16.0.txt",
        (11356.0, 1.0014201, 0, [Some(0.6925), Some(0.4764), Some(4.3416), Some(11.6514)]),
    ),
    (
        "oha http://x/",
        "oha-1.16.0-non-2xx.txt",
        (248.0, 0.0963362, 252, [Some(1.4377), Some(0.682), Some(13.779), Some(13.8793)]),
    ),
    (
        "oha http://x/",
        "oha-1.16.0-errors.txt",
        (90.0, 0.0219579, 10, [Some(1.2502), Some(1.0413), Some(7.2948), Some(7.2948)]),
    ),
    (
        "oha http://x/",
        "oha-1.16.0.json",
        (2000.0, 0.222_313_346, 0, [Some(0.869_248_6), Some(0.663_432), Some(3.805_455), Some(5.109_978)]),
    ),
    (
        "oha http://x/",
        "oha-1.16.0-errors.json",
        (4514.0, 1.002_885_739, 1148, [Some(1.388_126_7), Some(1.128_57), Some(7.378_122), Some(13.555_957)]),
    ),
    (
        "k6 run x.js",
        "k6-0.49-documented.txt",
        (1188.0, 10.0, 12, [Some(3.12), Some(2.91), None, Some(1020.0)]),
    ),
    ("k6 run x.js", "k6-1.8.1.txt", (180.0, 2.008, 0, [Some(44.38), Some(44.09), None, Some(60.94)])),
    (
        "k6 run x.js",
        "k6-1.8.1-non-2xx.txt",
        (165.0, 2.019, 18, [Some(44.01), Some(43.99), None, Some(52.62)]),
    ),
    (
        "k6 run --summary-mode=legacy x.js",
        "k6-1.8.1-legacy.txt",
        (180.0, 2.016, 0, [Some(44.66), Some(44.23), None, Some(52.5)]),
    ),
    (
        "k6 run x.js",
        "k6-1.8.1-summary-export.json",
        (172.0, 2.033, 0, [Some(47.0), Some(44.435), None, Some(85.65)]),
    ),
    (
        "k6 run x.js",
        "k6-1.8.1-handle-summary.json",
        (171.0, 2.0258, 0, [Some(47.11), Some(47.593), Some(62.261), Some(68.388)]),
    ),
    (
        "redis-benchmark -n 5000",
        "redis-benchmark-7.0.15.txt",
        (10_000.0, 0.166, 0, [Some(0.103), Some(0.039), Some(3.503), Some(5.679)]),
    ),
    (
        "redis-benchmark -n 5000 -q",
        "redis-benchmark-7.0.15-q.txt",
        (10_000.0, 0.121, 0, [None, Some(0.039), None, None]),
    ),
    (
        "redis-benchmark -n 5000 --csv",
        "redis-benchmark-7.0.15.csv",
        (10_000.0, 0.171, 0, [Some(0.101), Some(0.039), Some(3.263), Some(11.263)]),
    ),
    (
        "redis-benchmark -n 2000 lpush x y",
        "redis-benchmark-7.0.15-one.txt",
        (2000.0, 0.017, 0, [Some(0.047), Some(0.039), Some(0.183), Some(1.679)]),
    ),
    (
        "memtier_benchmark",
        "memtier-2.0-documented.txt",
        (2_000_000.0, 15.936_088, 0, [Some(1.5903), Some(1.439), Some(3.407), None]),
    ),
    ("db_bench", "db_bench-7.8.3.txt", (40_000.0, 0.122, 0, [None, None, None, None])),
    (
        "db_bench --histogram=1",
        "db_bench-7.8.3-histogram.txt",
        (10_000.0, 0.017, 0, [None, Some(0.001), Some(0.00731), Some(3.976)]),
    ),
];

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/load").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn printed(stdout: String) -> Printed {
    // autocannon prints its tables on standard error.
    let stderr = if stdout.contains("│ Stat") { stdout.clone() } else { String::new() };
    Printed { stdout, stderr, elapsed: Duration::from_secs(1), ..Printed::default() }
}

fn understand(line: &str, stdout: &str) -> Result<LoadResult, LoadError> {
    Load::parse(line, None).unwrap().understand(&printed(stdout.to_owned()))
}

fn near(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() <= expected.abs() * 0.005 + 1e-9,
        (found, expected) => found == expected,
    }
}

#[test]
fn the_numbers_of_every_tool_are_those_that_it_printed() {
    for (line, name, (requests, seconds, failed, latency)) in OUTPUT {
        let found = understand(line, &fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let of = found.latency.unwrap_or_default();
        assert_eq!((found.requests, found.failed), (Some(*requests), *failed), "{name}: {found:?}");
        assert_eq!(found.failures.is_empty(), *failed == 0, "{name}: {found:?}");
        assert!(near(Some(found.seconds), Some(*seconds)), "{name}: {found:?}");
        let all = [of.mean, of.p50, of.p99, of.max];
        assert!(
            all.iter().zip(latency).all(|(&found, &expected)| near(found, expected)),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn files_that_a_tool_was_told_to_write_say_what_its_output_does_not() {
    let load = Load::parse("memtier_benchmark --json-out-file x.json", None).unwrap();
    let stdout = fixture("memtier-2.0-documented.txt");
    let file = Some(fixture("memtier-2.0-documented.json"));
    let found = load.understand(&Printed { stdout, file, ..Printed::default() }).unwrap();
    assert_eq!((found.requests, found.seconds), (Some(1_100_000.0), 10.0));
    assert_eq!(found.latency.and_then(|latency| latency.max), Some(12.5));

    // Without the plan, progress shows how many there were.
    let stdout = fixture("memtier-2.0-documented.txt").replace("Requests per client", "");
    let stderr = fixture("memtier-2.0-documented.stderr");
    let found = Load::parse("memtier_benchmark", None).unwrap();
    let found = found.understand(&Printed { stdout, stderr, ..Printed::default() }).unwrap();
    assert_eq!(found.requests, Some(2_000_000.0));
}

#[test]
fn what_is_not_understood_is_shown_with_the_way_out() {
    for (line, name) in [
        ("wrk http://x/", "wrk-4.1.0-refused.txt"),
        ("redis-benchmark -q nosuch", "redis-benchmark-7.0.15-error.txt"),
        ("./my-load", "wrk-4.1.0.txt"),
    ] {
        let error = understand(line, &fixture(name)).unwrap_err().to_string();
        assert!(error.contains("--metric-regex"), "{error}");
    }
    let error =
        understand("wrk http://x/", "unable to connect to 127.0.0.1:1 Connection refused\n").unwrap_err();
    assert!(error.to_string().ends_with("Connection refused"), "{error}");
    assert!(understand("wrk http://x/", "").unwrap_err().to_string().ends_with("(nothing)"));
}

#[test]
fn any_other_tool_speaks_by_a_line_of_json_or_by_a_regular_expression() {
    let line = "starting\n{\"requests\": 7}\n{\"requests\": 1000, \"seconds\": 2.5, \"failed\": 3, \"p99_ms\": 9, \"metric\": -4}\ndone\n";
    let found = understand("./my-load", line).unwrap();
    assert_eq!(
        (found.requests, found.seconds, found.failed, found.custom),
        (Some(1000.0), 2.5, 3, Some(-4.0))
    );
    assert_eq!(found.latency.and_then(|latency| latency.p99), Some(9.0));

    let by = |regex: &str, text: &str| {
        Load::parse("./my-load", Some(regex)).unwrap().understand(&printed(text.to_owned()))
    };
    let found = by("score: (-?[0-9.]+)", "score: 1\nscore: -2.5\n").unwrap();
    assert_eq!((found.custom, found.requests, found.seconds), (Some(-2.5), None, 1.0));
    let found = by(
        "(?<requests>[0-9,]+) done in (?<seconds>[0-9.]+)s, (?<failed>\\d+) bad",
        "1,200 done in 3.0s, 2 bad",
    )
    .unwrap();
    assert_eq!((found.requests, found.seconds, found.failed), (Some(1200.0), 3.0, 2));
    assert!(by("score: (\\d+)", "nothing").is_err());

    // With a known tool, it adds to what the tool reports.
    let load = Load::parse("wrk http://x/", Some("Transfer/sec: +([0-9.]+)MB")).unwrap();
    let found = load.understand(&printed(fixture("wrk-4.1.0.txt"))).unwrap();
    assert_eq!((found.requests, found.custom, found.seconds), (Some(50497.0), Some(8.27), 1.0));

    for wrong in ["(", "no group"] {
        assert!(matches!(Load::parse("x", Some(wrong)), Err(LoadError::MetricRegex { .. })), "{wrong}");
    }
}

#[test]
fn the_bytes_that_a_tool_received_are_those_that_it_printed() {
    const MIB: f64 = 1024.0 * 1024.0;
    for (line, name, bytes, rounding) in [
        ("wrk http://x/", "wrk-4.1.0.txt", Some(8.28 * MIB), 0.005 / 8.28),
        ("wrk http://x/", "wrk-4.1.0-slow.txt", Some(3.88 * 1024.0), 0.005 / 3.88),
        ("h2load http://x/", "h2load-1.52.0.txt", Some(344_000.0), 0.0),
        ("ab -n 9 http://x/", "ab-2.3.txt", Some(248_000.0), 0.0),
        ("autocannon x", "autocannon-9.0.0.txt", Some(5.81e6), 0.005 / 5.81),
        ("autocannon x", "autocannon-9.0.0.json", Some(6_769_404.0), 0.0),
        ("oha http://x/", "oha-1.16.0.txt", Some(188.53 * 1024.0), 0.005 / 188.53),
        ("oha http://x/", "oha-1.16.0.json", Some(34_000.0), 0.0),
        ("k6 run x.js", "k6-1.8.1.txt", Some(21e3), 0.5 / 21.0),
        ("k6 run x.js", "k6-0.49-documented.txt", Some(1.5e6), 0.05 / 1.5),
        ("k6 run x.js", "k6-1.8.1-handle-summary.json", Some(20_007.0), 0.0),
        ("redis-benchmark -t get", "redis-benchmark-7.0.15.txt", None, 0.0),
        ("db_bench", "db_bench-7.8.3.txt", None, 0.0),
    ] {
        let received = understand(line, &fixture(name)).unwrap().received;
        assert!(near(received.map(|received| received.bytes), bytes), "{name}: {received:?}");
        let found = received.map_or(0.0, |received| received.rounding);
        assert!((found - rounding).abs() < 1e-9, "{name}: {received:?}");
    }
    let found = understand("./my-load", "{\"requests\": 10, \"bytes\": 5000}").unwrap();
    assert_eq!(found.received.map(|received| received.bytes), Some(5000.0));
    let load = Load::parse("./my-load", Some("(?<requests>\\d+) in (?<bytes>\\d+) B")).unwrap();
    let found = load.understand(&printed("10 in 5000 B".to_owned())).unwrap();
    assert_eq!(found.received.map(|received| received.bytes), Some(5000.0));
}
