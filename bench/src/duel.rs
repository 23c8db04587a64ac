//! Rounds of two sides in turn, A B B A, until their ratio is known.

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

/// All rounds of both sides.
pub(crate) struct Measured {
    pub(crate) stock: SideTotals,
    pub(crate) hasten: SideTotals,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) warnings: Vec<Warning>,
}

impl Duel<'_> {
    /// Measures pairs until the rule is satisfied; `None` if the user interrupted.
    pub(crate) fn measure(
        &self,
        mut round: impl FnMut(Which) -> Result<Round, BenchError>,
    ) -> Result<Option<Measured>, BenchError> {
        let (machine, driver) = (MachineTimes::now(), cpu::of_this_process());
        let (mut stock, mut hasten) = (SideTotals::default(), SideTotals::default());
        let mut pairs = Vec::new();
        let started = Instant::now();
        while !self.is_enough(&pairs, started.elapsed()) {
            let (first, second) = pair(pairs.len(), &mut round)?;
            if (self.stopped)() {
                return Ok(None);
            }
            pairs.push(Pair { stock: stock.add(&first), hasten: hasten.add(&second) });
            self.progress.pair(pairs.len(), ratio(&pairs));
            // The cost of incorrect work means nothing, however much of it is measured.
            if stock.failures() + hasten.failures() > 0 {
                break;
            }
        }
        let used = stock.cpu() + hasten.cpu() + cpu::of_this_process().saturating_sub(driver);
        let mut warnings = MachineTimes::now().warnings_since(machine, used);
        let threads = self.driver_threads;
        let busy = stock.driver_percent(threads).max(hasten.driver_percent(threads));
        if busy > DRIVER_LIMIT {
            warnings.push(Warning::DriverLimit { percent: busy });
        }
        warnings.extend(Warning::of_pairs(&pairs));
        Ok(Some(Measured { stock, hasten, pairs, warnings }))
    }

    fn is_enough(&self, pairs: &[Pair], elapsed: Duration) -> bool {
        let Pace { rule, limit, .. } = self.pace;
        rule.is_enough(pairs) || pairs.len() >= rule.min_pairs && elapsed > *limit
    }
}

/// A B, then B A.
fn pair(
    index: usize,
    round: &mut impl FnMut(Which) -> Result<Round, BenchError>,
) -> Result<(Round, Round), BenchError> {
    if index.is_multiple_of(2) {
        let stock = round(Which::Stock)?;
        Ok((stock, round(Which::Hasten)?))
    } else {
        let hasten = round(Which::Hasten)?;
        Ok((round(Which::Stock)?, hasten))
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
