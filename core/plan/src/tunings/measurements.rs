//! Measurements from the reports of `hasten bench` kept in docs/results.

use serde::Deserialize;

/// The reports as of the build.
const KEPT: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/measurements.rs"));

/// All rows that concern a tuning.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    tunings: Vec<Measured>,
    handshakes: Vec<Measured>,
}

/// One comparison and the file that contains it.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) source: String,
    row: Row,
}

#[derive(Debug, Clone, Deserialize)]
struct Report {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Deserialize)]
struct Row {
    cpu_ratio: Ratio,
    verdict: String,
    /// Rows about Node.js have these three,
    workload: Option<String>,
    node: Option<String>,
    tuning: Option<String>,
    /// rows about handshakes these.
    server: Option<String>,
    cert: Option<String>,
    protocol: Option<String>,
    concurrency: Option<u32>,
}

/// CPU without, divided by CPU with.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Ratio {
    value: f64,
    low: f64,
    high: f64,
}

impl Measurements {
    /// The reports kept with this version of hasten.
    pub fn kept() -> Self {
        Self::parse(KEPT)
    }

    /// Parses reports, given with their file names. A report of another form is ignored.
    pub fn parse(reports: &[(&str, &str)]) -> Self {
        let mut all = Self::default();
        for (source, text) in reports {
            let Ok(report) = serde_json::from_str::<Report>(text) else { continue };
            for row in report.rows {
                let list = if row.tuning.is_some() { &mut all.tunings } else { &mut all.handshakes };
                list.push(Measured { source: (*source).to_owned(), row });
            }
        }
        all
    }

    /// The measurements of some tunings on one release, or on the others.
    pub(super) fn of(&self, tunings: &[&str], major: u32, same_release: bool) -> Vec<&Measured> {
        let is_meant = |measured: &&Measured| {
            let tuning = measured.row.tuning.as_deref().unwrap_or_default();
            tunings.contains(&tuning) && (measured.major() == Some(major)) == same_release
        };
        self.tunings.iter().filter(is_meant).collect()
    }

    /// Handshakes of TLS 1.3 under the highest load: the first server of the first report, each key.
    pub(super) fn handshakes(&self) -> Vec<&Measured> {
        let rows = || {
            self.handshakes.iter().filter(|measured| {
                measured.row.protocol.as_deref() == Some("tls1.3") && measured.row.server.is_some()
            })
        };
        let Some(first) = rows().next() else { return Vec::new() };
        let highest = rows().filter_map(|measured| measured.row.concurrency).max();
        let alike = |measured: &&Measured| {
            (&measured.source, &measured.row.server, measured.row.concurrency)
                == (&first.source, &first.row.server, highest)
        };
        rows().filter(alike).collect()
    }
}

impl Measured {
    fn major(&self) -> Option<u32> {
        self.row.node.as_deref()?.split('.').next()?.parse().ok()
    }

    pub(super) fn is_faster(&self) -> bool {
        self.row.verdict == "faster"
    }

    /// The figure with its interval and subject.
    pub(super) fn text(&self) -> String {
        let Row { cpu_ratio: Ratio { value, low, high }, workload, node, server, cert, .. } = &self.row;
        let about = [workload, server, cert].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
        let on = node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{about}{on} {value:.2} [{low:.2}, {high:.2}]")
    }
}
