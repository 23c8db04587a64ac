//! How long objects live, with allocated bytes as the clock: it runs at the same pace on fast and slow machines.

use std::collections::BTreeMap;

use super::observe::{MB, Observed, Step, median};

/// The shortest lifetime distinguished from none; the others are this times powers of two.
const SHORTEST: f64 = MB / 16.0;
const LIFETIMES: usize = 16;

/// How much a share of such a lifetime has to explain before it is believed; tuned with the traces of bench/gc-model.
const DOUBT_IMMORTAL: f64 = 1e-3;
const DOUBT_SHORTER: f64 = 0.03;
const DOUBT_LONGER: f64 = 1.0;

const SWEEPS: usize = 400;

/// A program's start says little about its later behaviour: it is left out if enough follows it.
const START: f64 = 16.0 * MB;
const START_SHARE: f64 = 0.2;

/// `F(a)`: the bytes still alive of those allocated in the last `a` bytes. It is a sum of `share * min(a, lifetime)`,
/// so it rises ever more slowly, whatever the input.
#[derive(Clone, Debug)]
pub(crate) struct Lifetimes {
    /// Shares of objects with lifetimes `SHORTEST * 2^n`; the last one is for those that live on.
    shares: [f64; LIFETIMES + 1],
}

/// An observed difference of `F`: `F(until) - F(from)` was `alive`.
#[derive(Clone, Copy, Debug)]
struct Row {
    from: f64,
    until: f64,
    alive: f64,
    weight: f64,
}

impl Lifetimes {
    pub(crate) fn of(observed: &Observed) -> Lifetimes {
        let rows = rows(observed);
        let mut shares = solve(&rows);
        if let Some(limit) = live_heap(observed, &rows) {
            let limited: Vec<Row> = rows.iter().copied().chain([limit]).collect();
            shares = solve(&limited);
        }
        Lifetimes { shares }
    }

    /// Bytes still alive of the last `age` bytes.
    pub(crate) fn alive(&self, age: f64) -> f64 {
        let sum: f64 = self.shares.iter().enumerate().map(|(n, share)| share * basis(n, age)).sum();
        sum.clamp(0.0, age)
    }
}

fn basis(n: usize, age: f64) -> f64 {
    if n == LIFETIMES { age } else { age.min(SHORTEST * f64::from(1u32 << n)) }
}

/// First scavenges of objects, and second ones. Later ones are less affected by start-up, and count more. Equal ages
/// share one row, so that the many scavenges at full size do not drown the few at other ages.
fn rows(observed: &Observed) -> Vec<Row> {
    let all: f64 = observed.steps().map(|step| step.allocated).sum();
    let skipped = START.min(all * START_SHARE);
    let mut groups: BTreeMap<(bool, i64), Vec<Row>> = BTreeMap::new();
    for run in &observed.runs {
        let mut clock = 0.0;
        let mut before: Option<&Step> = None;
        for step in run {
            clock += step.allocated;
            let earlier = before.replace(step);
            if step.is_full || step.allocated <= 0.0 || clock < skipped {
                continue;
            }
            let age = step.allocated;
            let mut add = |is_second, from, until: f64, alive| {
                let group = (until.log2() * 4.0).round() as i64;
                groups.entry((is_second, group)).or_default().push(Row {
                    from,
                    until,
                    alive,
                    weight: clock / all,
                });
            };
            add(false, 0.0, age, step.copied);
            if let Some(earlier) = earlier.filter(|earlier| !earlier.is_full && earlier.allocated > 0.0) {
                add(true, age, age + earlier.allocated, step.promoted);
            }
        }
    }
    groups.values().map(|group| typical(group)).collect()
}

/// How ambiguities are resolved: in favour of longer lives, and of endless ones where they would outlast the trace.
fn doubt(n: usize, oldest: f64) -> f64 {
    if n == LIFETIMES {
        return DOUBT_IMMORTAL;
    }
    let lifetime = SHORTEST * f64::from(1u32 << n);
    if lifetime >= oldest { DOUBT_LONGER } else { DOUBT_SHORTER * oldest / lifetime }
}

/// The mean of a group. Its weight grows slowly with its size, and errors are relative to what is alive.
fn typical(group: &[Row]) -> Row {
    let count = group.len() as f64;
    let mean = |value: fn(&Row) -> f64| group.iter().map(value).sum::<f64>() / count;
    let trust = mean(|row| row.weight);
    let (from, until, alive) = (mean(|row| row.from), mean(|row| row.until), mean(|row| row.alive));
    Row { from, until, alive, weight: trust * count.sqrt() / (alive + 0.02 * (until - from)) }
}

/// After a full collection the heap holds exactly what is alive. If that is less than what scavenges kept, they keep
/// dead objects that dead old ones refer to, and the heap does not show what scavenges will keep.
fn live_heap(observed: &Observed, rows: &[Row]) -> Option<Row> {
    let run = observed.runs.first()?;
    let base = run.first()?.used_after - run.first()?.copied;
    let mut clock = 0.0;
    let mut live = Vec::new();
    for step in run {
        clock += step.allocated;
        if step.is_full && clock > START {
            live.push((clock, step.used_after - base));
        }
    }
    let (clock, alive) = *live.last()?;
    let alive = median(live.iter().map(|(_, alive)| *alive).collect()).min(alive.max(MB));
    let oldest = rows.iter().map(|row| row.until).fold(0.0, f64::max);
    let kept = rows.iter().filter(|row| row.until >= oldest / 2.0);
    let kept = kept.map(|row| if row.from > 0.0 { 2.0 * row.alive } else { row.alive }).fold(0.0, f64::max);
    let total: f64 = rows.iter().map(|row| row.weight.powi(2)).sum();
    (alive >= kept && clock > oldest).then(|| Row {
        from: 0.0,
        until: clock,
        alive,
        weight: (total / rows.len().max(1) as f64).sqrt().max(1.0 / alive),
    })
}

/// Least squares without negative shares, one share at a time until nothing changes.
fn solve(rows: &[Row]) -> [f64; LIFETIMES + 1] {
    let mut shares = [0.0; LIFETIMES + 1];
    let total: f64 = rows.iter().map(|row| (row.weight * row.alive).powi(2)).sum();
    if total <= 0.0 || !total.is_finite() {
        return shares;
    }
    let columns: Vec<Vec<f64>> = (0..=LIFETIMES)
        .map(|n| rows.iter().map(|row| row.weight * (basis(n, row.until) - basis(n, row.from))).collect())
        .collect();
    let oldest = rows.iter().map(|row| row.until).fold(SHORTEST, f64::max);
    let mut residual: Vec<f64> = rows.iter().map(|row| row.weight * row.alive).collect();
    for _ in 0..SWEEPS {
        for (n, column) in columns.iter().enumerate() {
            let ridge = total * doubt(n, oldest);
            let norm: f64 = column.iter().map(|value| value * value).sum::<f64>() + ridge;
            let slope: f64 = column.iter().zip(&residual).map(|(value, rest)| value * rest).sum::<f64>();
            let share = (shares[n] + (slope - ridge * shares[n]) / norm).clamp(0.0, 1.0);
            let change = share - shares[n];
            shares[n] = share;
            for (rest, value) in residual.iter_mut().zip(column) {
                *rest -= change * value;
            }
        }
    }
    shares
}
