//! A CPU profile that was taken together with a recording: V8's own samples, by function and over time.

use serde::{Deserialize, Serialize};

use crate::units;

/// What a thread of the program did while it was sampled; times in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// `None` for the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
    /// How often V8 was asked for a sample.
    pub interval_us: u32,
    /// The first sample, and the end of the last one, since the process started.
    pub from_ms: f64,
    pub to_ms: f64,
    /// How much of that time the samples stand for: V8 takes none while a profile ends and the next one begins.
    pub sampled_ms: f64,
    pub samples: u64,
    /// In functions of JavaScript, and native ones that they called.
    pub functions_ms: f64,
    /// In native code that no function called.
    pub program_ms: f64,
    /// In collections, by samples.
    pub collector_ms: f64,
    pub idle_ms: f64,
    /// In pauses of the same time, as the recorder noticed them: exact, but for gaps in its observation.
    pub pauses_ms: f64,
    /// How many stacks were cut, because there were too many. Their self time is right, their callers are missing.
    pub cut: u64,
    /// Of the main thread's: worker threads that were too many to sample.
    pub unsampled_workers: u64,
    /// Why it ended; `null` if the process was killed.
    pub end: Option<End>,
    /// By self time, longest first.
    pub functions: Vec<Function>,
    /// In functions beyond those.
    pub rest_ms: f64,
    pub timeline: Activity,
}

/// A worker thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// The program's `threadId`.
    pub number: u32,
    /// Empty if the program gave it none.
    pub name: String,
    /// Its script's path, or what V8 calls it.
    pub script: String,
}

/// Where a function is, and the time in it without what it called.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Empty if it has none.
    pub name: String,
    /// The script's path, or its address if that is not a file; empty for native functions.
    pub script: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    pub self_ms: f64,
    /// Of the time in which the thread was not idle.
    pub share: f64,
}

/// Over time, for charts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Activity {
    /// How many of the first functions have a time of their own in each slice.
    pub functions: usize,
    pub slices: Vec<ActivitySlice>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActivitySlice {
    pub from_ms: f64,
    pub to_ms: f64,
    /// In each of the first functions.
    pub self_ms: Vec<f64>,
    pub other_ms: f64,
    pub program_ms: f64,
    pub collector_ms: f64,
    pub idle_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    Time,
    Asked,
    /// Nobody waited for it any more.
    Client,
    Size,
    Disk,
    Exit,
    Failed,
}

impl Profile {
    /// When the thread did anything, in milliseconds.
    #[must_use]
    pub fn busy_ms(&self) -> f64 {
        self.functions_ms + self.program_ms + self.collector_ms
    }

    /// Its share of the sampled time.
    #[must_use]
    pub fn share_of(&self, ms: f64) -> f64 {
        if self.sampled_ms > 0.0 { (ms / self.sampled_ms).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whose it is: `the main thread`, or `worker 3 (its name)`.
    #[must_use]
    pub fn thread(&self) -> String {
        match &self.worker {
            None => "the main thread".to_owned(),
            Some(Worker { number, name, .. }) if name.is_empty() => format!("worker {number}"),
            Some(Worker { number, name, .. }) => format!("worker {number} ({name})"),
        }
    }

    /// Where the time went, in one sentence; the recorder may have observed only parts of it.
    #[must_use]
    pub fn overview(&self, has_gaps: bool) -> String {
        let share = |ms: f64| units::percent(self.share_of(ms));
        let observed = if has_gaps { " of what it observed" } else { "" };
        // The recorder notices those of the main thread only.
        let pauses = match self.worker {
            Some(_) => String::new(),
            None => {
                format!(" (the recorder's pauses of that time: {}{observed})", units::pause(self.pauses_ms))
            }
        };
        let mut text = format!(
            "{} samples, one each {}, for {}: in functions {}, in native code of no function {}, in collections {}{pauses}, \
             idle {}",
            units::count(self.samples),
            units::pause(f64::from(self.interval_us) / 1e3),
            units::span(self.sampled_ms),
            share(self.functions_ms),
            share(self.program_ms),
            share(self.collector_ms),
            share(self.idle_ms),
        );
        let unsampled_ms = self.to_ms - self.from_ms - self.sampled_ms;
        if unsampled_ms >= 1.0 {
            text += &format!("; {} without samples, while V8 began anew", units::pause(unsampled_ms));
        }
        text
    }

    /// What the reader would not expect of it.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let early = match self.end {
            Some(End::Client) => Some("It ended when the recorder was gone."),
            Some(End::Failed) => Some("It ended early, because V8's profiler failed."),
            Some(End::Size) => Some("It ended early, when the file had reached its limit."),
            Some(End::Disk) => Some("It ended early, when the disk was full."),
            None => Some("Its end is missing: the process was killed, or still runs."),
            Some(End::Exit) if self.worker.is_some() => {
                Some("The thread ended; its last seconds may be missing.")
            }
            Some(End::Time | End::Asked | End::Exit) => None,
        };
        let cut = (self.cut > 0).then(|| {
            format!(
                "{} stacks were too many to keep: their self time is right, their callers are missing.",
                self.cut
            )
        });
        let unsampled = (self.unsampled_workers > 0)
            .then(|| format!("{} worker threads were too many to sample.", self.unsampled_workers));
        early.map(str::to_owned).into_iter().chain(cut).chain(unsampled).collect()
    }
}

impl Function {
    /// `hot`, or `(anonymous)`.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.is_empty() { "(anonymous)" } else { &self.name }
    }

    /// `/srv/app.js:12`, or what else is known.
    #[must_use]
    pub fn place(&self) -> String {
        match (self.script.as_str(), self.line) {
            ("", _) => "native".to_owned(),
            (script, 0) => script.to_owned(),
            (script, line) => format!("{script}:{line}"),
        }
    }
}

/// What V8 calls the time that belongs to no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Idle,
    Program,
    Collector,
}

impl Special {
    /// Functions of a program may have such names as well, but they are in a script.
    pub(crate) fn of(name: &str, url: &str, line: u32) -> Option<Self> {
        match name {
            _ if !url.is_empty() || line > 0 => None,
            "(idle)" => Some(Self::Idle),
            "(program)" | "(root)" => Some(Self::Program),
            "(garbage collector)" => Some(Self::Collector),
            _ => None,
        }
    }
}
