//! Ghost 6 with MariaDB, behind nginx: two instances on one database, from their own folders, never as a service.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::advice;
use super::case::Workload;
use super::error::NodeError;
use super::http::{Pair, Request, Side, Turns, advice_for, body, load};
use super::recipe::Recipe;
use super::runtime::Version;
use super::server::{NodeServer, Start};
use crate::affinity::Placement;
use crate::certificates::{Certificate, KeyKind};
use crate::drive::Target;
use crate::drive::requests::{self, Content};
use crate::error::BenchError;
use crate::port::Port;
use crate::server::{Launcher, Server, ServerKind, ServerSpec, find_program};
use crate::wait::wait;

/// The first start creates a hundred tables.
const START_LIMIT: Duration = Duration::from_secs(240);
const DATABASE_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);

const CONCURRENCY: usize = 32;

/// Contained in the front page of a new Ghost.
const MARKER: &[u8] = b"<meta name=\"generator\" content=\"Ghost 6";

/// The versions that its `package.json` requires.
pub(super) fn supports(version: Version) -> bool {
    matches!(version.major, 22 | 24)
}

pub(super) struct Ghosts<'a> {
    pub(super) workload: Workload,
    pub(super) directory: &'a Path,
    pub(super) hasten: &'a Path,
    pub(super) placement: &'a Placement,
    pub(super) version: Version,
    /// How long it writes the trace on which the advice is based.
    pub(super) trace: Duration,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl Ghosts<'_> {
    /// A stock and an accelerated pair of Ghost and nginx, and the options advised for the second.
    pub(super) fn start(&self, stock: &Recipe, hasten: &Recipe) -> Result<(Pair, Vec<String>), BenchError> {
        let database = Database::start(self.stopped)?;
        let stock_app = self.app(stock, &database)?;
        let page = body(&stock_app, "/", MARKER, "Ghost")?;
        let advice = self.advice(hasten, &database, &page)?;
        let hasten_app = self.app(&hasten.clone().options(&advice), &database)?;
        let certificates = tempfile::tempdir().map_err(BenchError::Directory)?;
        let certificate = match self.workload {
            Workload::GhostHttps => Some(Certificate::create(certificates.path(), KeyKind::P256)?),
            _ => None,
        };
        let stock_front = self.front(&stock_app, certificate.as_ref(), Launcher::Stock)?;
        let launcher = Launcher::Hasten { exe: self.hasten.to_owned() };
        let hasten_front = self.front(&hasten_app, certificate.as_ref(), launcher)?;
        let request = match certificate {
            None => Request::Plain { path: "/", content: Content::new(page) },
            Some(certificate) => {
                let target = |front: &Server| Target {
                    address: front.address(),
                    certificate: Some(certificate.leaf.clone()),
                    body: Some(page.clone()),
                };
                Request::Tls { targets: [target(&stock_front), target(&hasten_front)] }
            }
        };
        let pair = Pair {
            stock: Turns::new(vec![Side { app: stock_app, front: Some(stock_front) }]),
            hasten: Turns::new(vec![Side { app: hasten_app, front: Some(hasten_front) }]),
            request,
            concurrency: CONCURRENCY,
            driver_cpus: self.placement.driver.clone(),
            _database: Some(database),
            _directories: vec![certificates],
        };
        Ok((pair, advice))
    }

    /// The advice for a trace of the same requests, without nginx.
    fn advice(&self, recipe: &Recipe, database: &Database, page: &[u8]) -> Result<Vec<String>, BenchError> {
        let server = self.app(&recipe.clone().flag(advice::FLAG), database)?;
        let content = Content::plain(page.to_vec());
        let target = requests::Target { address: server.address(), path: "/", content: &content };
        let load = load(CONCURRENCY, self.trace, self.placement);
        requests::run(&target, &load).map_err(BenchError::Driver)?;
        Ok(advice_for(server, self.version))
    }

    fn app(&self, recipe: &Recipe, database: &Database) -> Result<NodeServer, NodeError> {
        let port = Port::reserve().map_err(NodeError::Wait)?;
        let address = port.address();
        let recipe = database.configure(recipe.clone(), address);
        let answers =
            move |_: &Path| requests::fetch(address, "/", Duration::from_secs(5)).is_ok().then_some(address);
        let start = Start {
            what: "Ghost",
            directory: self.directory,
            script: "index.js",
            limit: START_LIMIT,
            ready: &answers,
        };
        NodeServer::start(&recipe, &start, self.stopped)
    }

    /// nginx as in Ghost's documentation, with compression.
    fn front(
        &self,
        app: &NodeServer,
        certificate: Option<&Certificate>,
        launcher: Launcher,
    ) -> Result<Server, BenchError> {
        let spec = match certificate {
            Some(certificate) => ServerSpec::new(ServerKind::Nginx, certificate.clone()),
            None => ServerSpec::plain(ServerKind::Nginx),
        };
        let http = format!(
            "upstream ghost {{ server {}; keepalive 64; }}
    keepalive_requests 1000000000;
    gzip on;",
            app.address()
        );
        // The fixture answers `/` itself.
        let server = "rewrite ^/$ /ghost/ last;
        location /ghost/ {
            proxy_pass http://ghost/;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host localhost;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header Accept-Encoding \"\";
        }";
        Ok(spec.http_lines(&http).server_lines(server).launcher(launcher).start()?)
    }
}

/// A MariaDB in its own folder that listens only on a socket. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Database {
    child: Child,
    directory: TempDir,
}

impl Database {
    fn start(stopped: &dyn Fn() -> bool) -> Result<Self, NodeError> {
        let server = program("mariadbd")?;
        let failed = |why: String, log: String| NodeError::Start { what: "MariaDB".to_owned(), why, log };
        let directory = tempfile::Builder::new()
            .prefix("hasten-mariadb-")
            .tempdir()
            .map_err(|error| failed(error.to_string(), String::new()))?;
        let log = directory.path().join("log");
        let result = Self::create(&server, directory.path(), &log, stopped)
            .and_then(|()| Self::spawn(&server, directory.path(), &log));
        let text = || fs::read_to_string(&log).unwrap_or_default();
        let child = result.map_err(|error| failed(error.to_string(), text()))?;
        let mut database = Self { child, directory };
        let deadline = Instant::now() + DATABASE_LIMIT;
        while !database.socket().exists() {
            if stopped() {
                return Err(NodeError::Stopped);
            }
            if Instant::now() > deadline || !matches!(database.child.try_wait(), Ok(None)) {
                return Err(failed("it does not listen".to_owned(), text()));
            }
            thread::sleep(POLL);
        }
        Ok(database)
    }

    /// Creates the system tables.
    fn create(server: &Path, directory: &Path, log: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let install = program("mariadb-install-db").map_err(io::Error::other)?;
        let mut command = Command::new(install);
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        // It calls other programs beside it.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let beside = server.parent().map(|directory| directory.with_file_name("bin"));
        let paths = std::env::split_paths(&path).chain(beside);
        command.env("PATH", std::env::join_paths(paths).unwrap_or(path.clone()));
        let mut child = Self::common(&mut command, server, directory, log)?.spawn()?;
        match wait(&mut child, DATABASE_LIMIT, stopped)? {
            Some(ended) if ended.status.success() => Ok(()),
            Some(ended) => Err(io::Error::other(format!("mariadb-install-db ended with {}", ended.status))),
            None => Err(io::Error::other("mariadb-install-db did not end")),
        }
    }

    fn spawn(server: &Path, directory: &Path, log: &Path) -> io::Result<Child> {
        let init = directory.join("init.sql");
        fs::write(&init, "CREATE DATABASE ghost;\n")?;
        let mut command = Command::new(server);
        let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        Self::common(&mut command, server, directory, log)?
            .arg(option("socket", directory.join("socket")))
            .arg(option("pid-file", directory.join("pid")))
            .arg(option("init-file", init))
            .args(["--skip-networking", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=2"])
            .spawn()
    }

    fn common<'a>(
        command: &'a mut Command,
        server: &Path,
        directory: &Path,
        log: &Path,
    ) -> io::Result<&'a mut Command> {
        let output = File::options().create(true).append(true).open(log)?;
        // `/usr/sbin/mariadbd` belongs to `/usr`.
        let base = server.ancestors().nth(2).unwrap_or(Path::new("/usr"));
        command
            .arg("--no-defaults")
            .arg(format!("--basedir={}", base.display()))
            .arg(format!("--datadir={}", directory.join("data").display()))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        // It refuses to run as root unless told to.
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        Ok(command)
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Ghost's configuration, which it also takes from the environment.
    fn configure(&self, recipe: Recipe, address: SocketAddr) -> Recipe {
        recipe
            .env("url", "http://localhost/")
            .env("server__host", address.ip().to_string())
            .env("server__port", address.port().to_string())
            .env("database__client", "mysql")
            .env("database__connection__socketPath", self.socket())
            .env("database__connection__user", "root")
            .env("database__connection__password", "")
            .env("database__connection__database", "ghost")
            // Nothing of it may contact the outside.
            .env("privacy__useUpdateCheck", "false")
            .env("privacy__useGravatar", "false")
            .env("privacy__useRpcPing", "false")
            .env("logging__level", "error")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(pid, Signal::TERM);
            let deadline = Instant::now() + STOP_LIMIT;
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(POLL);
            }
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Whether everything that Ghost needs besides Node.js is installed.
pub(super) fn requirements() -> Result<(), NodeError> {
    program("mariadbd").and_then(|_| program("mariadb-install-db")).map(drop)
}

fn program(name: &'static str) -> Result<PathBuf, NodeError> {
    find_program(name).map_err(|_| NodeError::NoDatabase { program: name })
}
