//! RocksDB's own benchmark: how it is called, and what it says.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::BenchError;

/// What db_bench says of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub ops: u64,
    pub elapsed: Duration,
    /// Latency in µs.
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Reads of keys that exist and were not found.
    pub lost: u64,
}

impl Outcome {
    #[must_use]
    pub fn us_per_op(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.ops.max(1) as f64
    }
}

/// Where the program is.
pub(crate) fn program() -> Result<PathBuf, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("db_bench")).find(|file| file.is_file());
    found.ok_or(BenchError::DbBench)
}

/// The last result of a benchmark of this name in an output, with a histogram.
#[must_use]
pub fn parse(output: &str, name: &str) -> Option<Outcome> {
    let lines: Vec<&str> = output.lines().collect();
    let is_result = |line: &&str| {
        line.split_once(':').is_some_and(|(first, rest)| first.trim() == name && rest.contains("ops/sec"))
    };
    let at = lines.iter().rposition(is_result)?;
    // `readrandom   :      35.943 micros/op 27788 ops/sec 8.025 seconds 222999 operations; …(222999 of 222999 found)`
    let words: Vec<&str> = lines[at].split_whitespace().collect();
    let before =
        |unit: &str| words.windows(2).find(|pair| pair[1].trim_end_matches(';') == unit).map(|pair| pair[0]);
    let ops: u64 = before("operations")?.parse().ok()?;
    let elapsed = number(before("seconds")?)?;
    let lost = match lines[at].rsplit_once('(').and_then(|(_, found)| found.split_once(" of ")) {
        Some((found, asked)) => {
            asked.split(' ').next()?.parse::<u64>().ok()?.checked_sub(found.parse().ok()?)?
        }
        None => 0,
    };
    // `Percentiles: P50: 12.31 P75: 13.85 P99: 43.25 P99.9: 8001.63 P99.99: 15200.04`
    let percentiles = lines[at..].iter().find_map(|line| line.strip_prefix("Percentiles:"))?;
    let words: Vec<&str> = percentiles.split_whitespace().collect();
    let percentile =
        |name: &str| words.windows(2).find(|pair| pair[0] == name).and_then(|pair| number(pair[1]));
    Some(Outcome {
        ops,
        elapsed: Duration::try_from_secs_f64(elapsed).ok()?,
        p50_us: percentile("P50:")?,
        p99_us: percentile("P99:")?,
        p999_us: percentile("P99.9:")?,
        lost,
    })
}

/// `RocksDB:    version 7.8.3`
#[must_use]
pub fn version(output: &str) -> Option<&str> {
    let line = output.lines().find_map(|line| line.strip_prefix("RocksDB:"))?;
    line.trim().strip_prefix("version ")
}

/// A number that can be calculated with.
fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
RocksDB:    version 7.8.3
Keys:       16 bytes each (+ 0 bytes user-defined timestamp)
------------------------------------------------
readrandom   :       1.000 micros/op 1 ops/sec 1.000 seconds 1 operations;    1.0 MB/s (1 of 1 found)
Percentiles: P50: 1.00 P75: 1.00 P99: 1.00 P99.9: 1.00 P99.99: 1.00
readrandom   :      35.943 micros/op 27788 ops/sec 8.025 seconds 222999 operations;   26.9 MB/s (222990 of 222999 found)

Microseconds per read:
Count: 222999 Average: 35.9434  StdDev: 123.45
Min: 7  Median: 12.3059  Max: 51000
Percentiles: P50: 12.31 P75: 13.85 P99: 43.25 P99.9: 8001.63 P99.99: 15200.04
";

    #[test]
    fn the_last_result_counts() {
        let outcome = parse(OUTPUT, "readrandom").expect("a result");
        assert_eq!((outcome.ops, outcome.lost), (222_999, 9));
        assert_eq!((outcome.p50_us, outcome.p99_us, outcome.p999_us), (12.31, 43.25, 8001.63));
        assert!((outcome.us_per_op() - 35.987).abs() < 0.001);
        assert_eq!(version(OUTPUT), Some("7.8.3"));
    }

    #[test]
    fn what_is_no_result_is_none() {
        for cut in 0..OUTPUT.len() {
            let _ = parse(&OUTPUT[cut..], "readrandom");
            let _ = parse(&OUTPUT[..cut], "readrandom");
        }
        assert_eq!(parse(OUTPUT, "fillrandom"), None);
        assert_eq!(
            parse(
                "readrandom : nan micros/op ops/sec nan seconds 1 operations;\nPercentiles: P50: 1",
                "readrandom"
            ),
            None
        );
    }
}
