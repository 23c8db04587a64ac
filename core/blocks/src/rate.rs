//! How much a cache may cost: bytes written for each second, and time spent for each second of what it is for. The time
//! is an argument.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A bounded rate of writing, because flash wears.
#[derive(Debug)]
pub struct Allowance {
    /// Nanoseconds for a byte, times 1024.
    price: u64,
    burst_ns: u64,
    /// When everything that was written would be paid for.
    paid_at: AtomicU64,
}

impl Allowance {
    /// At most `rate` bytes each second, and what a second allows at once. A rate of 0 allows nothing.
    #[must_use]
    pub const fn new(rate: u64) -> Self {
        let price = match (1024 * 1_000_000_000u64).checked_div(rate) {
            Some(price) => price,
            None => u64::MAX,
        };
        Self { price, burst_ns: 1_000_000_000, paid_at: AtomicU64::new(0) }
    }

    /// Whether so many bytes may be written now.
    pub fn take(&self, bytes: u64, now_ns: u64) -> bool {
        let cost = (u128::from(bytes) * u128::from(self.price) / 1024) as u64;
        let pay = |paid_at: u64| {
            let paid_at = paid_at.max(now_ns).checked_add(cost)?;
            (paid_at - now_ns <= self.burst_ns).then_some(paid_at)
        };
        self.price != u64::MAX && self.paid_at.fetch_update(Relaxed, Relaxed, pay).is_ok()
    }
}

/// Keeps what is spent on filling a cache within a share of what is spent on reading without it.
#[derive(Debug)]
pub struct Share {
    /// One in so many.
    part: u64,
    earned_ns: AtomicU64,
    spent_ns: AtomicU64,
}

impl Share {
    #[must_use]
    pub const fn one_in(part: u64) -> Self {
        Self { part, earned_ns: AtomicU64::new(0), spent_ns: AtomicU64::new(0) }
    }

    /// A read took this long.
    pub fn earn(&self, ns: u64) {
        self.earned_ns.fetch_add(ns, Relaxed);
    }

    pub fn spend(&self, ns: u64) {
        self.spent_ns.fetch_add(ns, Relaxed);
    }

    /// Whether more may be spent.
    pub fn is_left(&self) -> bool {
        self.spent_ns.load(Relaxed).saturating_mul(self.part) <= self.earned_ns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_rate_is_kept_over_any_time() {
        let allowance = Allowance::new(1 << 20);
        let mut written = 0;
        for tick in 0..100_000 {
            written += 4096 * u64::from(allowance.take(4096, SECOND + tick * SECOND / 10_000));
        }
        assert!((10 << 20..=(11 << 20) + 4096).contains(&written), "{written} in ten seconds");
    }

    #[test]
    fn a_pause_earns_no_more_than_a_second() {
        let allowance = Allowance::new(8192);
        let taken = (0..10).filter(|_| allowance.take(4096, 3600 * SECOND)).count();
        assert_eq!(taken, 2);
        assert!(!Allowance::new(0).take(1, SECOND));
    }

    #[test]
    fn a_share_is_kept_and_never_blocks_for_good() {
        let share = Share::one_in(25);
        let mut spent = 0;
        for _ in 0..10_000 {
            share.earn(100);
            if share.is_left() {
                share.spend(30);
                spent += 30;
            }
        }
        assert!((39_000..=40_030).contains(&spent), "{spent} of 1,000,000");
    }
}
