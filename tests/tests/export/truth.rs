//! The counts match what was done, whatever happens to the server.

use std::io::Write;
use std::process::{Command, Stdio};

use hasten_tests::{lanes, product, tools, wait};

use crate::exporter::{Exporter, Scrape};
use crate::server::{BODY, Server};

const REQUESTS: u64 = 16;

/// The counts of one program.
struct Counts<'a>(&'a Scrape, String);

impl<'a> Counts<'a> {
    fn of(scrape: &'a Scrape, server: &Server) -> Self {
        Self(scrape, format!("program=\"{}\"", server.name))
    }

    fn sum(&self, metric: &str, labels: &[&str]) -> u64 {
        self.0.sum(metric, &[&[self.1.as_str()], labels].concat()) as u64
    }

    fn requests(&self) -> (u64, u64) {
        let handshakes = self.sum("hasten_handshakes_total", &["result=\"finished\""]);
        (handshakes, self.sum("hasten_streams_total", &["op=\"deflate\""]))
    }
}

/// A scrape that includes these requests; too many would never match.
fn after(exporter: &Exporter, server: &Server, requests: u64) -> Scrape {
    let is_done = |scrape: &Scrape| Counts::of(scrape, server).requests() >= (requests, requests);
    let scrape = exporter.scrape_until("all requests to be counted", is_done);
    assert_eq!(Counts::of(&scrape, server).requests(), (requests, requests));
    scrape
}

#[test]
fn every_request_is_counted_once() {
    let server = Server::start();
    let exporter = Exporter::start();
    let packed: u64 = (0..REQUESTS).map(|_| server.request()).sum();
    let scrape = after(&exporter, &server, REQUESTS);
    let counts = Counts::of(&scrape, &server);
    let plain = REQUESTS * BODY as u64;
    let stream = |direction| counts.sum("hasten_stream_bytes_total", &["op=\"deflate\"", direction]);
    assert_eq!((stream("direction=\"in\""), stream("direction=\"out\"")), (plain, packed));
    assert_eq!(counts.sum("hasten_bytes_total", &["op=\"deflate\"", "direction=\"in\""]), plain);
    // One shared secret per handshake, by any engine. Nonces for signatures are made eight at a time, in advance.
    let done = |op: &str| counts.sum("hasten_ops_total", &[&format!("op=\"{op}\""), "result=\"ok\""]);
    assert_eq!(done("x25519-derive"), REQUESTS, "{scrape:#?}");
    assert!((REQUESTS..REQUESTS + 2 * 8).contains(&done("p-256-sign")), "{scrape:#?}");
    assert_eq!(counts.sum("hasten_processes", &["accelerator=\"tls\""]), 3);
    assert_eq!(counts.sum("hasten_verify_failures_total", &[]), 0);
}

#[test]
fn counters_go_on_when_workers_die_and_servers_start_again() {
    let mut server = Server::start();
    let exporter = Exporter::start();
    let mut requests = 0;
    let mut ask = |server: &Server| {
        (0..3).for_each(|_| _ = server.request());
        requests += 3;
        requests
    };
    let mut last = after(&exporter, &server, ask(&server));
    let mut next = |server: &Server, requests| {
        let scrape = after(&exporter, server, requests);
        assert_no_less(&scrape, &last, server);
        last = scrape;
    };
    server.lose_a_worker();
    next(&server, ask(&server));
    // Requests between the last scrape and the end of the page are not lost either.
    let before_the_end = ask(&server);
    server.restart();
    next(&server, before_the_end);
    next(&server, ask(&server));
    server.end();
    let is_gone = |scrape: &Scrape| Counts::of(scrape, &server).sum("hasten_processes", &[]) == 0;
    let ended = exporter.scrape_until("the exporter to see the end", is_gone);
    assert_no_less(&ended, &last, &server);
}

fn assert_no_less(scrape: &Scrape, before: &Scrape, server: &Server) {
    let is_counter = |series: &str| series.contains("_total{") || series.contains("_bucket{");
    for (series, value) in
        before.0.iter().filter(|(series, _)| is_counter(series) && series.contains(&server.name))
    {
        let now = scrape.0.get(series).unwrap_or_else(|| panic!("{series} is gone"));
        assert!(now >= value, "{series} was {value} and is {now}");
    }
}

#[test]
fn an_engine_that_is_taken_out_of_service_is_shown_so() {
    // With several workers, the kernel may leave one idle, which would see nothing of it.
    let server = Server::with_workers(1);
    let exporter = Exporter::start();
    let engine = |action: &str| {
        let pid = server.pid().to_string();
        // An idle process notices when it wakes; there is no need to wait for that here.
        let mut command = Command::new(product::hasten());
        tools::run(command.args(["engine", action, "isal", &pid, "--wait", "0"]));
    };
    let becomes = |state: u64| {
        exporter.scrape_until("the state of the breaker", |scrape| {
            server.request();
            Counts::of(scrape, &server).sum("hasten_breaker_state", &["engine=\"isal\""]) == state
        })
    };
    let before = becomes(0);
    engine("disable");
    becomes(3);
    engine("enable");
    let after = becomes(0);
    // Disabling is not a fault.
    let opened = |scrape| Counts::of(scrape, &server).sum("hasten_breaker_opened_total", &[]);
    assert_eq!((opened(&before), opened(&after)), (0, 0));
}

#[test]
fn others_can_read_it() {
    let server = Server::start();
    let exporter = Exporter::start();
    // Key pairs come in batches, and some may have been left by the trial, which is not counted. Without lanes there are none.
    let awaited = if lanes::exist() { "hasten_batch_lanes_count" } else { "hasten_handshakes_total" };
    wait::until("a batch", || {
        server.request();
        exporter.get("/metrics", "text/plain").contains(awaited)
    });
    // Prometheus's own parser and its rules for names.
    let text = exporter.get("/metrics", "text/plain");
    assert!(text.contains(&server.name), "{text}");
    let output = feed(Command::new(tools::tool("promtool", "prometheus")).args(["check", "metrics"]), &text);
    assert_eq!(output, "", "{text}");
    // The strictest parser of OpenMetrics there is.
    let parser = "/usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py";
    tools::file_of(parser, "python3-prometheus-client");
    let open = exporter.get("/metrics", "application/openmetrics-text; version=1.0.0");
    let families = feed(Command::new("/usr/bin/python3").args(["-c", READ]), &open);
    let batches = lanes::exist().then_some("hasten_batch_lanes histogram");
    let names = ["hasten_ops counter", "hasten_build info", "hasten_stream_bytes counter bytes"];
    for name in names.into_iter().chain(batches) {
        assert!(families.lines().any(|line| line.trim_end() == name), "{name} is not in {families}");
    }
}

const READ: &str = "import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
for family in read(sys.stdin.read()):
    print(family.name, family.type, family.unit)";

/// Runs a program that must succeed on this input; returns all its output.
fn feed(command: &mut Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(output.status.success(), "{command:?}: {said}\n{input}");
    said
}
