//! The CPU profile of a recording as a `.cpuprofile`, which Chrome's DevTools and other viewers open.

use std::collections::HashMap;
use std::io::{self, Read};

use serde::Serialize;

use crate::parse::TraceError;
use crate::parse::event::Event;
use crate::parse::profile::{Named, Node, Part, Run};

/// Beyond this, a run of equal samples becomes one sample.
const MOST_SAMPLES: u64 = 4_000_000;
/// 200 MB of memory. The recorder's largest file has half as many.
const MOST_RUNS: usize = 8_000_000;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("it is damaged behind byte {bytes}: {source}")]
    Damaged { bytes: u64, source: io::Error },
    #[error("it holds no CPU profile")]
    None,
    #[error("it holds {0} CPU profiles, and such a file has room for one")]
    Several(usize),
    #[error("its CPU profile has more than {MOST_RUNS} changes of stacks")]
    Long,
    #[error("cannot make the data: {0}")]
    Data(#[from] serde_json::Error),
}

/// The profile of one thread, as JSON.
pub struct Exported {
    /// The number of a worker; `None` for the main thread.
    pub worker: Option<u32>,
    pub text: String,
}

/// Reads the CPU profiles of a recording, one for each thread.
pub fn cpuprofiles(source: impl Read, name: &str) -> Result<Vec<Exported>, ExportError> {
    let mut profiles: Vec<(Option<u32>, Tree)> = Vec::new();
    let mut runs = 0;
    let (lines, end) = crate::parse::each(source, name, &mut |event| {
        let Event::Profile(_, worker, part) = event else { return };
        if matches!(*part, Part::Start { .. }) {
            profiles.push((worker, Tree::default()));
        } else if let Some((_, tree)) = profiles.iter_mut().rfind(|(thread, _)| *thread == worker) {
            runs += tree.push(*part, MOST_RUNS.saturating_sub(runs));
        }
    })?;
    if let Err(source) = end {
        return Err(ExportError::Damaged { bytes: lines.bytes, source });
    }
    profiles.retain(|(_, tree)| !tree.samples.is_empty());
    profiles.sort_by_key(|(thread, _)| *thread);
    if runs > MOST_RUNS {
        return Err(ExportError::Long);
    }
    if profiles.is_empty() {
        return Err(ExportError::None);
    }
    if let Some(same) = profiles.chunk_by(|(a, _), (b, _)| a == b).find(|same| same.len() > 1) {
        return Err(ExportError::Several(same.len()));
    }
    let exported = |(worker, tree): &(Option<u32>, Tree)| {
        Ok(Exported { worker: *worker, text: serde_json::to_string(&tree.file())? })
    };
    profiles.iter().map(exported).collect()
}

#[derive(Default)]
struct Tree {
    functions: Vec<Named>,
    nodes: Vec<Node>,
    /// Each with the time of its first run.
    samples: Vec<(f64, Vec<Run>)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    nodes: Vec<FileNode<'a>>,
    start_time: i64,
    end_time: i64,
    samples: Vec<u32>,
    time_deltas: Vec<i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileNode<'a> {
    id: u32,
    call_frame: CallFrame<'a>,
    hit_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame<'a> {
    function_name: &'a str,
    script_id: String,
    url: &'a str,
    line_number: i64,
    column_number: i64,
}

impl Tree {
    /// How many runs there are in it; those beyond `room` are not kept.
    fn push(&mut self, part: Part, room: usize) -> usize {
        match part {
            Part::Functions(functions) => self.functions.extend(functions),
            Part::Nodes(nodes) => self.nodes.extend(nodes),
            Part::Samples { from_ms, runs } => {
                let count = runs.len();
                if count <= room {
                    self.samples.push((from_ms, runs));
                }
                return count;
            }
            Part::Start { .. } | Part::End { .. } => {}
        }
        0
    }

    fn file(&self) -> File<'_> {
        let runs = || self.samples.iter().flat_map(|(_, runs)| runs);
        let is_whole = runs().fold(0, |sum: u64, run| sum.saturating_add(run.samples)) <= MOST_SAMPLES;
        let mut hits = vec![0_u64; self.nodes.len()];
        for run in runs() {
            let hits = &mut hits[run.node as usize - 1];
            *hits = hits.saturating_add(if is_whole { run.samples } else { 1 });
        }
        let mut file = File {
            nodes: self.nodes(&hits),
            start_time: 0,
            end_time: 0,
            samples: Vec::new(),
            time_deltas: Vec::new(),
        };
        let mut clock =
            Clock { at_us: self.samples.first().map_or(0, |(from_ms, _)| microseconds(*from_ms)) };
        file.start_time = clock.at_us;
        let mut end_us = clock.at_us;
        for (from_ms, runs) in &self.samples {
            let from_us = microseconds(*from_ms);
            // Nothing is known of the time until the next samples, which is not the last function's.
            if from_us > end_us {
                file.sample(1, clock.advance(end_us));
            }
            let mut at_us = from_us.max(end_us);
            for run in runs {
                let count = if is_whole { run.samples } else { 1 };
                for at in 0..count {
                    file.sample(
                        run.node,
                        clock.advance(
                            at_us + (u128::from(run.us) * u128::from(at) / u128::from(count)) as i64,
                        ),
                    );
                }
                at_us += run.us as i64;
            }
            end_us = at_us;
        }
        file.end_time = end_us;
        file
    }

    fn nodes(&self, hits: &[u64]) -> Vec<FileNode<'_>> {
        let mut scripts = HashMap::new();
        let mut nodes: Vec<FileNode> = Vec::with_capacity(self.nodes.len());
        for ((node, id), hits) in self.nodes.iter().zip(1..).zip(hits) {
            let Named { name, url, line, column } = &self.functions[node.function as usize];
            let next = scripts.len() + 1;
            let script = if url.is_empty() { 0 } else { *scripts.entry(url).or_insert(next) };
            let call_frame = CallFrame {
                function_name: name,
                script_id: script.to_string(),
                url,
                line_number: i64::from(*line) - 1,
                column_number: i64::from(*column) - 1,
            };
            if let Some(parent) = (node.parent as usize).checked_sub(1) {
                nodes[parent].children.push(id);
            }
            nodes.push(FileNode { id, call_frame, hit_count: *hits, children: Vec::new() });
        }
        nodes
    }
}

impl File<'_> {
    fn sample(&mut self, node: u32, delta: i64) {
        self.samples.push(node);
        self.time_deltas.push(delta);
    }
}

struct Clock {
    at_us: i64,
}

impl Clock {
    /// How much later that is.
    fn advance(&mut self, to_us: i64) -> i64 {
        let delta = (to_us - self.at_us).max(0);
        self.at_us += delta;
        delta
    }
}

fn microseconds(ms: f64) -> i64 {
    (ms * 1e3).round() as i64
}
