//! An exporter, and its output, parsed by hand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hasten_tests::{product, wait};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running `hasten export` on a port of the system's choice.
pub(crate) struct Exporter {
    process: Child,
    pub(crate) address: String,
}

/// Series by name and labels, as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrape(pub(crate) BTreeMap<String, f64>);

impl Exporter {
    pub(crate) fn start() -> Self {
        Self::with(&mut Command::new(product::hasten()))
    }

    pub(crate) fn with(command: &mut Command) -> Self {
        let command = command.args(["export", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the exporter starts");
        let mut line = String::new();
        let stderr = process.stderr.take().expect("a pipe");
        BufReader::new(stderr).read_line(&mut line).expect("it says where it is");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Self { process, address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The body of an answer that must be successful.
    pub(crate) fn get(&self, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the exporter listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a whole answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {answer:?}"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        body.to_owned()
    }

    pub(crate) fn scrape(&self) -> Scrape {
        Scrape::read(&self.get("/metrics", "text/plain"))
    }

    /// Scrapes until `enough`; the latest counts may not be on the page yet, and the look may be a second old.
    pub(crate) fn scrape_until(&self, what: &str, enough: impl Fn(&Scrape) -> bool) -> Scrape {
        wait::for_some(what, || Some(self.scrape()).filter(&enough))
    }

    /// Ends it by a signal, and waits.
    pub(crate) fn stop(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), signal).expect("the exporter is there");
        self.process.wait().expect("it ends")
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Scrape {
    pub(crate) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line:?}")))
        });
        Self(series.collect())
    }

    /// The sum over all series of a metric that have these labels, written `name="value"`.
    pub(crate) fn sum(&self, metric: &str, labels: &[&str]) -> f64 {
        let suits = |series: &&String| {
            let is_metric = series.split('{').next() == Some(metric);
            is_metric && labels.iter().all(|label| series.contains(label))
        };
        self.0.keys().filter(suits).map(|series| self.0[series]).sum()
    }
}
