//! A server of the run: its configuration, its present address, and what is known about it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{Launcher, Server, ServerKind, ServerSpec};
use hasten_telemetry::Counters;

use super::corpus::Corpus;
use super::ledger::{History, Loss};
use crate::pki::Pki;
use crate::subject::counters_of;
use crate::{Side, product};

/// The keys of the certificates that a client chooses by server name.
pub const NAMES: [(&str, KeyKind); 3] =
    [("rsa.test", KeyKind::Rsa2048), ("p256.test", KeyKind::P256), ("p384.test", KeyKind::P384)];

/// nginx's levels of compression; HAProxy's paths.
const LEVELS: [&str; 3] = ["/1/", "/5/", "/9/"];
const PROXIED: [&str; 1] = ["/f/"];

/// Worker processes of nginx, threads of HAProxy.
const WORKERS: usize = 2;

/// The common clock of the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub Instant);

impl Clock {
    #[must_use]
    pub fn now(&self) -> std::time::Duration {
        self.0.elapsed()
    }
}

/// The clients' counts.
#[derive(Debug, Default)]
pub struct Tally {
    pub answers: AtomicU64,
    pub packed: AtomicU64,
    pub bytes: AtomicU64,
    pub full: AtomicU64,
    pub resumed: AtomicU64,
    /// Connections of clients that misbehave on purpose.
    pub rude: AtomicU64,
}

pub struct Station {
    pub kind: ServerKind,
    pub side: Side,
    pub root: PathBuf,
    pub tally: Tally,
    /// Held by the one client that brings many others.
    pub crowd: Mutex<()>,
    spec: ServerSpec,
    state: Mutex<State>,
}

/// State that changes when the server is restarted.
struct State {
    server: Server,
    /// The logs of servers that have ended.
    log: String,
    counters: Counters,
    history: History,
    losses: Vec<Loss>,
    generation: u32,
}

impl Station {
    /// Starts a server of this kind in front of `origin`, which has the bodies.
    #[must_use]
    pub fn start(kind: ServerKind, side: Side, pki: &Pki, corpus: &Corpus, origin: SocketAddr) -> Self {
        let certificates: Vec<_> = NAMES.iter().map(|(name, key)| pki.named(*key, name)).collect();
        let root = certificates[0].root.clone();
        let spec = match kind {
            ServerKind::Nginx => nginx(&certificates, corpus.dir()),
            ServerKind::Haproxy => haproxy(certificates, origin, &pki.dir().join(format!("{side:?}.socket"))),
            ServerKind::Envoy => unreachable!("not one of the distribution's"),
        };
        let launcher = match side {
            Side::Stock => Launcher::Stock,
            Side::Accelerated => product::launcher(),
        };
        let spec = spec.launcher(launcher).workers(WORKERS);
        let state = State {
            server: start(&spec),
            log: String::new(),
            counters: Counters::default(),
            history: History::default(),
            losses: Vec::new(),
            generation: 0,
        };
        Self {
            kind,
            side,
            root,
            tally: Tally::default(),
            crowd: Mutex::default(),
            spec,
            state: Mutex::new(state),
        }
    }

    /// Possible prefixes of a file's path.
    #[must_use]
    pub fn prefixes(&self) -> &'static [&'static str] {
        match self.kind {
            ServerKind::Nginx => &LEVELS,
            ServerKind::Haproxy => &PROXIED,
            ServerKind::Envoy => unreachable!("not one of the distribution's"),
        }
    }

    /// The number of workers when there are no old ones.
    #[must_use]
    pub fn usual_workers(&self) -> usize {
        match self.kind {
            ServerKind::Nginx => WORKERS,
            ServerKind::Haproxy => 1,
            ServerKind::Envoy => unreachable!("not one of the distribution's"),
        }
    }

    #[must_use]
    pub fn name(&self) -> String {
        let side = match self.side {
            Side::Stock => "stock",
            Side::Accelerated => "hasten",
        };
        format!("{} ({side})", self.kind)
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.state().server.address()
    }

    /// The master.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.state().server.pid()
    }

    /// A process with the counter page: HAProxy's master re-executes itself after starting its worker.
    #[must_use]
    pub fn accelerated_pid(&self) -> u32 {
        match self.kind {
            ServerKind::Nginx => self.pid(),
            ServerKind::Haproxy => self.workers().last().copied().unwrap_or_else(|| self.pid()),
            ServerKind::Envoy => unreachable!("not one of the distribution's"),
        }
    }

    /// From the oldest to the newest.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        self.state().server.workers()
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.state().server.is_alive()
    }

    #[must_use]
    pub fn generation(&self) -> u32 {
        self.state().generation
    }

    /// Updates the history, for the verdict.
    pub fn remember(&self, act: impl FnOnce(&mut History)) {
        act(&mut self.state().history);
    }

    /// The workers that the last reload has replaced.
    #[must_use]
    pub fn before_reload(&self) -> Vec<u32> {
        self.state().history.reloads.last().map(|reload| reload.old.clone()).unwrap_or_default()
    }

    pub fn next_generation(&self) {
        self.state().generation += 1;
    }

    pub fn lose(&self, loss: Loss) {
        self.state().losses.push(loss);
    }

    #[must_use]
    pub fn losses(&self) -> (History, Vec<Loss>) {
        let state = self.state();
        (state.history.clone(), state.losses.clone())
    }

    /// Acts as a supervisor after the master has ended.
    pub fn restart(&self) {
        let server = start(&self.spec);
        let mut state = self.state();
        let old = std::mem::replace(&mut state.server, server);
        state.log += &old.log();
        state.generation += 1;
    }

    /// Saves counters that are about to disappear with their process.
    pub fn keep_counters(&self) {
        if self.side == Side::Accelerated && self.kind == ServerKind::Haproxy {
            let counters = counters_of(self.accelerated_pid());
            self.state().counters += &counters;
        }
    }

    /// Since the start; zero for a stock server.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.state().counters.clone();
        if self.side == Side::Accelerated {
            counters += &counters_of(self.accelerated_pid());
        }
        counters
    }

    #[must_use]
    pub fn log(&self) -> String {
        let state = self.state();
        state.log.clone() + &state.server.log()
    }

    pub fn answered(&self) -> u64 {
        self.tally.answers.load(Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(spec: &ServerSpec) -> Server {
    spec.start().unwrap_or_else(|error| panic!("{error}\n{}", error.fix()))
}

/// The server with the bodies, which is left in peace.
#[must_use]
pub fn origin(corpus: &Corpus) -> Server {
    let files = corpus.dir().display();
    let lines = format!("location /f/ {{ alias {files}/; default_type text/html; }}");
    start(
        &ServerSpec::plain(ServerKind::Nginx)
            .server_lines(&lines)
            .http_lines("keepalive_requests 1000000000;"),
    )
}

fn nginx(certificates: &[Certificate], files: &Path) -> ServerSpec {
    let mut locations = String::new();
    for prefix in LEVELS {
        let level = prefix.trim_matches('/');
        let files = files.display();
        let _ = writeln!(locations, "location {prefix} {{ alias {files}/; gzip_comp_level {level}; }}");
    }
    let mut lines =
        "gzip on; gzip_types text/html; default_type text/html; gzip_min_length 0; gzip_proxied any;
    add_header X-Worker $pid always; keepalive_requests 1000000000;\n"
            .to_owned();
    for ((name, _), Certificate { chain, key, .. }) in NAMES.iter().zip(certificates) {
        let (chain, key) = (chain.display(), key.display());
        let _ = writeln!(
            lines,
            "server {{ listen {{address}} ssl; server_name {name}; ssl_certificate {chain}; ssl_certificate_key {key};
            {locations} }}"
        );
    }
    ServerSpec::new(ServerKind::Nginx, certificates[0].clone()).http_lines(&lines)
}

/// Without the socket a new process rebinds its port, and even stock HAProxy loses connections.
fn haproxy(certificates: Vec<Certificate>, origin: SocketAddr, socket: &Path) -> ServerSpec {
    let mut certificates = certificates.into_iter();
    let first = certificates.next().expect("a certificate");
    let spec = certificates.fold(ServerSpec::new(ServerKind::Haproxy, first), ServerSpec::also);
    let socket = socket.display();
    // A small session cache fills up before the worker's growth is measured.
    let main = format!(
        "master-worker
    stats socket {socket} level admin expose-fd listeners
    tune.ssl.cachesize 1000"
    );
    spec.main_lines(&main)
        .http_lines(&format!(
            "compression algo gzip
    compression type text/html

backend origin
    server origin {origin}\n"
        ))
        .server_lines(
            "
    http-after-response set-header x-worker %pid
    http-request allow if { path_beg /f/ }
    default_backend origin",
        )
}
