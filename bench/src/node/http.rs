//! Workloads that are servers: a pair of them, driven in turn.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::advice;
use super::case::Workload;
use super::error::NodeError;
use super::ghost::Database;
use super::recipe::Recipe;
use super::runtime::Version;
use super::server::{NodeServer, Start, written_port};
use crate::affinity::Placement;
use crate::cpu::CpuTimes;
use crate::drive::requests::{self, Content};
use crate::drive::{self, Load, Target};
use crate::duel::{Round, Which, cost_of};
use crate::error::BenchError;
use crate::server::Server;

const START_LIMIT: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);

/// The parts of one side.
pub(super) struct Side {
    pub(super) app: NodeServer,
    /// The nginx in front of it, if the workload has one.
    pub(super) front: Option<Server>,
}

/// What the driver requests.
pub(super) enum Request {
    /// On open connections.
    Plain { path: &'static str, content: Content },
    /// With a handshake for each request.
    Tls { targets: [Target; 2] },
}

/// Several processes of each side take turns: how a heap has grown differs between processes, and lasts.
pub(super) struct Pair {
    pub(super) stock: Turns,
    pub(super) hasten: Turns,
    pub(super) request: Request,
    pub(super) concurrency: usize,
    pub(super) driver_cpus: Vec<usize>,
    /// Dropped after the servers: the database, the cache folder, certificates.
    pub(super) _database: Option<Database>,
    pub(super) _directories: Vec<TempDir>,
}

/// Processes of one side, and whose turn it is.
pub(super) struct Turns {
    sides: Vec<Side>,
    next: usize,
}

impl Turns {
    pub(super) fn new(sides: Vec<Side>) -> Self {
        Self { sides, next: 0 }
    }

    pub(super) fn all(&self) -> &[Side] {
        &self.sides
    }

    fn take(&mut self) -> &Side {
        let index = self.next % self.sides.len();
        self.next += 1;
        &self.sides[index]
    }
}

impl Pair {
    /// Drives every process, so that its code is compiled and its heap has grown.
    pub(super) fn warm_up(&mut self, duration: Duration) -> Result<(), BenchError> {
        for _ in 0..self.stock.all().len() {
            for which in [Which::Stock, Which::Hasten] {
                self.round(which, duration)?;
            }
        }
        Ok(())
    }

    pub(super) fn round(&mut self, which: Which, duration: Duration) -> Result<Round, BenchError> {
        let driver = Driver {
            request: &self.request,
            concurrency: self.concurrency,
            threads: self.driver_threads(),
            cpus: &self.driver_cpus,
        };
        let side = match which {
            Which::Stock => self.stock.take(),
            Which::Hasten => self.hasten.take(),
        };
        let mut round = cost_of(&|| side.cpu_times(), || driver.drive(which, side, duration))?;
        round.memory = side.app.resident();
        Ok(round)
    }

    pub(super) fn driver_threads(&self) -> usize {
        self.driver_cpus.len().clamp(1, self.concurrency)
    }
}

struct Driver<'a> {
    request: &'a Request,
    concurrency: usize,
    threads: usize,
    cpus: &'a [usize],
}

impl Driver<'_> {
    fn drive(&self, which: Which, side: &Side, duration: Duration) -> std::io::Result<drive::Outcome> {
        let (concurrency, threads, cpus) = (self.concurrency, self.threads, self.cpus.to_vec());
        match self.request {
            Request::Plain { path, content } => {
                let address = side.front.as_ref().map_or(side.app.address(), Server::address);
                let load = requests::Load { concurrency, threads, duration, timeout: TIMEOUT, cpus };
                requests::run(&requests::Target { address, path, content }, &load)
            }
            Request::Tls { targets } => {
                let load = Load { concurrency, threads, duration, timeout: TIMEOUT, cpus, ..Load::default() };
                drive::run(&targets[usize::from(which == Which::Hasten)], &load)
            }
        }
    }
}

impl Side {
    /// The sum over all processes of the side.
    fn cpu_times(&self) -> CpuTimes {
        let app = self.app.cpu_times();
        match &self.front {
            Some(front) => app.and(front.cpu_times()),
            None => app,
        }
    }
}

/// A workload that consists of one of our scripts.
pub(super) struct AppWorkload {
    pub(super) workload: Workload,
    pub(super) directory: PathBuf,
    pub(super) version: Version,
}

impl AppWorkload {
    pub(super) fn path(&self) -> &'static str {
        match self.workload {
            Workload::JsonApi => "/customers/3",
            _ => "/",
        }
    }

    /// Enough requests in flight for the main thread always to have the next one; the API's requests wait 5 ms each.
    pub(super) fn concurrency(&self) -> usize {
        if self.workload == Workload::JsonApi { 64 } else { 16 }
    }

    pub(super) fn start(&self, recipe: &Recipe, stopped: &dyn Fn() -> bool) -> Result<NodeServer, NodeError> {
        let start = Start {
            what: self.workload.as_str(),
            directory: &self.directory,
            script: "app.js",
            limit: START_LIMIT,
            ready: &written_port,
        };
        NodeServer::start(recipe, &start, stopped)
    }

    /// The stock server's answer, which must look like the workload's.
    pub(super) fn content(&self, stock: &NodeServer) -> Result<Content, NodeError> {
        let marker: &[u8] = match self.workload {
            Workload::JsonApi => b"{\"rows\":300,",
            _ => b"id=\"product-99\"",
        };
        body(stock, self.path(), marker, self.workload.as_str()).map(Content::plain)
    }

    /// Drives a server that writes a trace, and returns what the advice for it adds to `NODE_OPTIONS`.
    pub(super) fn advice(
        &self,
        recipe: &Recipe,
        duration: Duration,
        placement: &Placement,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, BenchError> {
        let server = self.start(&recipe.clone().flag(advice::FLAG), stopped)?;
        let content = self.content(&server)?;
        let target = requests::Target { address: server.address(), path: self.path(), content: &content };
        let load = load(self.concurrency(), duration, placement);
        requests::run(&target, &load).map_err(BenchError::Driver)?;
        Ok(advice_for(server, self.version))
    }
}

/// The load for a server that writes a trace.
pub(super) fn load(concurrency: usize, duration: Duration, placement: &Placement) -> requests::Load {
    requests::Load { concurrency, threads: 1, duration, timeout: TIMEOUT, cpus: placement.driver.clone() }
}

/// The advice for the trace of a server that has done its work.
pub(super) fn advice_for(mut server: NodeServer, version: Version) -> Vec<String> {
    server.stop();
    advice::of_log(&server.log(), version)
}

/// The page that `server` sends, if it contains `marker`.
pub(super) fn body(server: &NodeServer, path: &str, marker: &[u8], what: &str) -> Result<Vec<u8>, NodeError> {
    let wrong = |why: String| NodeError::Answer { what: what.to_owned(), why };
    let body = requests::fetch(server.address(), path, TIMEOUT).map_err(|error| wrong(error.to_string()))?;
    if !body.windows(marker.len()).any(|window| window == marker) {
        return Err(wrong(format!("there is no {:?} in its page", String::from_utf8_lossy(marker))));
    }
    Ok(body)
}
