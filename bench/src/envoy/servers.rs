//! Two Envoys with the same configuration, before one origin.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hasten_evidence::report::Row;
use hasten_evidence::warning::Warning;
use serde_json::{Value, json};

use super::case::{EnvoyCase, Work};
use super::origin::{Origin, PACKED, Page};
use super::{Options, page_path};
use crate::affinity::Placement;
use crate::certificates::{Certificate, KeyKind};
use crate::drive::requests::{self, Content};
use crate::drive::{self, Load};
use crate::duel::{self, Duel, Round, Which, cost_of};
use crate::error::BenchError;
use crate::gzip::corpus::generate::{self, Kind};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::server::{Launcher, Server, ServerKind, ServerSpec};
use crate::summary::row;

const TYPE: &str = "type.googleapis.com/envoy.extensions";
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Servers {
    case: EnvoyCase,
    stock: Server,
    hasten: Server,
    /// The pages as answers are to have them, by their sizes.
    contents: Vec<(usize, Content)>,
    driver_cpus: Vec<usize>,
    /// Ends after the servers.
    _origin: Origin,
}

impl Servers {
    /// `certificates` is a directory for them.
    pub(super) fn start(
        case: EnvoyCase,
        certificates: &Path,
        options: &Options,
        placement: &Placement,
    ) -> Result<Self, BenchError> {
        let mut contents = Vec::new();
        let mut pages = Vec::new();
        for &size in options.matrix.sizes.iter().chain(&case.size) {
            let plain = generate::file(Kind::Html, size);
            pages.push(Page::new(&page_path(size), plain.clone()).map_err(BenchError::Bodies)?);
            let is_packed = matches!(case.work, Work::Gzip | Work::RoundTrip);
            contents.push((size, if is_packed { Content::new(plain) } else { Content::plain(plain) }));
        }
        let behind = match case.work {
            Work::RoundTrip => Some(Certificate::create(certificates, KeyKind::P256)?),
            _ => None,
        };
        let origin = Origin::start(pages, behind.as_ref(), placement.driver.first().copied());
        let origin = origin.map_err(BenchError::Bodies)?;
        let spec = match case.cert {
            Some(kind) => ServerSpec::new(ServerKind::Envoy, Certificate::create(certificates, kind)?),
            None => ServerSpec::plain(ServerKind::Envoy),
        };
        let spec = spec.cpu(placement.server);
        // A handshake is answered by Envoy itself.
        let spec = match case.work {
            Work::Handshake => spec,
            _ => spec.http_lines(&manager(case)).main_lines(&cluster(origin.address(), behind.is_some())),
        };
        let window = if case.full_window { "full" } else { "configured" };
        let accelerated = spec
            .clone()
            .env("HASTEN_GZIP_WINDOW", window)
            .launcher(Launcher::Hasten { exe: options.hasten.clone() });
        Ok(Self {
            case,
            stock: options.baseline.server(spec).start()?,
            hasten: accelerated.start()?,
            contents,
            driver_cpus: placement.driver.clone(),
            _origin: origin,
        })
    }

    /// The same servers for `case`, if they suit it and are still alive.
    pub(super) fn reuse(mut self, case: EnvoyCase) -> Option<Self> {
        let kind = |case: &EnvoyCase| (case.work, case.cert, case.level, case.full_window);
        let suits = kind(&case) == kind(&self.case);
        (suits && self.stock.is_alive() && self.hasten.is_alive()).then_some(self)
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        duel::not_accelerated(&self.hasten, "/libhasten_envoy")
    }

    /// `None` if the user interrupted.
    pub(super) fn row(
        &mut self,
        case: EnvoyCase,
        pace: &Pace,
        progress: &Progress,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Row<EnvoyCase>>, BenchError> {
        self.round(Which::Stock, case, pace.warm_up)?;
        self.round(Which::Hasten, case, pace.warm_up)?;
        let duel = Duel { pace, progress, stopped, driver_threads: self.threads(case) };
        let measured = duel.measure(|which| self.round(which, case, pace.round))?;
        Ok(measured.map(|measured| row(case, measured)))
    }

    fn round(&self, which: Which, case: EnvoyCase, duration: Duration) -> Result<Round, BenchError> {
        let server = match which {
            Which::Stock => &self.stock,
            Which::Hasten => &self.hasten,
        };
        cost_of(&|| server.cpu_times(), || match case.work {
            Work::Handshake => drive::run(server.target(), &self.handshakes(case, duration)),
            Work::RoundTrip => {
                let (path, content) = self.page(case);
                drive::round_trips(server.target(), &path, content, &self.handshakes(case, duration))
            }
            Work::Plain | Work::Gzip | Work::Gunzip => {
                let (path, content) = self.page(case);
                let path = if case.work == Work::Gunzip { PACKED.to_owned() + &path } else { path };
                let target = requests::Target { address: server.address(), path: &path, content };
                requests::run(&target, &self.requests(case, duration))
            }
        })
    }

    /// The page of a row, by its path and as the answer is to have it.
    fn page(&self, case: EnvoyCase) -> (String, &Content) {
        let size = case.size.unwrap_or_default();
        let content = self.contents.iter().find(|(other, _)| *other == size);
        let (_, content) = content.expect("there is a page for every size of the matrix");
        (page_path(size), content)
    }

    fn threads(&self, case: EnvoyCase) -> usize {
        self.driver_cpus.len().clamp(1, case.concurrency)
    }

    fn handshakes(&self, case: EnvoyCase, duration: Duration) -> Load {
        Load {
            concurrency: case.concurrency,
            threads: self.threads(case),
            duration,
            cpus: self.driver_cpus.clone(),
            ..Load::default()
        }
    }

    fn requests(&self, case: EnvoyCase, duration: Duration) -> requests::Load {
        requests::Load {
            concurrency: case.concurrency,
            threads: self.threads(case),
            duration,
            timeout: TIMEOUT,
            cpus: self.driver_cpus.clone(),
        }
    }
}

/// Fields of the manager: everything goes to the origin, by the filters of the row.
fn manager(case: EnvoyCase) -> String {
    let filter = |name: &str, config: Value| json!({"name": name, "typed_config": config});
    let mut library = json!({"@type": format!("{TYPE}.compression.gzip.compressor.v3.Gzip")});
    if let Some(level) = case.level {
        library["compression_level"] = json!(format!("COMPRESSION_LEVEL_{level}"));
    }
    let compressor = json!({
        "@type": format!("{TYPE}.filters.http.compressor.v3.Compressor"),
        "compressor_library": {"name": "gzip", "typed_config": library},
    });
    let never = json!({"common_config": {"enabled": {"default_value": false, "runtime_key": "no"}}});
    let mut decompressor = json!({
        "@type": format!("{TYPE}.filters.http.decompressor.v3.Decompressor"),
        "decompressor_library": {"name": "gzip", "typed_config": {
            "@type": format!("{TYPE}.compression.gzip.decompressor.v3.Gzip"),
        }},
    });
    let mut filters = Vec::new();
    match case.work {
        Work::Gzip => filters.push(filter("compressor", compressor)),
        Work::Gunzip => filters.push(filter("decompressor", decompressor)),
        Work::RoundTrip => {
            // It would undo what the other does.
            decompressor["response_direction_config"] = never;
            filters.extend([filter("decompressor", decompressor), filter("compressor", compressor)]);
        }
        Work::Plain | Work::Handshake => {}
    }
    filters.push(filter("router", json!({"@type": format!("{TYPE}.filters.http.router.v3.Router")})));
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "origin"}},
    ]}]});
    format!(r#""route_config": {routes}, "http_filters": {}"#, Value::from(filters))
}

/// Fields of the static resources: the origin.
fn cluster(origin: SocketAddr, is_secure: bool) -> String {
    let endpoint = json!({"endpoint": {"address": {"socket_address": {
        "address": origin.ip().to_string(), "port_value": origin.port(),
    }}}});
    let mut cluster = json!({
        "name": "origin",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": "origin", "endpoints": [{"lb_endpoints": [endpoint]}]},
    });
    if is_secure {
        let context = json!({"@type": format!("{TYPE}.transport_sockets.tls.v3.UpstreamTlsContext")});
        cluster["transport_socket"] = json!({"name": "tls", "typed_config": context});
    }
    format!(r#""clusters": [{cluster}]"#)
}
