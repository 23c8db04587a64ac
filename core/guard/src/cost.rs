//! Costs, learnt at run time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A mean of CPU time that any thread may add to. It is exponential: the latest sample counts for one eighth.
#[derive(Debug, Default)]
pub struct Mean(AtomicU64);

impl Mean {
    /// A mean without samples.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Nanoseconds; 0 until there is a sample.
    pub fn ns(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub fn is_known(&self) -> bool {
        self.ns() > 0
    }

    /// Adds a sample. A race loses one of many samples.
    pub fn sample(&self, ns: u64) {
        let before = self.ns();
        let now = if before == 0 { ns } else { (before - before / 8).saturating_add(ns / 8) };
        self.set(now);
    }

    /// Replaces all earlier samples.
    pub fn set(&self, ns: u64) {
        self.0.store(ns.max(1), Relaxed);
    }
}

/// Sends one operation in [`EVERY`](Self::EVERY) the dearer way, in case its cost has changed.
#[derive(Debug, Default)]
pub struct Retry(AtomicU32);

impl Retry {
    /// Rarely enough to cost next to nothing.
    pub const EVERY: u32 = 64;

    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Called each time the dearer way would be skipped; returns whether to take it anyway.
    pub fn is_due(&self) -> bool {
        self.0.fetch_add(1, Relaxed) % Self::EVERY == Self::EVERY - 1
    }
}

/// A mean of elapsed time, for one thread, unaffected by a task switch in the middle of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Never zero.
    ns: u64,
    samples: u32,
    outliers: u32,
    least_outlier: u64,
}

impl Estimate {
    /// A settled mean covers about this many samples.
    const WINDOW: u32 = 16;
    /// A sample this many times the mean was interrupted,
    const OUTLIER: u64 = 2;
    /// unless this many come in a row: then the operation has become dearer, and the cheapest of them is the new mean.
    const PERSISTENT: u32 = 16;

    /// Starts from a figure that samples will replace; nanoseconds, at least 1.
    pub const fn new(ns: u64) -> Self {
        let ns = if ns == 0 { 1 } else { ns };
        Self { ns, samples: 1, outliers: 0, least_outlier: u64::MAX }
    }

    pub const fn ns(&self) -> u64 {
        self.ns
    }

    pub fn sample(&mut self, ns: u64) {
        if ns > self.ns.saturating_mul(Self::OUTLIER) {
            self.outlier(ns);
            return;
        }
        self.outliers = 0;
        self.least_outlier = u64::MAX;
        // The first samples weigh more, so that a shipped figure from another machine is soon replaced.
        self.samples = (self.samples + 1).min(Self::WINDOW);
        let weight = u64::from(self.samples);
        self.ns = (self.ns - self.ns / weight).saturating_add(ns / weight).max(1);
    }

    fn outlier(&mut self, ns: u64) {
        self.outliers += 1;
        self.least_outlier = self.least_outlier.min(ns);
        if self.outliers >= Self::PERSISTENT {
            *self = Self::new(self.least_outlier);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mean_follows_its_samples() {
        let mean = Mean::new();
        assert!(!mean.is_known());
        mean.sample(0);
        assert_eq!(mean.ns(), 1, "known, and not unknown again");
        mean.set(80_000);
        mean.sample(160_000);
        assert_eq!(mean.ns(), 90_000);
        (0..100).for_each(|_| mean.sample(10_000));
        assert!(mean.ns().abs_diff(10_000) < 100);
    }

    #[test]
    fn one_in_so_many_is_tried_again() {
        let retry = Retry::new();
        assert_eq!((0..Retry::EVERY * 10).filter(|_| retry.is_due()).count(), 10);
    }

    #[test]
    fn interruptions_do_not_move_an_estimate_and_what_lasts_does() {
        let mut estimate = Estimate::new(100_000);
        for _ in 0..50 {
            estimate.sample(5_000_000);
            (0..3).for_each(|_| estimate.sample(100_000));
        }
        assert!(estimate.ns().abs_diff(100_000) < 100);
        (0..Estimate::PERSISTENT).for_each(|_| estimate.sample(500_000));
        assert_eq!(estimate.ns(), 500_000);
    }

    proptest! {
        #[test]
        fn any_samples_give_a_figure(first: u64, samples: Vec<u64>) {
            let (mean, mut estimate) = (Mean::new(), Estimate::new(first));
            for ns in samples {
                mean.sample(ns);
                estimate.sample(ns);
                prop_assert!(mean.is_known() && estimate.ns() > 0);
            }
        }
    }
}
