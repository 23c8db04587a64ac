//! Two servers of the same kind with the same certificate, and the rounds between them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;

use super::summary::{SideTotals, row};
use super::{BenchError, Pace, TlsCase};
use crate::affinity::Placement;
use crate::certificates::Certificate;
use crate::cpu;
use crate::drive::{self, Load, Outcome};
use crate::noise::MachineTimes;
use crate::progress::Progress;
use crate::server::{Launcher, Server, ServerSpec};

/// The scheduler books a slice when the thread sleeps again, and a server still closes connections after the driver
/// has seen the end.
const SETTLE: Duration = Duration::from_millis(5);

/// Per cent of its CPUs above which the driver, not the server, sets the pace.
const DRIVER_LIMIT: f64 = 92.0;

pub(super) struct Duel {
    case: TlsCase,
    stock: Server,
    hasten: Server,
    driver_cpus: Vec<usize>,
}

/// One server driven once.
pub(super) struct Round {
    pub(super) cpu: Duration,
    pub(super) outcome: Outcome,
}

impl Duel {
    pub(super) fn start(
        case: TlsCase,
        certificate: Certificate,
        hasten: &Path,
        placement: &Placement,
    ) -> Result<Self, BenchError> {
        let spec = ServerSpec::new(case.server, certificate).cpu(placement.server);
        let accelerated = spec.clone().launcher(Launcher::Hasten { exe: hasten.to_owned() });
        Ok(Self {
            case,
            stock: spec.start()?,
            hasten: accelerated.start()?,
            driver_cpus: placement.driver.clone(),
        })
    }

    /// The same servers for `case`, if they suit it and are still alive.
    pub(super) fn reuse(mut self, case: TlsCase) -> Option<Self> {
        let alive = |server: &mut Server| matches!(server.exit_status(), Ok(None));
        let suits = (case.server, case.cert) == (self.case.server, self.case.cert);
        (suits && alive(&mut self.stock) && alive(&mut self.hasten)).then_some(self)
    }

    /// Both sides being the same is not an error, but the reader must know.
    pub(super) fn warning(&self) -> Option<Warning> {
        let processes = [self.hasten.workers(), vec![self.hasten.pid()]].concat();
        let accelerated = processes.into_iter().any(has_library);
        (!accelerated).then(|| Warning::NotAccelerated { server: self.case.server.to_string() })
    }

    /// Measures pairs until the rule is content; `None` if the user did not want to wait.
    pub(super) fn row(
        &mut self,
        case: TlsCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<TlsCase>>, BenchError> {
        let load = self.load(case, pace.warm_up);
        round(&self.stock, &load)?;
        round(&self.hasten, &load)?;

        let load = self.load(case, pace.round);
        let (machine, driver) = (MachineTimes::now(), cpu::of_this_process());
        let (mut stock, mut hasten) = (SideTotals::default(), SideTotals::default());
        let mut pairs = Vec::new();
        let started = Instant::now();
        let time_is_up =
            |pairs: &[Pair]| pairs.len() >= pace.rule.min_pairs && started.elapsed() > pace.limit;
        while !pace.rule.is_enough(&pairs) && !time_is_up(&pairs) {
            let (first, second) = self.pair(pairs.len(), &load)?;
            if stopped() {
                return Ok(None);
            }
            pairs.push(Pair { stock: stock.add(&first), hasten: hasten.add(&second) });
            progress.pair(pairs.len(), ratio(&pairs));
            // The cost of work that was not done right means nothing; more of it would mean no more.
            if stock.failures() + hasten.failures() > 0 {
                break;
            }
        }
        let used = stock.cpu() + hasten.cpu() + cpu::of_this_process().saturating_sub(driver);
        let mut warnings = MachineTimes::now().warnings_since(machine, used);
        let busy = stock.driver_percent(load.threads).max(hasten.driver_percent(load.threads));
        if busy > DRIVER_LIMIT {
            warnings.push(Warning::DriverLimit { percent: busy });
        }
        warnings.extend(Warning::of_pairs(&pairs));
        Ok(Some(row(case, &stock, &hasten, pairs, warnings)))
    }

    /// A B, then B A.
    fn pair(&self, index: usize, load: &Load) -> Result<(Round, Round), BenchError> {
        if index.is_multiple_of(2) {
            let stock = round(&self.stock, load)?;
            Ok((stock, round(&self.hasten, load)?))
        } else {
            let hasten = round(&self.hasten, load)?;
            Ok((round(&self.stock, load)?, hasten))
        }
    }

    fn load(&self, case: TlsCase, duration: Duration) -> Load {
        Load {
            concurrency: case.concurrency,
            threads: self.driver_cpus.len().clamp(1, case.concurrency),
            duration,
            protocol: case.protocol,
            cpus: self.driver_cpus.clone(),
            ..Load::default()
        }
    }
}

fn round(server: &Server, load: &Load) -> Result<Round, BenchError> {
    thread::sleep(SETTLE);
    let before = server.cpu_times();
    let outcome = drive::run(server.target(), load).map_err(BenchError::Driver)?;
    thread::sleep(SETTLE);
    Ok(Round { cpu: server.cpu_times().since(&before), outcome })
}

/// Whether one of our libraries is mapped into a process.
fn has_library(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("/libhasten_"))
}
