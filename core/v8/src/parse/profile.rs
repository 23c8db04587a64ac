//! The lines of a CPU profile in a recording. Each is checked against those before it: what comes out of here refers
//! to nothing that is not there.

use serde::Deserialize;

use super::cursor::MOST;
use crate::profile::{End, Worker};

/// More than the recorder writes (plugins/node/src/gc/stacks.ts), and little enough to keep.
const MOST_FUNCTIONS: usize = 8 << 10;
const MOST_NODES: usize = 32 << 10;
const LONGEST_NAME: usize = 2 << 10;
const MOST_THREADS: usize = 256;
/// A clock that goes back by less was rounded.
const CLOCK_MS: f64 = 0.1;

/// A part of a profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Start {
        at_ms: f64,
        interval_us: u32,
        /// `None` for the main thread.
        worker: Option<Worker>,
    },
    /// They are numbered from 0, in the order of all such parts.
    Functions(Vec<Named>),
    /// They are numbered from 1; the first is the root, whose parent is 0.
    Nodes(Vec<Node>),
    Samples {
        from_ms: f64,
        runs: Vec<Run>,
    },
    End {
        at_ms: f64,
        cut: u64,
        unsampled: u64,
        why: End,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub name: String,
    pub url: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Node {
    pub parent: u32,
    pub function: u32,
}

/// Consecutive samples of one stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub node: u32,
    pub samples: u64,
    pub us: u64,
}

#[derive(Deserialize)]
struct Whose {
    /// The number of a worker thread.
    worker: Option<u32>,
    #[serde(flatten)]
    line: Line,
}

#[derive(Deserialize)]
#[serde(tag = "cpu", rename_all = "lowercase")]
enum Line {
    Start {
        version: u32,
        at_ms: f64,
        interval_us: u32,
        #[serde(default)]
        name: String,
        #[serde(default)]
        script: String,
    },
    Functions {
        first: usize,
        functions: Vec<(String, String, u32, u32)>,
    },
    Nodes {
        first: usize,
        nodes: Vec<u32>,
    },
    Samples {
        from_ms: f64,
        runs: Vec<u64>,
    },
    End {
        at_ms: f64,
        cut: u64,
        #[serde(default)]
        unsampled: u64,
        why: End,
    },
}

/// One for each thread.
#[derive(Debug, Default)]
pub(super) struct Readers {
    threads: Vec<(Option<u32>, Reader)>,
}

impl Readers {
    /// The number of the worker, and its part; `None` if the line is not what may come next.
    pub(super) fn read(&mut self, line: &[u8]) -> Option<(Option<u32>, Part)> {
        let Whose { worker, line } = serde_json::from_str(str::from_utf8(line).ok()?).ok()?;
        let known = self.threads.iter().position(|(thread, _)| *thread == worker);
        let at = known.or_else(|| {
            (self.threads.len() < MOST_THREADS).then(|| {
                self.threads.push((worker, Reader::default()));
                self.threads.len() - 1
            })
        })?;
        self.threads[at].1.read(worker, line).map(|part| (worker, part))
    }
}

/// What the lines so far have said.
#[derive(Debug, Default)]
struct Reader {
    is_begun: bool,
    functions: usize,
    nodes: usize,
    at_ms: f64,
}

impl Reader {
    /// `None` if the line is not what may come next.
    fn read(&mut self, worker: Option<u32>, line: Line) -> Option<Part> {
        match line {
            Line::Start { version: 1, at_ms, interval_us: interval_us @ 1.., name, script }
                if !self.is_begun && name.len().max(script.len()) <= LONGEST_NAME =>
            {
                self.is_begun = true;
                let worker = worker.map(|number| Worker { number, name, script: path(&script) });
                self.advance(at_ms).then_some(Part::Start { at_ms, interval_us, worker })
            }
            _ if !self.is_begun => None,
            Line::Start { .. } => None,
            Line::Functions { first, functions } => self.functions(first, functions),
            Line::Nodes { first, nodes } => self.nodes(first, &nodes),
            Line::Samples { from_ms, runs } => self.samples(from_ms, &runs),
            Line::End { at_ms, cut, unsampled, why } => {
                self.advance(at_ms).then_some(Part::End { at_ms, cut, unsampled, why })
            }
        }
    }

    fn functions(&mut self, first: usize, functions: Vec<(String, String, u32, u32)>) -> Option<Part> {
        let is_short = |text: &str| text.len() <= LONGEST_NAME;
        let is_sound = first == self.functions
            && first + functions.len() <= MOST_FUNCTIONS
            && functions.iter().all(|(name, url, ..)| is_short(name) && is_short(url));
        is_sound.then(|| {
            self.functions += functions.len();
            let named = |(name, url, line, column)| Named { name, url, line, column };
            Part::Functions(functions.into_iter().map(named).collect())
        })
    }

    fn nodes(&mut self, first: usize, numbers: &[u32]) -> Option<Part> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        if first != self.nodes + 1 || !rest.is_empty() || self.nodes + pairs.len() > MOST_NODES {
            return None;
        }
        let nodes: Vec<_> = pairs.iter().map(|&[parent, function]| Node { parent, function }).collect();
        let is_sound = |(node, id): (&Node, usize)| {
            (node.parent as usize) < id
                && (node.parent == 0) == (id == 1)
                && (node.function as usize) < self.functions
        };
        if !nodes.iter().zip(first..).all(is_sound) {
            return None;
        }
        self.nodes += nodes.len();
        Some(Part::Nodes(nodes))
    }

    fn samples(&mut self, from_ms: f64, numbers: &[u64]) -> Option<Part> {
        let (triples, rest) = numbers.as_chunks::<3>();
        let runs = triples.iter().map(|&[node, samples, us]| {
            let node =
                u32::try_from(node).ok().filter(|node| (1..=self.nodes).contains(&(*node as usize)))?;
            let most = MOST as u64;
            (samples >= 1 && samples <= most && us <= most).then_some(Run { node, samples, us })
        });
        let runs: Vec<Run> = runs.collect::<Option<_>>().filter(|_| rest.is_empty())?;
        let length_ms = runs.iter().map(|run| run.us as f64 / 1e3).sum::<f64>();
        (self.advance(from_ms) && self.advance(from_ms + length_ms))
            .then_some(Part::Samples { from_ms, runs })
    }

    /// Time does not go back.
    fn advance(&mut self, at_ms: f64) -> bool {
        let is_sound = (0.0..=MOST).contains(&at_ms) && at_ms + CLOCK_MS >= self.at_ms;
        if is_sound {
            self.at_ms = self.at_ms.max(at_ms);
        }
        is_sound
    }
}

/// Files are told by their path.
pub(crate) fn path(url: &str) -> String {
    url.strip_prefix("file://").filter(|path| path.starts_with('/')).unwrap_or(url).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 5] = [
        r#"{"cpu":"start","version":1,"at_ms":100,"interval_us":1000,"thread":"main"}"#,
        r#"{"cpu":"functions","first":0,"functions":[["(root)","",0,0],["hot","file:///a.js",2,3]]}"#,
        r#"{"cpu":"nodes","first":1,"nodes":[0,0,1,1]}"#,
        r#"{"cpu":"samples","from_ms":101.5,"runs":[2,3,3000,1,1,1000]}"#,
        r#"{"cpu":"end","at_ms":106,"samples":4,"cut":0,"why":"time"}"#,
    ];

    /// Reads the first `before` lines, then this one.
    fn after(before: usize, line: &str) -> Option<Part> {
        let mut reader = Readers::default();
        for line in &LINES[..before] {
            assert!(reader.read(line.as_bytes()).is_some(), "{line}");
        }
        reader.read(line.as_bytes()).map(|(_, part)| part)
    }

    #[test]
    fn what_the_recorder_writes_is_read() {
        let run = |node, samples, us| Run { node, samples, us };
        let samples = Part::Samples { from_ms: 101.5, runs: vec![run(2, 3, 3000), run(1, 1, 1000)] };
        assert_eq!(after(3, LINES[3]), Some(samples));
        assert_eq!(
            after(4, LINES[4]),
            Some(Part::End { at_ms: 106.0, cut: 0, unsampled: 0, why: End::Time })
        );
    }

    #[test]
    fn what_does_not_follow_from_the_lines_before_is_refused() {
        for (before, line) in [
            (0, LINES[1]),
            (0, r#"{"cpu":"start","version":2,"at_ms":100,"interval_us":1000}"#),
            (0, r#"{"cpu":"start","version":1,"at_ms":-1,"interval_us":1000}"#),
            (0, r#"{"cpu":"start","version":1,"at_ms":1,"interval_us":0}"#),
            (1, LINES[0]),
            (1, r#"{"cpu":"other"}"#),
            (2, LINES[1]),
            (2, r#"{"cpu":"functions","first":2,"functions":[["a","b",-1,0]]}"#),
            (2, r#"{"cpu":"nodes","first":1,"nodes":[0,2]}"#),
            (2, r#"{"cpu":"nodes","first":1,"nodes":[0,0,2,1]}"#),
            (2, r#"{"cpu":"nodes","first":1,"nodes":[0,0,0,1]}"#),
            (2, r#"{"cpu":"nodes","first":1,"nodes":[0,0,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":101,"runs":[3,1,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":101,"runs":[0,1,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":101,"runs":[1,0,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":101,"runs":[1,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":50,"runs":[1,1,1]}"#),
            (3, r#"{"cpu":"samples","from_ms":101,"runs":[1,1,18446744073709551615]}"#),
            (4, r#"{"cpu":"end","at_ms":106,"samples":4,"cut":0,"why":"bored"}"#),
        ] {
            assert_eq!(after(before, line), None, "{line}");
        }
    }

    #[test]
    fn each_thread_counts_its_own() {
        let mut reader = Readers::default();
        let of = |line: &str, worker: u32| line.replacen(',', &format!(",\"worker\":{worker},"), 1);
        for line in LINES {
            for worker in [7, 8] {
                let (whose, part) = reader.read(of(line, worker).as_bytes()).expect(line);
                assert_eq!(whose, Some(worker));
                if let Part::Start { worker: told, .. } = part {
                    assert_eq!(told.map(|told| told.number), Some(worker));
                }
            }
            assert!(reader.read(line.as_bytes()).is_some_and(|(whose, _)| whose.is_none()), "{line}");
        }
        let start = |worker| of(LINES[0], worker);
        let taken = (100..1000).filter(|worker| reader.read(start(*worker).as_bytes()).is_some()).count();
        assert_eq!(taken, MOST_THREADS - 3);
    }

    #[test]
    fn there_are_not_too_many_of_anything() {
        let mut reader = Readers::default();
        let _ = reader.read(LINES[0].as_bytes());
        let mut taken = 0;
        for first in (0..MOST_FUNCTIONS + 100).step_by(100) {
            let functions = vec![r#"["f","",1,1]"#; 100].join(",");
            let line = format!(r#"{{"cpu":"functions","first":{first},"functions":[{functions}]}}"#);
            taken += usize::from(reader.read(line.as_bytes()).is_some());
        }
        assert_eq!(taken, MOST_FUNCTIONS / 100);
        let long = "x".repeat(LONGEST_NAME + 1);
        assert_eq!(
            after(1, &format!(r#"{{"cpu":"functions","first":0,"functions":[["{long}","",1,1]]}}"#)),
            None
        );
    }
}
