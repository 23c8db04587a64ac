//! db_bench of RocksDB (and, with fewer numbers, of LevelDB). Several benchmarks are one load.

use super::{Failures, latency_of, percentile};
use crate::load::units::{after, before, number};
use crate::load::{LoadResult, Printed};

pub(in crate::load) fn parse(printed: &Printed) -> Option<LoadResult> {
    let text = &printed.stdout;
    let entries = after(text, "Entries:").and_then(number);
    let (mut operations, mut seconds, mut any) = (0.0, 0.0, false);
    for line in text.lines().filter(|line| line.contains(" micros/op ")) {
        let line = line.split_once(" : ").map_or(line, |(_, numbers)| numbers);
        let micros = before(line, "micros/op")?;
        // Before version 7 a line has neither.
        let count = before(line, "operations").or(entries)?;
        operations += count;
        seconds += before(line, "seconds").unwrap_or(count * micros / 1e6);
        any = true;
    }
    let lists: Vec<_> =
        text.lines().filter_map(|line| line.trim().strip_prefix("Percentiles:")).map(percentiles).collect();
    let worst = |wanted: f64| lists.iter().filter_map(|list| percentile(list, wanted)).reduce(f64::max);
    let list: Vec<_> = [50.0, 99.0].into_iter().filter_map(|at| Some((at, worst(at)?))).collect();
    let longest =
        text.lines().filter(|line| line.starts_with("Min: ")).filter_map(|line| line.split("Max: ").nth(1));
    let longest = longest.filter_map(number).map(|micros| micros / 1e3).reduce(f64::max);
    any.then(|| Failures::default().result(operations, seconds, latency_of(&list, None, longest)))
}

/// `P50: 1.00 P75: 1.53 P99: 7.31`, in microseconds.
fn percentiles(line: &str) -> Vec<(f64, f64)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let pair = |pair: &[&str]| {
        let name = pair[0].strip_prefix('P')?.strip_suffix(':')?;
        Some((number(name)?, number(pair[1])? / 1e3))
    };
    words.chunks_exact(2).filter_map(pair).collect()
}
