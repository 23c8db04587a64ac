//! Real servers under test: started from a temporary directory, stock or accelerated, and stopped when dropped.
//!
//! ```no_run
//! use hasten_bench::certificates::{Certificate, KeyKind};
//! use hasten_bench::server::{Launcher, ServerKind, ServerSpec};
//!
//! let dir = tempfile::tempdir()?;
//! let certificate = Certificate::create(dir.path(), KeyKind::P256)?;
//! let server = ServerSpec::new(ServerKind::Nginx, certificate)
//!     .launcher(Launcher::Hasten { exe: "target/release/hasten".into() })
//!     .workers(2)
//!     .server_lines("ssl_session_tickets off;")
//!     .start()?;
//! println!("{} listens on {}", server.pid(), server.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod envoy;
mod haproxy;
mod nginx;
mod process;
mod program;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::certificates::Certificate;
use crate::drive::Target;
use crate::port::Port;

pub use self::process::Server;
pub use self::program::{MissingProgram, find_program};

/// The servers that have a fixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerKind {
    Nginx,
    Haproxy,
    Envoy,
    /// HAProxy on AWS-LC: what hasten is compared with, and what it leaves alone.
    HaproxyAwsLc,
}

impl ServerKind {
    /// The servers of the distribution, which link its OpenSSL.
    pub const ALL: [Self; 2] = [Self::Nginx, Self::Haproxy];

    /// The servers that hasten accelerates.
    pub const ACCELERATED: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Envoy];

    /// Every server by its name.
    pub const KNOWN: [Self; 4] = [Self::Nginx, Self::Haproxy, Self::Envoy, Self::HaproxyAwsLc];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::HaproxyAwsLc => "haproxy-aws-lc",
        }
    }

    /// The server that stands in hasten's column: this one, or that on OpenSSL in place of one that hasten leaves alone.
    #[must_use]
    pub fn accelerated(self) -> Self {
        match self {
            Self::HaproxyAwsLc => Self::Haproxy,
            other => other,
        }
    }

    /// Where the program is, or how to install it.
    pub fn program(self) -> Result<PathBuf, MissingProgram> {
        find_program(self.as_str())
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ServerKind {
    type Err = UnknownServer;

    fn from_str(given: &str) -> Result<Self, UnknownServer> {
        let known = Self::KNOWN.into_iter().find(|kind| kind.as_str() == given);
        known.ok_or_else(|| UnknownServer(given.to_owned()))
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown server {0:?}: use nginx, haproxy, envoy or haproxy-aws-lc")]
pub struct UnknownServer(String);

/// How a server's command is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// As the distribution ships it.
    Stock,
    /// Behind `hasten run --`.
    Hasten { exe: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Missing(#[from] MissingProgram),
    #[error("cannot start {program}: {source}")]
    Spawn { program: PathBuf, source: io::Error },
    #[error("{kind} did not start: {why}\n{log}")]
    Start { kind: ServerKind, why: String, log: String },
    #[error("cannot prepare the directory of a {kind} fixture: {source}")]
    Prepare { kind: ServerKind, source: io::Error },
}

impl ServerError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Missing(missing) => missing.fix(),
            Self::Spawn { program, .. } => format!("see whether `{} -v` works", program.display()),
            Self::Start { kind, .. } => format!("the lines above are what {kind} itself says"),
            Self::Prepare { .. } => {
                "see that the directory for temporary files (TMPDIR) exists and has room".to_owned()
            }
        }
    }
}

/// What to start. Unset options are as the distribution configures them.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    kind: ServerKind,
    program: Option<PathBuf>,
    certificates: Vec<Certificate>,
    launcher: Launcher,
    workers: usize,
    connections: usize,
    cpu: Option<usize>,
    body: String,
    main_lines: String,
    http_lines: String,
    server_lines: String,
    env: Vec<(OsString, OsString)>,
}

impl ServerSpec {
    /// One worker, one port, `GET /` answered with a short text.
    #[must_use]
    pub fn new(kind: ServerKind, certificate: Certificate) -> Self {
        Self { certificates: vec![certificate], ..Self::plain(kind) }
    }

    /// The same without TLS.
    #[must_use]
    pub fn plain(kind: ServerKind) -> Self {
        Self {
            kind,
            program: None,
            certificates: Vec::new(),
            launcher: Launcher::Stock,
            workers: 1,
            connections: 4096,
            cpu: None,
            body: "hello from the fixture\n".to_owned(),
            main_lines: String::new(),
            http_lines: String::new(),
            server_lines: String::new(),
            env: Vec::new(),
        }
    }

    #[must_use]
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }

    /// Another program than the one that PATH has.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// One more certificate on the same port: chosen by the client's capabilities or SNI.
    #[must_use]
    pub fn also(mut self, certificate: Certificate) -> Self {
        self.certificates.push(certificate);
        self
    }

    /// Worker processes of nginx, threads of HAProxy or Envoy.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// The most connections that a worker process of nginx, or all of HAProxy, may have open at a time.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Pins every process of the server to one CPU.
    #[must_use]
    pub fn cpu(mut self, cpu: Option<usize>) -> Self {
        self.cpu = cpu;
        self
    }

    /// The text that `GET /` answers. It must not contain quotes or variables.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// Lines for nginx's main context or HAProxy's `global` section, or fields in JSON for Envoy's `static_resources`.
    #[must_use]
    pub fn main_lines(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.main_lines);
        self
    }

    /// Lines for nginx's `http` context or HAProxy's `defaults` section, or fields in JSON for Envoy's
    /// `HttpConnectionManager`. For the first two, `{address}` in them is replaced by the address that the fixture listens on,
    /// so that they can define further servers there.
    #[must_use]
    pub fn http_lines(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.http_lines);
        self
    }

    /// Lines for nginx's `server` context, parameters for HAProxy's `bind` line, or fields in JSON for Envoy's
    /// `DownstreamTlsContext`.
    #[must_use]
    pub fn server_lines(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.server_lines);
        self
    }

    /// A variable of the server's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Whether the server's environment has this variable from [`env`](Self::env).
    #[must_use]
    pub fn sets(&self, name: &str) -> bool {
        self.env.iter().any(|(set, _)| set == name)
    }

    /// Starts the server and waits until it accepts connections.
    pub fn start(&self) -> Result<Server, ServerError> {
        let program = self.program.clone().map_or_else(|| self.kind.program(), Ok)?;
        // Another process that asks for this very port may get it before the server does.
        let mut attempts = 3;
        loop {
            attempts -= 1;
            match self.start_once(&program) {
                Err(ServerError::Start { log, .. }) if attempts > 0 && in_use(&log) => {}
                result => return result,
            }
        }
    }

    fn start_once(&self, program: &std::path::Path) -> Result<Server, ServerError> {
        let prepare = |source| ServerError::Prepare { kind: self.kind, source };
        let dir = tempfile::Builder::new().prefix("hasten-fixture-").tempdir().map_err(prepare)?;
        let port = Port::reserve().map_err(prepare)?;
        let address = port.address();
        let arguments = match self.kind {
            ServerKind::Nginx => nginx::prepare(self, dir.path(), address),
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc => haproxy::prepare(self, dir.path(), address),
            ServerKind::Envoy => envoy::prepare(self, dir.path(), address),
        }
        .map_err(prepare)?;
        let target = Target {
            address,
            certificate: self.certificates.first().map(|certificate| certificate.leaf.clone()),
            body: Some(self.body.clone().into_bytes()),
        };
        let command = program::command(&self.launcher, program, &arguments, &self.env);
        Server::spawn(self.kind, command, dir, port, target, self.cpu)
    }
}

/// Lines from a caller who does not know the address yet.
fn with_address(lines: &str, address: SocketAddr) -> String {
    lines.replace("{address}", &address.to_string())
}

fn in_use(log: &str) -> bool {
    // nginx quotes the system; HAProxy has words of its own.
    log.contains("Address already in use") || log.contains("cannot bind socket")
}
