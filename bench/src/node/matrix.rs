//! Which rows there are, and how long they take.

use std::time::Duration;

use hasten_evidence::stop::StopRule;

use super::case::{NodeCase, Workload};
use super::runtime::Runtime;
use super::subject::SERVERS;
use super::tuning::Tuning;
use crate::pace::Pace;

/// What is run on which Node.js.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    pub workloads: Vec<Workload>,
    pub runtimes: Vec<Runtime>,
    /// If not empty: these tunings, one by one, in place of `hasten run`.
    pub tunings: Vec<Tuning>,
}

/// What is left out, and why.
pub(super) type LeftOut = (String, String);

impl Matrix {
    /// Everything that needs no database.
    pub const QUICK: [Workload; 4] =
        [Workload::FaasStartup, Workload::ReactSsr, Workload::JsonApi, Workload::WebTooling];

    /// The workloads on which tunings are measured.
    pub const TUNED: [Workload; 3] = [Workload::FaasStartup, Workload::ReactSsr, Workload::JsonApi];

    /// The rows, each with its Node.js, and the impossible ones.
    pub(super) fn cases(&self, cpus: usize) -> (Vec<(NodeCase, Runtime)>, Vec<LeftOut>) {
        let (mut cases, mut left_out) = (Vec::new(), Vec::new());
        for &workload in &self.workloads {
            for runtime in &self.runtimes {
                let case = |tuning| {
                    let node = runtime.version.to_string();
                    (NodeCase { workload, node, tuning, advice: Vec::new() }, runtime.clone())
                };
                if workload.is_ghost() && !super::ghost::supports(runtime.version) {
                    let what = format!("{workload} on Node.js {}", runtime.version);
                    left_out.push((what, "Ghost 6 supports Node.js 22 and 24".to_owned()));
                } else if self.tunings.is_empty() {
                    cases.push(case(None));
                }
                for &tuning in self.tunings.iter().filter(|tuning| tuning.concerns(workload)) {
                    match tuning.obstacle(runtime.version, cpus) {
                        None => cases.push(case(Some(tuning))),
                        Some(why) => {
                            let left = (format!("{tuning} on Node.js {}", runtime.version), why.to_owned());
                            if !left_out.contains(&left) {
                                left_out.push(left);
                            }
                        }
                    }
                }
            }
        }
        (cases, left_out)
    }
}

/// How long a row of each kind takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paces {
    /// Rounds are a few starts, however long those take.
    pub startup: Pace,
    pub server: Pace,
    /// Rounds are one run of the tests.
    pub tooling: Pace,
    /// A request takes a hundred times as long as on the other servers, and a compiler longer to warm up.
    pub ghost: Pace,
    /// Whether the quicker half of the tests, once, is enough.
    pub short: bool,
    /// How long a server writes the trace on which the advice is based.
    pub trace: Duration,
}

impl Paces {
    #[must_use]
    pub fn quick() -> Self {
        let pace = |seconds: u64, pairs: usize| Pace {
            warm_up: Duration::from_secs(2),
            round: Duration::from_millis(600),
            rule: StopRule { min_pairs: 6, max_pairs: pairs, uncertainty: 0.01 },
            limit: Duration::from_secs(seconds),
        };
        let (startup, server, tooling) = (pace(16, 12), pace(14, 12), pace(40, 8));
        let ghost = Pace { warm_up: Duration::from_secs(10), round: Duration::from_secs(2), ..pace(60, 12) };
        Self { startup, server, tooling, ghost, short: true, trace: Duration::from_secs(3) }
    }

    #[must_use]
    pub fn full() -> Self {
        let pace = |seconds: u64, pairs: usize| Pace {
            warm_up: Duration::from_secs(5),
            round: Duration::from_secs(1),
            rule: StopRule { min_pairs: 8, max_pairs: pairs, uncertainty: 0.005 },
            limit: Duration::from_secs(seconds),
        };
        let (startup, server, tooling) = (pace(60, 30), pace(60, 30), pace(240, 12));
        let ghost = Pace { warm_up: Duration::from_secs(20), round: Duration::from_secs(3), ..pace(120, 20) };
        Self { startup, server, tooling, ghost, short: false, trace: Duration::from_secs(8) }
    }

    pub(super) fn of(&self, workload: Workload) -> &Pace {
        match workload {
            Workload::FaasStartup => &self.startup,
            Workload::WebTooling => &self.tooling,
            Workload::ReactSsr | Workload::JsonApi => &self.server,
            Workload::GhostHttp | Workload::GhostHttps => &self.ghost,
        }
    }

    /// The approximate time for a row.
    pub(super) fn estimate(&self, workload: Workload) -> Duration {
        let pace = self.of(workload);
        let preparation = match workload {
            Workload::FaasStartup => Duration::from_secs(3),
            Workload::WebTooling => Duration::from_secs(12),
            _ if workload.is_ghost() => Duration::from_secs(90),
            _ => self.trace + pace.warm_up * 2 * SERVERS as u32 + Duration::from_secs(4),
        };
        preparation + pace.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::runtime::Version;

    fn runtime(major: u32) -> Runtime {
        Runtime { path: format!("/opt/node{major}").into(), version: Version { major, minor: 1, patch: 2 } }
    }

    #[test]
    fn quick_is_three_minutes_without_ghost() {
        let paces = Paces::quick();
        let time: Duration = Matrix::QUICK.iter().map(|&workload| paces.estimate(workload)).sum();
        assert!(time < Duration::from_secs(175), "{time:?}");
        assert!(Matrix::QUICK.iter().all(|workload| !workload.is_ghost()));
    }

    #[test]
    fn every_workload_runs_on_every_node_that_it_supports() {
        let matrix = Matrix {
            workloads: Workload::ALL.to_vec(),
            runtimes: vec![runtime(20), runtime(24)],
            tunings: Vec::new(),
        };
        let (cases, left_out) = matrix.cases(2);
        assert_eq!(cases.len(), 4 * 2 + 2);
        assert_eq!(left_out.len(), 2, "Ghost on 20: {left_out:?}");
        assert!(cases.iter().all(|(case, runtime)| case.node == runtime.version.to_string()));
    }

    #[test]
    fn tunings_stand_in_for_the_whole() {
        let matrix = Matrix {
            workloads: vec![Workload::JsonApi, Workload::FaasStartup],
            runtimes: vec![runtime(26)],
            tunings: Tuning::ALL.to_vec(),
        };
        let (cases, left_out) = matrix.cases(2);
        assert!(cases.iter().all(|(case, _)| case.tuning.is_some()));
        assert_eq!(cases.len(), 6 + 4);
        assert_eq!(left_out.len(), 1, "huge pages, once: {left_out:?}");
    }
}
