//! `hasten engine` on real servers under load: whatever is switched, no client may notice, and the counters must.

mod switched;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use hasten_bench::server::ServerSpec;
use hasten_telemetry::{Counters, Engine};
use hasten_tests::http::Client;
use hasten_tests::site::Site;
use hasten_tests::subject::{assert_perfect, counters_of, crowd};
use hasten_tests::traffic::Traffic;
use hasten_tests::{Subject, bodies, product, tools, wait};

const BODY: usize = 60_000;

/// After this many answers nothing that began earlier is still in progress.
const SOME: u64 = 40;

/// nginx with both accelerators: level 1 is ISA-L's, level 6 libdeflate's.
fn site() -> Site {
    Site::new()
        .under("tls,gzip")
        .file("body.html", &bodies::page(BODY))
        .location("one", "gzip_comp_level 1;")
        .location("six", "gzip_comp_level 6;")
}

/// A server with a constant stream of TLS and compression clients.
struct Busy {
    server: Subject,
    handshakes: Traffic,
    visitors: Option<Visitors>,
}

impl Busy {
    fn new(spec: &ServerSpec, site: Option<&Site>) -> Self {
        let server = Subject::accelerated(spec);
        let handshakes = Traffic::start(server.target(), &crowd());
        let visitors = site.map(|site| Visitors::start(&site.client()));
        Self { server, handshakes, visitors }
    }

    fn counters(&self) -> Counters {
        counters_of(self.server.pid())
    }

    /// Waits until enough clients of each kind have been served for earlier operations to have ended.
    fn serve_some(&self) {
        let (handshakes, answers) = (self.handshakes.ops(), self.visitors.as_ref().map(Visitors::served));
        wait::until("more clients to be served", || {
            let answered = self.visitors.as_ref().map(Visitors::served);
            self.handshakes.ops() > handshakes + SOME && answered >= answers.map(|before| before + SOME)
        });
    }

    /// Waits until each of these has done new work.
    fn wait_for(&self, engines: &[Engine]) {
        let before = self.counters();
        wait::until("the engines to work", || {
            let new = self.counters().since(&before);
            engines.iter().all(|engine| new[*engine].ok > 0)
        });
    }

    /// The counts while clients are served and these engines must be idle.
    fn without(&self, engines: &[Engine]) -> Counters {
        // A thread other than the one that reported the change may have been in the middle of an operation.
        self.serve_some();
        let before = self.counters();
        self.serve_some();
        let new = self.counters().since(&before);
        for engine in engines {
            assert_eq!(new[*engine].operations(), 0, "{engine} is disabled and works");
        }
        new
    }

    /// `hasten engine VERB NAME` on the server; returns its output.
    fn switch(&self, verb: &str, name: &str) -> String {
        switch(verb, name, self.server.pid())
    }

    /// Checks that nobody has noticed anything.
    fn finish(self) {
        assert_perfect(&self.handshakes.stop(), &self.server.log());
        if let Some(visitors) = self.visitors {
            visitors.finish();
        }
        self.server.finish();
    }
}

/// Waits as long as a busy machine may take, and succeeds or panics.
fn switch(verb: &str, name: &str, pid: u32) -> String {
    let mut command = Command::new(product::hasten());
    command.args(["engine", verb, name, &pid.to_string(), "--wait", "30"]);
    String::from_utf8(tools::run(&mut command).stdout).expect("text")
}

/// Compression clients, which check every body.
struct Visitors {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

impl Visitors {
    fn start(client: &Client) -> Self {
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let visit = |path: &'static str| {
            let (client, stop, served) = (client.clone(), Arc::clone(&stop), Arc::clone(&served));
            thread::spawn(move || {
                let body = bodies::page(BODY);
                let mut failures = Vec::new();
                while !stop.load(Relaxed) {
                    match client.get(path).and_then(|answer| Ok((answer.is_packed(), answer.plain()?))) {
                        Ok((true, plain)) if plain == body => {
                            served.fetch_add(1, Relaxed);
                        }
                        Ok((packed, plain)) => {
                            failures.push(format!("{path}: packed {packed}, {} bytes", plain.len()));
                        }
                        Err(error) => failures.push(format!("{path}: {error}")),
                    }
                }
                failures
            })
        };
        let threads = ["/one/body.html", "/six/body.html"].map(visit).into();
        Self { stop, served, threads }
    }

    fn served(&self) -> u64 {
        self.served.load(Relaxed)
    }

    fn finish(self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads {
            let failures = thread.join().expect("a visitor does not panic");
            assert!(failures.is_empty(), "{failures:#?}");
        }
    }
}
