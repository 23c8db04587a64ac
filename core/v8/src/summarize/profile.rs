//! A CPU profile: its samples by function and over time, in bounded memory.

use std::collections::BTreeMap;

use crate::parse::profile::{Named, Part, Run, path};
use crate::profile::{Activity, ActivitySlice, End, Function, Profile, Special, Worker};

/// Functions that are told apart in the summary, and over time.
const FUNCTIONS: usize = 200;
const SHOWN: usize = 7;
const SLICES: usize = 240;
const FIRST_WIDTH_MS: f64 = 50.0;

#[derive(Default)]
pub(super) struct Builder {
    worker: Option<Worker>,
    interval_us: u32,
    begun_ms: f64,
    from_ms: Option<f64>,
    to_ms: f64,
    samples: u64,
    sampled_us: u64,
    pauses_ms: f64,
    /// Pauses behind the last samples: if no more samples come, they were not of the same time.
    waiting_ms: f64,
    cut: u64,
    unsampled: u64,
    end: Option<(f64, End)>,
    functions: Vec<Named>,
    /// The function of each node.
    nodes: Vec<usize>,
    /// Of each function.
    self_us: Vec<u64>,
    slices: Slices,
}

impl Builder {
    /// Parts come in the order of the file, which their reader has checked.
    pub(super) fn push(&mut self, part: Part) {
        match part {
            Part::Start { at_ms, interval_us, worker } => {
                self.worker = worker;
                self.begun_ms = at_ms;
                self.interval_us = interval_us;
            }
            Part::Functions(functions) => {
                self.functions.extend(functions);
                self.self_us.resize(self.functions.len(), 0);
            }
            Part::Nodes(nodes) => self.nodes.extend(nodes.iter().map(|node| node.function as usize)),
            Part::Samples { from_ms, runs } => self.samples(from_ms, &runs),
            Part::End { at_ms, cut, unsampled, why } => {
                self.cut = cut;
                self.unsampled = unsampled;
                self.end = Some((at_ms, why));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from_ms.is_none()
    }

    /// A collection whose pause ended then.
    pub(super) fn pause(&mut self, at_ms: f64, pause_ms: f64) {
        match self.end {
            _ if at_ms < self.begun_ms => {}
            Some((end_ms, _)) if at_ms <= end_ms => self.pauses_ms += pause_ms,
            Some(_) => {}
            None => self.waiting_ms += pause_ms,
        }
    }

    fn samples(&mut self, from_ms: f64, runs: &[Run]) {
        self.from_ms.get_or_insert(from_ms);
        self.pauses_ms += std::mem::take(&mut self.waiting_ms);
        let mut at_ms = from_ms;
        for run in runs {
            let function = self.nodes[run.node as usize - 1];
            self.self_us[function] = self.self_us[function].saturating_add(run.us);
            self.samples = self.samples.saturating_add(run.samples);
            self.sampled_us = self.sampled_us.saturating_add(run.us);
            let end_ms = at_ms + run.us as f64 / 1e3;
            self.slices.push(at_ms, end_ms, function);
            at_ms = end_ms;
        }
        self.to_ms = self.to_ms.max(at_ms);
    }

    /// `None` if it has no samples.
    pub(super) fn finish(self) -> Option<Profile> {
        let from_ms = self.from_ms?;
        let special = |at: usize| {
            let Named { name, url, line, .. } = &self.functions[at];
            Special::of(name, url, *line)
        };
        let sum = |wanted: Option<Special>| {
            let own = self.self_us.iter().enumerate().filter(|(at, _)| special(*at) == wanted);
            milliseconds(own.fold(0, |sum: u64, (_, us)| sum.saturating_add(*us)))
        };
        let [functions_ms, program_ms, collector_ms, idle_ms] =
            [None, Some(Special::Program), Some(Special::Collector), Some(Special::Idle)].map(sum);
        let busy_ms = (functions_ms + program_ms + collector_ms).max(f64::MIN_POSITIVE);
        let mut ranked: Vec<usize> =
            (0..self.functions.len()).filter(|at| special(*at).is_none() && self.self_us[*at] > 0).collect();
        ranked.sort_by_key(|at| std::cmp::Reverse(self.self_us[*at]));
        let function = |at: &usize| {
            let Named { name, url, line, .. } = &self.functions[*at];
            let self_ms = milliseconds(self.self_us[*at]);
            Function {
                name: name.clone(),
                script: path(url),
                line: *line,
                self_ms,
                share: (self_ms / busy_ms).min(1.0),
            }
        };
        let shown = &ranked[..ranked.len().min(SHOWN)];
        Some(Profile {
            worker: self.worker,
            interval_us: self.interval_us,
            from_ms,
            to_ms: self.to_ms,
            sampled_ms: milliseconds(self.sampled_us),
            samples: self.samples,
            functions_ms,
            program_ms,
            collector_ms,
            idle_ms,
            pauses_ms: self.pauses_ms + if self.end.is_some() { self.waiting_ms } else { 0.0 },
            cut: self.cut,
            unsampled_workers: self.unsampled,
            end: self.end.map(|(_, why)| why),
            functions: ranked.iter().take(FUNCTIONS).map(function).collect(),
            rest_ms: ranked.iter().skip(FUNCTIONS).map(|at| milliseconds(self.self_us[*at])).sum(),
            timeline: Activity { functions: shown.len(), slices: self.slices.finish(shown, special) },
        })
    }
}

fn milliseconds(us: u64) -> f64 {
    us as f64 / 1e3
}

/// Equal slices of time, which double their width whenever there would be too many.
struct Slices {
    from_ms: f64,
    width_ms: f64,
    /// Milliseconds in each function.
    slices: Vec<BTreeMap<usize, f64>>,
}

impl Default for Slices {
    fn default() -> Self {
        Self { from_ms: 0.0, width_ms: FIRST_WIDTH_MS, slices: Vec::new() }
    }
}

impl Slices {
    fn push(&mut self, from_ms: f64, to_ms: f64, function: usize) {
        if self.slices.is_empty() {
            self.from_ms = from_ms;
        }
        let last = self.reach(to_ms);
        let first = self.index(from_ms).min(last);
        for at in first..=last {
            let begin = self.from_ms + at as f64 * self.width_ms;
            let inside = to_ms.min(begin + self.width_ms) - from_ms.max(begin);
            if inside > 0.0 {
                *self.slices[at].entry(function).or_default() += inside;
            }
        }
    }

    fn index(&self, at_ms: f64) -> usize {
        ((at_ms - self.from_ms) / self.width_ms).max(0.0) as usize
    }

    /// Makes room up to `at_ms`, and returns the index of its slice.
    fn reach(&mut self, at_ms: f64) -> usize {
        while self.index(at_ms) >= SLICES {
            self.width_ms *= 2.0;
            let mut wider: Vec<BTreeMap<usize, f64>> = Vec::with_capacity(SLICES);
            for (at, slice) in std::mem::take(&mut self.slices).into_iter().enumerate() {
                match wider.last_mut().filter(|_| at % 2 == 1) {
                    Some(pair) => {
                        for (function, ms) in slice {
                            *pair.entry(function).or_default() += ms;
                        }
                    }
                    None => wider.push(slice),
                }
            }
            self.slices = wider;
        }
        let index = self.index(at_ms);
        if self.slices.len() <= index {
            self.slices.resize_with(index + 1, BTreeMap::new);
        }
        index
    }

    fn finish(self, shown: &[usize], special: impl Fn(usize) -> Option<Special>) -> Vec<ActivitySlice> {
        let (from_ms, width_ms) = (self.from_ms, self.width_ms);
        let slice = |(at, by): (usize, BTreeMap<usize, f64>)| {
            let sum = |wanted: Option<Special>| -> f64 {
                by.iter().filter(|(at, _)| special(**at) == wanted).map(|(_, ms)| ms).sum()
            };
            let self_ms: Vec<f64> = shown.iter().map(|at| by.get(at).copied().unwrap_or(0.0)).collect();
            ActivitySlice {
                from_ms: from_ms + at as f64 * width_ms,
                to_ms: from_ms + (at + 1) as f64 * width_ms,
                other_ms: (sum(None) - self_ms.iter().sum::<f64>()).max(0.0),
                self_ms,
                program_ms: sum(Some(Special::Program)),
                collector_ms: sum(Some(Special::Collector)),
                idle_ms: sum(Some(Special::Idle)),
            }
        };
        self.slices.into_iter().enumerate().map(slice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::profile::Node;

    fn named(name: &str, url: &str, line: u32) -> Named {
        Named { name: name.to_owned(), url: url.to_owned(), line, column: line }
    }

    fn builder() -> Builder {
        let mut builder = Builder::default();
        builder.push(Part::Start { at_ms: 1000.0, interval_us: 1000, worker: None });
        let functions = [("(root)", "", 0), ("(idle)", "", 0), ("(garbage collector)", "", 0)];
        let mut functions: Vec<_> =
            functions.iter().map(|(name, url, line)| named(name, url, *line)).collect();
        functions.extend([named("(idle)", "file:///a%20b.js", 3), named("hot", "file:///app.js", 7)]);
        builder.push(Part::Functions(functions));
        let node = |function| Node { parent: u32::from(function > 0), function };
        builder.push(Part::Nodes((0..5).map(node).collect()));
        builder
    }

    fn run(node: u32, us: u64) -> Run {
        Run { node, samples: 1, us }
    }

    #[test]
    fn time_goes_to_functions_collections_and_idleness() {
        let mut builder = builder();
        builder.pause(900.0, 50.0);
        builder.pause(1050.0, 4.0);
        builder.push(Part::Samples {
            from_ms: 1001.0,
            runs: vec![run(5, 60_000), run(2, 30_000), run(3, 5_000), run(4, 35_000)],
        });
        builder.push(Part::End { at_ms: 1140.0, cut: 0, unsampled: 0, why: End::Time });
        builder.pause(1139.0, 1.0);
        builder.pause(1200.0, 70.0);
        let profile = builder.finish().expect("samples");
        assert_eq!((profile.functions_ms, profile.idle_ms, profile.collector_ms), (95.0, 30.0, 5.0));
        assert_eq!(
            (profile.sampled_ms, profile.from_ms, profile.to_ms, profile.pauses_ms),
            (130.0, 1001.0, 1131.0, 5.0)
        );
        let told: Vec<_> =
            profile.functions.iter().map(|one| (one.title(), one.place(), one.self_ms, one.share)).collect();
        assert_eq!(told[0], ("hot", "/app.js:7".to_owned(), 60.0, 0.6));
        assert_eq!(told[1], ("(idle)", "/a%20b.js:3".to_owned(), 35.0, 0.35));
        let slices = &profile.timeline.slices;
        assert_eq!((slices.len(), slices[0].self_ms[0], slices[1].self_ms[0]), (3, 50.0, 10.0));
        assert_eq!(slices[1].idle_ms, 30.0);
    }

    #[test]
    fn a_long_profile_has_wider_slices_and_loses_nothing() {
        let mut builder = builder();
        for at in 0..2000_u32 {
            builder.push(Part::Samples {
                from_ms: 1000.0 + f64::from(at) * 100.0,
                runs: vec![run(2 + at % 4, 99_000)],
            });
        }
        let profile = builder.finish().expect("samples");
        let slices = &profile.timeline.slices;
        assert!(slices.len() <= SLICES && slices.len() > SLICES / 2, "{}", slices.len());
        let sum: f64 = slices
            .iter()
            .map(|one| {
                one.self_ms.iter().sum::<f64>()
                    + one.other_ms
                    + one.program_ms
                    + one.collector_ms
                    + one.idle_ms
            })
            .sum();
        assert!((sum - 198_000.0).abs() < 1e-3, "{sum}");
        assert_eq!((profile.sampled_ms, profile.end), (198_000.0, None));
    }

    #[test]
    fn nothing_is_no_profile() {
        assert!(builder().finish().is_none());
    }
}
