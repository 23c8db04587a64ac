//! What load tools print: any text on each of their outputs, for each tool, with and without a regular expression.

#![no_main]

use std::time::Duration;

use hasten_bench::storage::db_bench;
use hasten_tune::load::{Load, Printed};
use libfuzzer_sys::fuzz_target;

const TOOLS: [&str; 10] = [
    "wrk http://x/",
    "ab http://x/",
    "h2load http://x/",
    "autocannon x",
    "oha -o x http://x/",
    "k6 run --summary-export x y.js",
    "redis-benchmark -n 100",
    "memtier_benchmark --json-out-file x",
    "db_bench",
    "./other",
];

fuzz_target!(|data: (u8, bool, String, String, Option<String>)| {
    let (tool, with_regex, stdout, stderr, file) = data;
    let metric = with_regex.then_some("(?<requests>[0-9.]+) ([-0-9.]+)");
    let load = Load::parse(TOOLS[tool as usize % TOOLS.len()], metric).expect("a command line");
    // A command line of anybody's is split or refused, and asks for pages or not.
    if let Ok(other) = Load::parse(&stderr, None) {
        let _ = other.targets();
    }
    for name in ["readrandom", "fillrandom"] {
        if let Some(outcome) = db_bench::parse(&stdout, name) {
            assert!(outcome.us_per_op().is_finite());
            assert!(
                [outcome.p50_us, outcome.p99_us, outcome.p999_us]
                    .iter()
                    .all(|us| us.is_finite() && *us >= 0.0)
            );
        }
    }
    let printed = Printed { stdout, stderr, file, elapsed: Duration::from_secs(1) };
    if let Ok(found) = load.understand(&printed) {
        assert!(found.seconds.is_finite() && found.seconds >= 0.0);
        assert!(found.requests.is_none_or(|requests| requests.is_finite() && requests >= 0.0));
        assert!(found.custom.is_none_or(f64::is_finite));
    }
});
