//! An Envoy in front of an upstream, with a gzip filter.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hasten_telemetry::{Counters, ProcessError, Snapshot};
use hasten_tests::footprint::Footprint;
use hasten_tests::http::Client;
use hasten_tests::subject::{counters_of, send};
use hasten_tests::upstream::Upstream;
use hasten_tests::{bodies, lanes, product, wait};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The releases that `scripts/envoy.sh` fetches for `make test`.
pub(crate) const RELEASES: [&str; 2] = ["1.40.0", "1.36.2"];

/// The lengths of the bodies that Envoy answers by itself, at `/whole/LENGTH`. They reach the filter whole; those of an
/// HTTP/1 upstream come in pieces, if only in one and its end.
pub(crate) const WHOLE: [usize; 7] = [1, 100, 1500, 9000, 20_000, 100_000, 1_500_000];

/// Where func-e keeps what it keeps.
const FUNC_E_PLACES: [&str; 4] =
    ["FUNC_E_CONFIG_HOME", "FUNC_E_DATA_HOME", "FUNC_E_STATE_HOME", "FUNC_E_RUNTIME_DIR"];

/// The upstream, and where Envoy's files are.
pub(crate) struct Place {
    dir: TempDir,
    pub(crate) upstream: Upstream,
}

/// How Envoy is started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How<'a> {
    Stock,
    /// By `hasten run`, with these variables.
    Accelerated(&'a [(&'a str, &'a str)]),
    /// By `hasten run` of a script that starts what its arguments say.
    By(&'a Path),
    /// By `hasten run` of func-e, which finds it by a variable.
    FuncE(&'a Path),
    /// With the library, whatever the plan says of it.
    Preloaded,
}

/// A running Envoy; dropping it ends it.
pub(crate) struct Envoy {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

/// The official build of a release.
pub(crate) fn build(release: &str) -> PathBuf {
    fetched(&format!("envoy/{release}/envoy"), &format!("scripts/envoy.sh {release}"))
}

/// A program that a script fetches or builds.
pub(crate) fn fetched(path: &str, script: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the repository");
    let program = repository.join(".deps").join(path);
    assert!(program.is_file(), "{} is missing: run `{script}`", program.display());
    program
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("hasten-envoy-").tempdir().expect("a directory");
        for length in WHOLE {
            fs::write(dir.path().join(length.to_string()), bodies::page(length)).expect("a body");
        }
        Self { dir, upstream: Upstream::start() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts this build with these settings of the gzip filter, and waits until it answers.
    pub(crate) fn start(&self, build: &Path, gzip: &Value, how: How) -> Envoy {
        let envoy = self.launch(build, |socket| self.config(socket, gzip), how);
        envoy.wait_for("/whole/1")
    }

    /// Starts this build. The configuration has a socket in it that takes HTTP.
    pub(crate) fn launch(&self, build: &Path, config: impl FnOnce(&Path) -> Value, how: How) -> Envoy {
        // Without shared memory in which two of them would be one.
        self.launch_with(build, config, how, &["--disable-hot-restart"])
    }

    /// The same with these options.
    pub(crate) fn launch_with(
        &self,
        build: &Path,
        config: impl FnOnce(&Path) -> Value,
        how: How,
        options: &[&str],
    ) -> Envoy {
        let name = format!("envoy-{}", fs::read_dir(self.path()).expect("a directory").count());
        let file = |ending: &str| self.path().join(format!("{name}.{ending}"));
        let (socket, path, log) = (file("socket"), file("json"), file("log"));
        fs::write(&path, config(&socket).to_string()).expect("a configuration");
        let mut command = match how {
            How::Stock => Command::new(build),
            How::Preloaded => {
                let mut command = Command::new(build);
                command.env("LD_PRELOAD", product::envoy_library()).envs(lanes::variable());
                command
            }
            How::By(script) => {
                let mut command = Command::new(product::hasten());
                command.args(["run", "--quiet", "--"]).arg(script).arg(build).envs(lanes::variable());
                command
            }
            How::FuncE(func_e) => {
                let mut command = Command::new(product::hasten());
                command.args(["run", "--quiet", "--"]).arg(func_e).arg("run").envs(lanes::variable());
                command.env("ENVOY_PATH", build).envs(FUNC_E_PLACES.map(|name| (name, self.path())));
                command
            }
            How::Accelerated(variables) => {
                let mut command = Command::new(product::hasten());
                command.args(["run", "--quiet", "--"]).arg(build);
                command.envs(lanes::variable()).envs(variables.iter().copied());
                command
            }
        };
        // More than one worker.
        command.arg("-c").arg(&path).args(["--concurrency", "2", "-l", "warn"]).args(options);
        let output = File::create(&log).expect("a log");
        command.stdout(output.try_clone().expect("a log")).stderr(output).stdin(Stdio::null());
        Envoy { child: command.spawn().expect("Envoy"), socket, log }
    }

    pub(crate) fn config(&self, socket: &Path, gzip: &Value) -> Value {
        const TYPE: &str = "type.googleapis.com/envoy.extensions";
        let mut library = json!({"@type": format!("{TYPE}.compression.gzip.compressor.v3.Gzip")});
        for (name, value) in gzip.as_object().expect("settings") {
            library[name] = value.clone();
        }
        let compressor = json!({
            "@type": format!("{TYPE}.filters.http.compressor.v3.Compressor"),
            "compressor_library": {"name": "gzip", "typed_config": library},
            "response_direction_config": {"common_config": {"min_content_length": 1}},
        });
        let router = json!({"@type": format!("{TYPE}.filters.http.router.v3.Router")});
        let own = WHOLE.map(|length| {
            let body = self.path().join(length.to_string());
            json!({
                "match": {"path": format!("/whole/{length}")},
                "direct_response": {"status": 200, "body": {"filename": body}},
                "response_headers_to_add": [{"header": {"key": "content-type", "value": "text/html"}}],
            })
        });
        let others = json!({"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "60s"}});
        let routes: Vec<_> = own.into_iter().chain([others]).collect();
        let manager = json!({
            "@type": format!("{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": "test",
            "route_config": {
                "max_direct_response_body_size_bytes": 2_000_000,
                "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}],
            },
            "http_filters": [
                {"name": "compressor", "typed_config": compressor},
                {"name": "router", "typed_config": router},
            ],
        });
        json!({"static_resources": {
            "listeners": [{
                "name": "listener",
                "address": {"pipe": {"path": socket}},
                "filter_chains": [{"filters": [{"name": "manager", "typed_config": manager}]}],
            }],
            "clusters": [self.cluster()],
        }})
    }

    /// The upstream, as Envoy is told of it.
    pub(crate) fn cluster(&self) -> Value {
        let upstream = self.upstream.address();
        let endpoint = json!({"endpoint": {"address": {"socket_address": {
            "address": upstream.ip().to_string(), "port_value": upstream.port(),
        }}}});
        json!({
            "name": "upstream",
            "connect_timeout": "20s",
            "load_assignment": {"cluster_name": "upstream", "endpoints": [{"lb_endpoints": [endpoint]}]},
        })
    }
}

impl Envoy {
    /// Waits until it answers a request for this.
    pub(crate) fn wait_for(mut self, path: &str) -> Self {
        wait::until("Envoy to answer", || {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "Envoy has ended: {}", self.log());
            self.client().get(path).is_ok_and(|answer| answer.status == 200)
        });
        self
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(&self.socket)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The process that was started: that of Envoy, unless a script started it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn counters(&self) -> Counters {
        counters_of(self.child.id())
    }

    /// Whether it has counted nothing so far.
    pub(crate) fn stands_by(&self) -> bool {
        matches!(hasten_telemetry::pages_of(self.child.id()), Err(ProcessError::StandBy { .. }))
    }

    /// What it says of itself on its counter page; nothing if it has none.
    pub(crate) fn note(&self) -> String {
        let pages = hasten_telemetry::pages_of(self.child.id()).unwrap_or_default();
        let of = |snapshot: Snapshot| (snapshot.accelerator == "envoy").then_some(snapshot.note);
        pages.iter().filter_map(|page| of(page.read().ok()?)).next().unwrap_or_default()
    }

    /// Resident memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        self.footprint().resident_kib
    }

    pub(crate) fn footprint(&self) -> Footprint {
        Footprint::of(self.child.id())
    }

    /// Waits until it has ended by itself; panics if it did not end well.
    pub(crate) fn await_end(mut self) {
        let status = wait::for_some("Envoy to end", || self.child.try_wait().expect("a child"));
        assert!(status.success(), "{status}: {}", self.log());
    }

    /// Waits until a signal has ended it, and returns that, and what it has logged.
    pub(crate) fn killed(mut self) -> (Option<i32>, String) {
        let status = wait::for_some("Envoy to end", || self.child.try_wait().expect("a child"));
        (status.signal(), self.log())
    }

    /// Ends it as its operator would; panics if it did not end well.
    pub(crate) fn finish(self) {
        send(self.child.id(), Signal::TERM);
        self.await_end();
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
