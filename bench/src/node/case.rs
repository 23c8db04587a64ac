//! What one row compares.

use std::fmt;
use std::str::FromStr;

use hasten_evidence::report::Case;
use serde::{Serialize, Serializer};

use super::tuning::Tuning;

/// The work that Node.js is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// A fresh process that requires three SDKs.
    FaasStartup,
    /// HTML of a React application.
    ReactSsr,
    /// JSON from rows that outlive a collection.
    JsonApi,
    /// The tests of the Web Tooling Benchmark, once each.
    WebTooling,
    /// Ghost's front page through nginx.
    GhostHttp,
    /// The same with a TLS handshake for each request.
    GhostHttps,
}

impl Workload {
    pub const ALL: [Self; 6] = [
        Self::FaasStartup,
        Self::ReactSsr,
        Self::JsonApi,
        Self::WebTooling,
        Self::GhostHttp,
        Self::GhostHttps,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FaasStartup => "faas-startup",
            Self::ReactSsr => "react-ssr",
            Self::JsonApi => "json-api",
            Self::WebTooling => "web-tooling",
            Self::GhostHttp => "ghost-http",
            Self::GhostHttps => "ghost-https",
        }
    }

    /// Whether it needs a database and half a gigabyte of packages.
    #[must_use]
    pub fn is_ghost(self) -> bool {
        matches!(self, Self::GhostHttp | Self::GhostHttps)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown workload {0:?}: use faas-startup, react-ssr, json-api, web-tooling, ghost-http or ghost-https"
)]
pub struct UnknownWorkload(String);

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(given: &str) -> Result<Self, UnknownWorkload> {
        let known = Self::ALL.into_iter().find(|workload| workload.as_str() == given);
        known.ok_or_else(|| UnknownWorkload(given.to_owned()))
    }
}

/// One row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeCase {
    #[serde(serialize_with = "workload_name")]
    pub workload: Workload,
    /// The version, without a `v`.
    pub node: String,
    /// The tuning that is compared with a stock Node.js in place of `hasten run`.
    #[serde(serialize_with = "tuning_name", skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// What the advice for a trace of this load added to `NODE_OPTIONS` of the second side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

impl Case for NodeCase {
    const COLUMNS: &'static [&'static str] = &["workload", "Node.js", "with"];
    const LATENCY: &'static str = "From the request to the last byte of the answer, or the life of a process";

    fn cells(&self) -> Vec<String> {
        let with = self.tuning.map_or("hasten run", Tuning::as_str);
        let with = [&[with.to_owned()], &self.advice[..]].concat().join(" ");
        vec![self.workload.to_string(), self.node.clone(), with]
    }

    fn title(&self) -> String {
        let Self { workload, node, .. } = self;
        format!("{workload} · Node.js {node} · {}", self.cells()[2])
    }
}

fn workload_name<S: Serializer>(workload: &Workload, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(workload.as_str())
}

fn tuning_name<S: Serializer>(tuning: &Option<Tuning>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tuning.map_or("", Tuning::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_the_names_of_the_data_format() {
        let plain = NodeCase {
            workload: Workload::FaasStartup,
            node: "20.20.2".to_owned(),
            tuning: None,
            advice: Vec::new(),
        };
        let expected = serde_json::json!({ "workload": "faas-startup", "node": "20.20.2" });
        assert_eq!(serde_json::to_value(&plain).unwrap(), expected);
        assert_eq!(plain.cells(), ["faas-startup", "20.20.2", "hasten run"]);
        let advised = NodeCase { advice: vec!["--max-semi-space-size=32".to_owned()], ..plain.clone() };
        assert_eq!(advised.title(), "faas-startup · Node.js 20.20.2 · hasten run --max-semi-space-size=32");
        let tuned = NodeCase { tuning: Some(Tuning::HugePages), ..plain };
        assert_eq!(serde_json::to_value(&tuned).unwrap()["tuning"], "huge-pages");
    }

    #[test]
    fn every_workload_is_known_by_its_name() {
        for workload in Workload::ALL {
            assert_eq!(workload.as_str().parse(), Ok(workload));
        }
        assert!("ghost".parse::<Workload>().unwrap_err().to_string().contains("ghost-https"));
    }
}
