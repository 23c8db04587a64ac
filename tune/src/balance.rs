//! How unevenly a hash spreads connections over workers.

use fastrand::Rng;

/// How many connections the busiest worker has, as a multiple of the mean, if each is given to a worker by chance: the average of
/// many trials, the same in every run.
#[must_use]
pub fn busiest(workers: usize, connections: usize) -> f64 {
    const TRIALS: u32 = 2000;
    if workers == 0 || connections == 0 {
        return 1.0;
    }
    let mut random = Rng::with_seed(1);
    let mut total = 0;
    for _ in 0..TRIALS {
        let mut counts = vec![0_u64; workers];
        for _ in 0..connections {
            counts[random.usize(..workers)] += 1;
        }
        total += counts.into_iter().max().unwrap_or(0);
    }
    let mean = connections as f64 / workers as f64;
    total as f64 / f64::from(TRIALS) / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_connections_and_more_workers_are_spread_worse() {
        let table = [(8, 100, 1.42), (16, 100, 1.74), (32, 100, 2.32), (32, 1000, 1.39)];
        for (workers, connections, expected) in table {
            let found = busiest(workers, connections);
            assert!((found - expected).abs() < 0.08, "{workers} workers, {connections} connections: {found}");
        }
        assert!((busiest(1, 10) - 1.0).abs() < 1e-9);
        assert!((busiest(0, 0) - 1.0).abs() < 1e-9);
    }
}
