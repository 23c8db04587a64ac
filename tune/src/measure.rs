//! The cost of a service with a candidate, and the interface that measures it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::space::Candidate;

/// One fresh start of the service, driven once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Correct work.
    pub requests: f64,
    /// Wall time of the load.
    pub seconds: f64,
    /// CPU time of the service's processes during the load, kernel included.
    pub cpu_seconds: f64,
    /// The peak memory of all its processes together.
    pub peak_rss_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The value from `--metric-regex` or a line of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
    /// For HTTP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// The size of an answer on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    pub per_request: f64,
    /// The possible error, as a share: tools print rounded numbers.
    #[serde(default)]
    pub rounding: f64,
    pub by: Counter,
}

/// What counted the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// The load, over all of its requests.
    Load,
    /// hasten, which fetched the pages of the load after each run.
    Pages,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Why a candidate is permanently out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Disqualified {
    /// It ended, or never became ready.
    Crashed { what: String },
    /// Requests failed, or were not answered with 2xx.
    FailedRequests { what: String },
    /// An answer was not what the baseline answers.
    ChangedAnswer { what: String },
    /// The service wrote an error that the baseline does not write.
    LoggedError { line: String },
    /// A limit set by the user was exceeded.
    Constraint { what: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Measured(Measurement),
    Disqualified(Disqualified),
}

/// A service under its load.
pub trait Subject {
    /// Why a session stops: the user, or a fault not caused by a candidate.
    type Stop;

    fn measure(&mut self, candidate: &Candidate) -> Result<Outcome, Self::Stop>;

    /// What it has learnt so far, for a resumed session; saved with each measurement.
    fn knowledge(&self) -> Value {
        Value::Null
    }
}

impl fmt::Display for Disqualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed { what } => write!(f, "it crashed: {what}"),
            Self::FailedRequests { what } => write!(f, "requests failed: {what}"),
            Self::ChangedAnswer { what } => write!(f, "it answers something else: {what}"),
            Self::LoggedError { line } => write!(f, "it logs an error: {line}"),
            Self::Constraint { what } => write!(f, "a limit is passed: {what}"),
        }
    }
}
