//! The load: the user's own tool, whose output is parsed as it is, or our own driver.
//!
//! Nothing is added to the user's command. A failure reported by the tool is a failure here, and only correct
//! work counts.

mod builtin;
mod command;
mod error;
mod installed;
mod process;
mod recognise;
mod target;
mod tools;
mod units;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use regex::Regex;

use self::builtin::Builtin;
use self::command::CommandLine;
pub use self::error::LoadError;
pub use self::process::Printed;
use self::recognise::Tool;
pub use self::target::Target;
use crate::measure::Latency;

/// How the service is driven, each time in the same way.
#[derive(Debug)]
pub struct Load {
    driver: Driver,
    metric: Option<Regex>,
}

#[derive(Debug)]
enum Driver {
    Builtin(Builtin),
    Command { line: CommandLine, tool: Option<Tool> },
}

/// The results of one run of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadResult {
    /// Requests answered correctly; `None` if the load does not report them.
    pub requests: Option<f64>,
    pub seconds: f64,
    /// The others: not answered with 2xx (or 3xx, where the tool accepts that), or not at all.
    pub failed: u64,
    /// The kinds of failures, in words.
    pub failures: Vec<String>,
    pub latency: Option<Latency>,
    /// The value from `--metric-regex`, or of `metric` in a line of JSON.
    pub custom: Option<f64>,
    /// The bytes that the load received, if it reports them.
    pub received: Option<Received>,
}

/// Bytes that a load received in all of its answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    pub bytes: f64,
    /// Half of the last printed digit, relative to the number.
    pub rounding: f64,
}

impl Load {
    /// Parses a command line, split as a shell does.
    ///
    /// `metric` is a regular expression with one group, whose last match in the output is [`LoadResult::custom`];
    /// groups named `requests`, `seconds`, `failed` or `p99_ms` have the meaning of their names.
    pub fn parse(command_line: &str, metric: Option<&str>) -> Result<Self, LoadError> {
        let line = CommandLine::parse(command_line)?;
        let metric = metric.map(compile).transpose()?;
        let tool = Tool::of(line.words());
        Ok(Self { driver: Driver::Command { line, tool }, metric })
    }

    /// Our own requests on `connections` open connections, in a closed loop.
    pub fn builtin(url: &str, connections: usize, duration: Duration) -> Result<Self, LoadError> {
        Ok(Self { driver: Driver::Builtin(Builtin::new(url, connections, duration)?), metric: None })
    }

    /// The load in one line, suitable for pasting.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.driver {
            Driver::Builtin(builtin) => builtin.describe(),
            Driver::Command { line, .. } => line.text().to_owned(),
        }
    }

    /// The tool whose output is parsed; `None` if it takes `--metric-regex` or a line of JSON.
    #[must_use]
    pub fn tool(&self) -> Option<&'static str> {
        match &self.driver {
            Driver::Builtin(_) => Some("built-in"),
            Driver::Command { tool, .. } => tool.map(Tool::name),
        }
    }

    /// How to make it run longer.
    #[must_use]
    pub fn longer(&self) -> String {
        match &self.driver {
            Driver::Builtin(builtin) => builtin.longer(),
            Driver::Command { tool, .. } => {
                tool.map_or("a larger number of requests, or a longer time", Tool::longer).to_owned()
            }
        }
    }

    /// How long one run takes, if its command reveals it.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        match &self.driver {
            Driver::Builtin(builtin) => Some(builtin.seconds()),
            Driver::Command { line, tool } => (*tool)?.seconds(line.words()),
        }
    }

    /// Checks that the load's programs exist, before a service is started for it.
    ///
    /// # Errors
    ///
    /// One is not.
    pub fn is_installed(&self) -> Result<(), LoadError> {
        match &self.driver {
            Driver::Builtin(_) => Ok(()),
            Driver::Command { line, tool } => installed::check(line, *tool),
        }
    }

    /// What the load requests from the service, if its command reveals it; empty if it is not HTTP.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        match &self.driver {
            Driver::Builtin(builtin) => vec![builtin.target()],
            Driver::Command { line, tool } => target::of(line.words(), *tool),
        }
    }

    /// Whether it opens TLS connections; `None` if its command does not reveal it.
    #[must_use]
    pub fn uses_tls(&self) -> Option<bool> {
        match &self.driver {
            Driver::Builtin(builtin) => Some(builtin.target().url.tls),
            Driver::Command { line, tool } => target::uses_tls(line.words(), *tool),
        }
    }

    /// Whether it certainly drives something other than HTTP.
    #[must_use]
    pub fn is_other_than_http(&self) -> bool {
        matches!(&self.driver, Driver::Command { tool: Some(tool), .. } if !tool.speaks_http())
    }

    /// Drives the service once. On return, no process of the tool is left.
    pub fn run(&self, deadline: Instant, stop: &AtomicBool) -> Result<LoadResult, LoadError> {
        match &self.driver {
            Driver::Builtin(builtin) => builtin.run(deadline, stop),
            Driver::Command { line, tool } => {
                let file = tool.and_then(|tool| tool.output_file(line.words()));
                let started = SystemTime::now();
                let mut printed = process::run(line, deadline, stop)?;
                printed.file = file.and_then(|file| written_since(&file, started));
                self.understand(&printed)
            }
        }
    }

    /// Parses a tool's output, which may be anything.
    pub fn understand(&self, printed: &Printed) -> Result<LoadResult, LoadError> {
        let Driver::Command { line, tool } = &self.driver else {
            return Err(LoadError::NotUnderstood { printed: printed.last_lines() });
        };
        let understood = match tool {
            Some(tool) => tool.parse(line.words(), printed),
            None => tools::other::parse(printed),
        };
        let by_regex = self.metric.as_ref().and_then(|metric| tools::other::by_regex(metric, printed));
        let result = match (understood, by_regex) {
            (Some(known), Some(found)) => Some(found.over(known)),
            // A requested metric that was not found is no result.
            (known, None) => known.filter(|_| self.metric.is_none()),
            (None, found) => found,
        };
        result
            .filter(LoadResult::is_sane)
            .ok_or_else(|| LoadError::NotUnderstood { printed: printed.last_lines() })
    }
}

impl LoadResult {
    /// Numbers that cannot be divided by or compared with are no result.
    fn is_sane(&self) -> bool {
        let fine = |number: f64| number.is_finite() && number >= 0.0;
        self.requests.is_none_or(fine)
            && fine(self.seconds)
            && self.custom.is_none_or(f64::is_finite)
            && self.received.is_none_or(|received| fine(received.bytes))
    }

    /// These numbers where present, otherwise those of `known`.
    fn over(self, known: Self) -> Self {
        Self {
            requests: self.requests.or(known.requests),
            seconds: if known.requests.is_some() && self.requests.is_none() {
                known.seconds
            } else {
                self.seconds
            },
            failed: self.failed.max(known.failed),
            failures: [known.failures, self.failures].concat(),
            latency: self.latency.or(known.latency),
            custom: self.custom.or(known.custom),
            received: self.received.or(known.received),
        }
    }
}

fn compile(text: &str) -> Result<Regex, LoadError> {
    let regex = Regex::new(text)
        .map_err(|error| LoadError::MetricRegex { regex: text.to_owned(), why: error.to_string() })?;
    if regex.captures_len() < 2 {
        let why = "it has no group: put the number in brackets, as in 'score: ([0-9.]+)'".to_owned();
        return Err(LoadError::MetricRegex { regex: text.to_owned(), why });
    }
    Ok(regex)
}

/// The file that the tool was told to write, unless it existed before.
fn written_since(file: &PathBuf, started: SystemTime) -> Option<String> {
    const MOST: u64 = 64 << 20;
    // File times are only as precise as the kernel's tick.
    let earliest = started - Duration::from_secs(1);
    let about = std::fs::metadata(file).ok()?;
    let fresh = about.len() <= MOST && about.modified().ok()? >= earliest;
    fresh
        .then(|| std::fs::read(file).ok())
        .flatten()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
