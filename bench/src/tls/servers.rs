//! Two servers of the same kind with the same certificate.

use std::time::Duration;

use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;

use super::{HIDDEN_AVX512, Options, TlsCase};
use crate::affinity::Placement;
use crate::certificates::Certificate;
use crate::drive::{self, Load};
use crate::duel::{self, Duel, Round, Which, cost_of};
use crate::error::BenchError;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::{Launcher, Server, ServerSpec};
use crate::summary::row;

pub(super) struct Servers {
    case: TlsCase,
    stock: Server,
    hasten: Server,
    driver_cpus: Vec<usize>,
}

impl Servers {
    pub(super) fn start(
        case: TlsCase,
        certificate: Certificate,
        options: &Options,
        placement: &Placement,
    ) -> Result<Self, BenchError> {
        let mut spec = ServerSpec::new(case.server, certificate)
            .cpu(placement.server)
            .server_lines(case.tickets.server_lines(case.server));
        if options.hide_avx512 {
            spec = HIDDEN_AVX512.iter().fold(spec, |spec, (name, value)| spec.env(*name, *value));
        }
        let accelerated = spec.clone().launcher(Launcher::Hasten { exe: options.hasten.clone() });
        Ok(Self {
            case,
            stock: options.baseline.server(spec).start()?,
            hasten: accelerated.start()?,
            driver_cpus: placement.driver.clone(),
        })
    }

    /// The same servers for `case`, if they suit it and are still alive.
    pub(super) fn reuse(mut self, case: TlsCase) -> Option<Self> {
        let suits =
            (case.server, case.cert, case.tickets) == (self.case.server, self.case.cert, self.case.tickets);
        (suits && self.stock.is_alive() && self.hasten.is_alive()).then_some(self)
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        duel::not_accelerated(&self.hasten, "/libhasten_")
    }

    /// `None` if the user interrupted.
    pub(super) fn row(
        &mut self,
        case: TlsCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<TlsCase>>, BenchError> {
        let warm_up = self.load(case, pace.warm_up);
        self.round(Which::Stock, &warm_up)?;
        self.round(Which::Hasten, &warm_up)?;

        let load = self.load(case, pace.round);
        let duel = Duel { pace, progress, stopped, driver_threads: load.threads };
        let measured = duel.measure(|which| self.round(which, &load))?;
        Ok(measured.map(|measured| row(case, measured)))
    }

    fn round(&self, which: Which, load: &Load) -> Result<Round, BenchError> {
        let server = match which {
            Which::Stock => &self.stock,
            Which::Hasten => &self.hasten,
        };
        cost_of(&|| server.cpu_times(), || drive::run(server.target(), load))
    }

    fn load(&self, case: TlsCase, duration: Duration) -> Load {
        Load {
            concurrency: case.concurrency,
            threads: self.driver_cpus.len().clamp(1, case.concurrency),
            duration,
            protocol: case.protocol,
            group: case.group,
            cpus: self.driver_cpus.clone(),
            ..Load::default()
        }
    }
}
