//! A server of the run: its configuration, its present address, and what is known about it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Instant;
use std::{fs, thread};

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{Launcher, Server, ServerError, ServerKind, ServerSpec};
use hasten_telemetry::Counters;
use serde_json::json;

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

/// Worker processes of nginx, threads of HAProxy and Envoy.
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
    /// What Envoy reads its keys and certificates from.
    secrets: Vec<Secret>,
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
        let secrets = match kind {
            ServerKind::Envoy => certificates
                .iter()
                .zip(NAMES)
                .map(|(certificate, (name, _))| {
                    Secret::write(certificate, pki.dir().join(format!("{side:?}-{name}.json")))
                })
                .collect(),
            _ => Vec::new(),
        };
        let spec = match kind {
            ServerKind::Nginx => nginx(&certificates, corpus.dir()),
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc => {
                haproxy(certificates, origin, &pki.dir().join(format!("{side:?}.socket")))
            }
            ServerKind::Envoy => envoy(certificates[0].clone(), &secrets, origin),
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
            secrets,
        }
    }

    /// Possible prefixes of a file's path.
    #[must_use]
    pub fn prefixes(&self) -> &'static [&'static str] {
        match self.kind {
            ServerKind::Nginx => &LEVELS,
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc | ServerKind::Envoy => &PROXIED,
        }
    }

    /// The number of workers when there are no old ones.
    #[must_use]
    pub fn usual_workers(&self) -> usize {
        match self.kind {
            ServerKind::Nginx => WORKERS,
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc | ServerKind::Envoy => 1,
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
            ServerKind::Nginx | ServerKind::Envoy => self.pid(),
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc => {
                self.workers().last().copied().unwrap_or_else(|| self.pid())
            }
        }
    }

    /// From the oldest to the newest. Envoy's threads are all in one process.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        let server = &self.state().server;
        if self.kind == ServerKind::Envoy { vec![server.pid()] } else { server.workers() }
    }

    /// Has Envoy read its keys and certificates again.
    pub fn renew_secrets(&self) {
        self.secrets.iter().for_each(Secret::renew);
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
        if self.side == Side::Accelerated && self.kind != ServerKind::Nginx {
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

/// Starts a server from a thread that does not end: Envoy ends with the thread that has started it.
fn start(spec: &ServerSpec) -> Server {
    type Job = (ServerSpec, mpsc::Sender<Result<Server, ServerError>>);
    static STARTER: LazyLock<Mutex<mpsc::Sender<Job>>> = LazyLock::new(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (spec, done) in jobs {
                let _ = done.send(spec.start());
            }
        });
        Mutex::new(sender)
    });
    let (done, server) = mpsc::channel();
    let job = (spec.clone(), done);
    STARTER.lock().unwrap_or_else(PoisonError::into_inner).send(job).expect("the thread does not end");
    let server = server.recv().expect("the thread does not end");
    server.unwrap_or_else(|error| panic!("{error}\n{}", error.fix()))
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

/// A key and its certificate in a file from which Envoy reads them, again whenever it is replaced.
struct Secret {
    name: String,
    path: PathBuf,
    text: String,
}

impl Secret {
    fn write(certificate: &Certificate, path: PathBuf) -> Self {
        let name = certificate.kind.to_string();
        let text = json!({"resources": [{
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            "name": name,
            "tls_certificate": {
                "certificate_chain": {"filename": certificate.chain},
                "private_key": {"filename": certificate.key},
            },
        }]});
        let secret = Self { name, path, text: text.to_string() };
        secret.renew();
        secret
    }

    /// Puts another file in its place: Envoy looks for one that is moved there.
    fn renew(&self) {
        let new = self.path.with_extension("new");
        fs::write(&new, &self.text).and_then(|()| fs::rename(&new, &self.path)).expect("a secret");
    }
}

fn envoy(certificate: Certificate, secrets: &[Secret], origin: SocketAddr) -> ServerSpec {
    const TYPE: &str = "type.googleapis.com/envoy.extensions";
    let secrets: Vec<_> = secrets
        .iter()
        .map(|Secret { name, path, .. }| {
            let source = json!({"path_config_source": {"path": path}, "resource_api_version": "V3"});
            json!({"name": name, "sds_config": source})
        })
        .collect();
    let compressor = json!({
        "@type": format!("{TYPE}.filters.http.compressor.v3.Compressor"),
        "compressor_library": {"name": "gzip", "typed_config": {
            "@type": format!("{TYPE}.compression.gzip.compressor.v3.Gzip"),
        }},
        "response_direction_config": {"common_config": {"min_content_length": 1}},
    });
    let filters = json!([
        {"name": "compressor", "typed_config": compressor},
        {"name": "router", "typed_config": {"@type": format!("{TYPE}.filters.http.router.v3.Router")}},
    ]);
    let hosts = json!([{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "300s"}},
    ]}]);
    let endpoint = json!({"endpoint": {"address": {"socket_address": {
        "address": origin.ip().to_string(), "port_value": origin.port(),
    }}}});
    // A pool of idle connections, as many as there once were requests at a time, would look like a leak.
    let options = format!("{TYPE}.upstreams.http.v3.HttpProtocolOptions");
    let options = json!({
        options.trim_start_matches("type.googleapis.com/"): {
            "@type": options,
            "common_http_protocol_options": {"idle_timeout": "1s"},
            "explicit_http_config": {"http_protocol_options": {}},
        },
    });
    let cluster = json!({
        "name": "origin",
        "typed_extension_protocol_options": options,
        "connect_timeout": "20s",
        "load_assignment": {"cluster_name": "origin", "endpoints": [{"lb_endpoints": [endpoint]}]},
    });
    let context = json!({"tls_certificate_sds_secret_configs": secrets});
    ServerSpec::new(ServerKind::Envoy, certificate)
        .main_lines(&format!(r#""clusters": [{cluster}]"#))
        .http_lines(&format!(r#""route_config": {{"virtual_hosts": {hosts}}}, "http_filters": {filters}"#))
        .server_lines(&format!(r#""common_tls_context": {context}"#))
}
