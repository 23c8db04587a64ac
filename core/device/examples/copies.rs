//! Whether a verified copy could pay off if making it cost nothing.
//!
//! ```sh
//! cargo run --release -p hasten-device --example copies
//! ```
//!
//! Interleaves copies by the CPU with comparisons of source and copy, since a copy by a device would have to be
//! checked. Reports CPU time, the least and the median of many rounds. Each round takes another pair of buffers from a
//! quarter of a gigabyte, so that neither finds its bytes in a cache; then the same is done with one pair, which stays
//! in a cache if it fits.

use std::hint::black_box;

use hasten_guard::clock::thread_cpu_ns;

const SIZES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 16 << 20];
const SPREAD: usize = 256 << 20;
const ROUNDS: usize = 41;
/// A sample copies at least this many bytes.
const SAMPLE: usize = 16 << 20;

fn main() {
    println!("{:>8}  {:<8}  {:>14}  {:>14}  {:>7}", "bytes", "from", "memcpy µs", "memcmp µs", "ratio");
    for size in SIZES {
        for (place, pairs) in [("memory", SPREAD / (2 * size)), ("cache", 1)] {
            let Timing { copying, comparing } = measure(size, pairs);
            println!(
                "{:>8}  {place:<8}  {copying:>14}  {comparing:>14}  {:>6.2}×",
                size,
                comparing.median / copying.median
            );
        }
    }
}

struct Timing {
    copying: Spread,
    comparing: Spread,
}

/// Microseconds of one operation.
struct Spread {
    least: f64,
    median: f64,
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.1} ({:.1})", self.median, self.least))
    }
}

fn measure(size: usize, pairs: usize) -> Timing {
    let mut sources: Vec<Vec<u8>> = (0..pairs).map(|number| vec![number as u8 | 1; size]).collect();
    let mut targets: Vec<Vec<u8>> = sources.clone();
    let repeats = (SAMPLE / size).max(1);
    let (mut copying, mut comparing) = (Vec::new(), Vec::new());
    let mut next = 0;
    for _ in 0..ROUNDS {
        copying.push(sample(repeats, || {
            next = (next + 1) % pairs;
            targets[next].copy_from_slice(black_box(&sources[next]));
        }));
        comparing.push(sample(repeats, || {
            next = (next + 1) % pairs;
            assert!(black_box(&targets[next]) == black_box(&sources[next]));
        }));
        // No buffer is the one of the round before.
        sources.rotate_left(1);
        targets.rotate_left(1);
    }
    Timing { copying: spread(copying), comparing: spread(comparing) }
}

fn sample(repeats: usize, mut work: impl FnMut()) -> f64 {
    let start = thread_cpu_ns();
    (0..repeats).for_each(|_| work());
    (thread_cpu_ns() - start) as f64 / 1000.0 / repeats as f64
}

fn spread(mut samples: Vec<f64>) -> Spread {
    samples.sort_by(f64::total_cmp);
    Spread { least: samples[0], median: samples[samples.len() / 2] }
}
