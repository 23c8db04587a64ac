//! Rounds of the sides in turn, A B B A, until their ratios are known.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::warning::Warning;

use crate::cpu::{self, CpuTimes};
use crate::drive::Outcome;
use crate::error::BenchError;
use crate::noise::MachineTimes;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::Server;
use crate::summary::SideTotals;

/// The scheduler accounts for a slice when the thread sleeps again, and a server still closes connections after the
/// driver has seen the end.
const SETTLE: Duration = Duration::from_millis(5);

/// Per cent of its CPUs above which the driver, not the server, sets the pace.
const DRIVER_LIMIT: f64 = 92.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Stock,
    Hasten,
}

/// One side, driven once.
pub(crate) struct Round {
    pub(crate) cpu: Duration,
    pub(crate) outcome: Outcome,
    /// If requested.
    pub(crate) memory: Option<Resident>,
}

/// Resident memory of a program, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// The peak.
    pub(crate) peak: u64,
    /// At the end of the round.
    pub(crate) now: u64,
}

/// When to stop, and who observes.
pub(crate) struct Duel<'a> {
    pub(crate) pace: &'a Pace,
    pub(crate) progress: &'a Progress,
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// Threads of the load driver; 0 if there is none.
    pub(crate) driver_threads: usize,
}

/// All rounds of two sides.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) stock: SideTotals,
    pub(crate) hasten: SideTotals,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) warnings: Vec<Warning>,
}

impl Measured {
    fn add(&mut self, stock: &Round, hasten: &Round) {
        self.pairs.push(Pair { stock: self.stock.add(stock), hasten: self.hasten.add(hasten) });
    }

    fn has_failed(&self) -> bool {
        self.stock.failures() + self.hasten.failures() > 0
    }
}

impl Duel<'_> {
    /// Measures pairs until the rule is satisfied; `None` if the user interrupted.
    pub(crate) fn measure(
        &self,
        round: impl FnMut(Which) -> Result<Round, BenchError>,
    ) -> Result<Option<Measured>, BenchError> {
        Ok(self.measure_each(&[Which::Stock], Which::Hasten, round)?.and_then(|mut duels| duels.pop()))
    }

    /// The same for each of several others against hasten's rounds, which they share.
    pub(crate) fn measure_each<S: Copy>(
        &self,
        others: &[S],
        hasten: S,
        mut round: impl FnMut(S) -> Result<Round, BenchError>,
    ) -> Result<Option<Vec<Measured>>, BenchError> {
        let (machine, driver) = (MachineTimes::now(), cpu::of_this_process());
        let mut duels: Vec<_> = others.iter().map(|_| Measured::default()).collect();
        let mut used = Duration::ZERO;
        let started = Instant::now();
        while !duels.iter().all(|duel| self.is_enough(&duel.pairs, started.elapsed())) {
            let (theirs, ours) = in_turn(duels[0].pairs.len(), others, hasten, &mut round)?;
            if (self.stopped)() {
                return Ok(None);
            }
            used += theirs.iter().chain([&ours]).map(|round| round.cpu).sum::<Duration>();
            duels.iter_mut().zip(&theirs).for_each(|(duel, theirs)| duel.add(theirs, &ours));
            self.progress.pair(duels[0].pairs.len(), ratio(&duels[0].pairs));
            // The cost of incorrect work means nothing, however much of it is measured.
            if duels.iter().any(Measured::has_failed) {
                break;
            }
        }
        used += cpu::of_this_process().saturating_sub(driver);
        let noise = MachineTimes::now().warnings_since(machine, used);
        for duel in &mut duels {
            duel.warnings = [noise.clone(), self.warnings(duel)].concat();
        }
        Ok(Some(duels))
    }

    fn warnings(&self, Measured { stock, hasten, pairs, .. }: &Measured) -> Vec<Warning> {
        let threads = self.driver_threads;
        let percent = stock.driver_percent(threads).max(hasten.driver_percent(threads));
        let limit = (percent > DRIVER_LIMIT).then_some(Warning::DriverLimit { percent });
        limit.into_iter().chain(Warning::of_pairs(pairs)).collect()
    }

    fn is_enough(&self, pairs: &[Pair], elapsed: Duration) -> bool {
        let Pace { rule, limit, .. } = self.pace;
        rule.is_enough(pairs) || pairs.len() >= rule.min_pairs && elapsed > *limit
    }
}

/// A B, then B A; with another side A B C, then C B A. Hasten is the last, then the first.
fn in_turn<S: Copy>(
    index: usize,
    others: &[S],
    hasten: S,
    round: &mut impl FnMut(S) -> Result<Round, BenchError>,
) -> Result<(Vec<Round>, Round), BenchError> {
    if index.is_multiple_of(2) {
        let theirs = others.iter().copied().map(&mut *round).collect::<Result<_, _>>()?;
        Ok((theirs, round(hasten)?))
    } else {
        let ours = round(hasten)?;
        let mut theirs: Vec<_> = others.iter().rev().copied().map(round).collect::<Result<_, _>>()?;
        theirs.reverse();
        Ok((theirs, ours))
    }
}

/// What `drive` costs the processes measured by `times`.
pub(crate) fn cost_of(
    times: &dyn Fn() -> CpuTimes,
    drive: impl FnOnce() -> std::io::Result<Outcome>,
) -> Result<Round, BenchError> {
    thread::sleep(SETTLE);
    let before = times();
    let outcome = drive().map_err(BenchError::Driver)?;
    thread::sleep(SETTLE);
    Ok(Round { cpu: times().since(&before), outcome, memory: None })
}

/// Two equal sides are not an error, but the reader must know.
pub(crate) fn not_accelerated(server: &Server, library: &str) -> Option<Warning> {
    let processes = [server.workers(), vec![server.pid()]].concat();
    let accelerated = processes.into_iter().any(|pid| has_library(pid, library));
    (!accelerated).then(|| Warning::NotAccelerated { server: server.kind().to_string() })
}

/// Whether a library whose path contains `library` is mapped into a process.
pub(crate) fn has_library(pid: u32, library: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures sides whose rounds cost as many milliseconds as their number says.
    fn duels(others: &[u64], hasten: u64) -> (Vec<u64>, Vec<Measured>) {
        let (pace, progress) = (Pace::quick(), Progress::start(1, Duration::ZERO));
        let duel = Duel { pace: &pace, progress: &progress, stopped: &|| false, driver_threads: 1 };
        let mut order = Vec::new();
        let measured = duel.measure_each(others, hasten, |side| {
            order.push(side);
            let outcome = Outcome { ops: 10, ..Outcome::default() };
            Ok(Round { cpu: Duration::from_millis(side), outcome, memory: None })
        });
        (order, measured.ok().flatten().expect("nobody interrupts"))
    }

    #[test]
    fn sides_take_turns_in_either_order() {
        assert_eq!(duels(&[6], 2).0[..4], [6, 2, 2, 6]);
        assert_eq!(duels(&[6, 3], 2).0[..6], [6, 3, 2, 2, 3, 6]);
    }

    #[test]
    fn each_is_compared_with_the_same_rounds() {
        let (order, measured) = duels(&[6, 3], 2);
        for (duel, cost) in measured.iter().zip([600.0, 300.0]) {
            assert_eq!(duel.pairs.len() * 3, order.len());
            assert!(duel.pairs.iter().all(|pair| *pair == Pair { stock: cost, hasten: 200.0 }));
        }
    }
}
