//! Two servers of the same kind with the same certificate, and their peer on another TLS library if there is one.

use std::time::Duration;

use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;

use super::{HIDDEN_AVX512, Options, TlsCase};
use crate::affinity::Placement;
use crate::certificates::Certificate;
use crate::drive::{self, Load};
use crate::duel::{self, Duel, Round, cost_of};
use crate::error::BenchError;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::{Launcher, Server, ServerSpec};
use crate::summary::row;

pub(super) struct Servers {
    case: TlsCase,
    stock: Server,
    hasten: Server,
    peer: Option<Server>,
    driver_cpus: Vec<usize>,
}

impl Servers {
    pub(super) fn start(
        case: TlsCase,
        certificate: &Certificate,
        options: &Options,
        placement: &Placement,
    ) -> Result<Self, BenchError> {
        let spec = |kind| {
            let spec = ServerSpec::new(kind, certificate.clone())
                .cpu(placement.server)
                .server_lines(case.tickets.server_lines(kind));
            let hidden = if options.hide_avx512 { &HIDDEN_AVX512[..] } else { &[] };
            hidden.iter().fold(spec, |spec, (name, value)| spec.env(*name, *value))
        };
        let accelerated = case.server.accelerated();
        let peer = (case.server != accelerated).then(|| spec(case.server));
        let spec = spec(accelerated);
        let accelerated = spec.clone().launcher(Launcher::Hasten { exe: options.hasten.clone() });
        Ok(Self {
            case,
            stock: options.baseline.server(spec).start()?,
            hasten: accelerated.start()?,
            peer: peer.map(|peer| peer.start()).transpose()?,
            driver_cpus: placement.driver.clone(),
        })
    }

    /// The same servers for `case`, if they suit it and are still alive.
    pub(super) fn reuse(mut self, case: TlsCase) -> Option<Self> {
        let suits =
            (case.server, case.cert, case.tickets) == (self.case.server, self.case.cert, self.case.tickets);
        let are_alive =
            [&mut self.stock, &mut self.hasten].into_iter().chain(&mut self.peer).all(Server::is_alive);
        (suits && are_alive).then_some(self)
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        duel::not_accelerated(&self.hasten, "/libhasten_")
    }

    /// One row, or two with a peer: the first is then of the server without it. None if the user interrupted.
    pub(super) fn rows(
        &self,
        case: TlsCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<Row<TlsCase>>, BenchError> {
        let others: Vec<_> = [&self.stock].into_iter().chain(&self.peer).collect();
        let warm_up = self.load(case, pace.warm_up);
        for server in others.iter().copied().chain([&self.hasten]) {
            round(server, &warm_up)?;
        }
        let load = self.load(case, pace.round);
        let duel = Duel { pace, progress, stopped, driver_threads: load.threads };
        let measured = duel.measure_each(&others, &self.hasten, |server| round(server, &load))?;
        let cases = [TlsCase { server: case.server.accelerated(), ..case }, case];
        Ok(cases
            .into_iter()
            .zip(measured.into_iter().flatten())
            .map(|(case, side)| row(case, side))
            .collect())
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

fn round(server: &Server, load: &Load) -> Result<Round, BenchError> {
    cost_of(&|| server.cpu_times(), || drive::run(server.target(), load))
}
