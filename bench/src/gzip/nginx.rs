//! nginx compressing what it sends: two of them, with a location for each level.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;
use tempfile::TempDir;

use super::corpus::generate::{self, Kind};
use super::corpus::size_name;
use super::{GzipCase, Options, ServerCase};
use crate::affinity::Placement;
use crate::drive::requests::{self, Content, Load, Target};
use crate::duel::{self, Duel, Round, Which, cost_of};
use crate::error::BenchError;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::{Launcher, Server, ServerKind, ServerSpec};
use crate::summary::row;

/// Enough for the worker always to have its next request ready.
const CONNECTIONS: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Servers {
    stock: Server,
    hasten: Server,
    contents: Vec<(usize, Content)>,
    driver_cpus: Vec<usize>,
    /// What nginx serves; dropped after the servers.
    _root: TempDir,
}

impl Servers {
    pub(super) fn start(options: &Options, placement: &Placement) -> Result<Self, BenchError> {
        let matrix = &options.matrix;
        let contents: Vec<_> = matrix.sizes.iter().map(|&size| (size, Content::new(page(size)))).collect();
        let root = write_files(&contents).map_err(BenchError::Bodies)?;
        let spec = ServerSpec::plain(ServerKind::Nginx)
            .cpu(placement.server)
            .http_lines(HTTP_LINES)
            .server_lines(&locations(&matrix.server_levels, root.path()));
        // Other accelerators of `hasten run` are out of scope here.
        let launcher = Launcher::Hasten { exe: options.hasten.clone() };
        let accelerated = spec.clone().launcher(launcher).env("HASTEN_ONLY", "gzip");
        Ok(Self {
            stock: options.baseline.server(spec).env("HASTEN_ONLY", "gzip").start()?,
            hasten: accelerated.start()?,
            contents,
            driver_cpus: placement.driver.clone(),
            _root: root,
        })
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        duel::not_accelerated(&self.hasten, "/libhasten_gzip")
    }

    /// `None` if the user interrupted.
    pub(super) fn row(
        &mut self,
        case: ServerCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<GzipCase>>, BenchError> {
        let warm_up = self.load(pace.warm_up);
        self.round(Which::Stock, case, &warm_up)?;
        self.round(Which::Hasten, case, &warm_up)?;

        let load = self.load(pace.round);
        let duel = Duel { pace, progress, stopped, driver_threads: load.threads };
        let measured = duel.measure(|which| self.round(which, case, &load))?;
        Ok(measured.map(|measured| row(GzipCase::Server(case), measured)))
    }

    fn round(&self, which: Which, case: ServerCase, load: &Load) -> Result<Round, BenchError> {
        let server = match which {
            Which::Stock => &self.stock,
            Which::Hasten => &self.hasten,
        };
        let content = self.contents.iter().find(|(size, _)| *size == case.size);
        let (_, content) = content.expect("there is a body for every size of the matrix");
        let path = format!("/{}/{}", case.level, file_name(case.size));
        let target = Target { address: server.address(), path: &path, content };
        cost_of(&|| server.cpu_times(), || requests::run(&target, load))
    }

    fn load(&self, duration: Duration) -> Load {
        Load {
            concurrency: CONNECTIONS,
            threads: self.driver_cpus.len().clamp(1, CONNECTIONS),
            duration,
            timeout: TIMEOUT,
            cpus: self.driver_cpus.clone(),
        }
    }
}

/// One nginx that serves one page at one level, for observation from outside.
#[derive(Debug)]
pub struct Site {
    server: Server,
    path: String,
    content: Content,
    _root: TempDir,
}

impl Site {
    pub fn start(level: u8, size: usize, launcher: Launcher, cpu: Option<usize>) -> Result<Self, BenchError> {
        let contents = [(size, Content::new(page(size)))];
        let root = write_files(&contents).map_err(BenchError::Bodies)?;
        let spec = ServerSpec::plain(ServerKind::Nginx)
            .cpu(cpu)
            .http_lines(HTTP_LINES)
            .server_lines(&locations(&[level], root.path()))
            .launcher(launcher)
            .env("HASTEN_ONLY", "gzip");
        let [(_, content)] = contents;
        let path = format!("/{level}/{}", file_name(size));
        Ok(Self { server: spec.start()?, path, content, _root: root })
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    pub fn target(&self) -> Target<'_> {
        Target { address: self.server.address(), path: &self.path, content: &self.content }
    }
}

/// Like Debian's nginx.conf, with compression for every size and type, and connections that stay open for a round.
const HTTP_LINES: &str = "sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    gzip on;
    gzip_min_length 0;
    gzip_types text/plain text/css application/json application/javascript text/xml image/svg+xml;";

fn locations(levels: &[u8], root: &Path) -> String {
    let mut lines = String::new();
    for level in levels {
        let _ = write!(
            lines,
            "location /{level}/ {{ alias {}/; gzip_comp_level {level}; }}\n        ",
            root.display()
        );
    }
    lines
}

fn write_files(contents: &[(usize, Content)]) -> io::Result<TempDir> {
    let root = tempfile::Builder::new().prefix("hasten-bodies-").tempdir()?;
    // The worker of an nginx started by root runs as another user.
    fs::set_permissions(root.path(), Permissions::from_mode(0o755))?;
    for (size, content) in contents {
        fs::write(root.path().join(file_name(*size)), content.body())?;
    }
    Ok(root)
}

fn page(size: usize) -> Vec<u8> {
    generate::file(Kind::Html, size)
}

fn file_name(size: usize) -> String {
    format!("{}.html", size_name(size))
}
