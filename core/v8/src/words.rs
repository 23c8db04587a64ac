//! Words that the terminal and the page share.

use std::fmt;
use std::path::Path;

use crate::event::Kind;
use crate::summary::{Format, HeapSummary, IsolateSummary, Lines, Summary};
use crate::units;

impl Kind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Scavenge => "scavenge",
            Self::MinorMarkSweep => "minor mark-sweep",
            Self::MarkCompact => "mark-compact",
        }
    }
}

impl Format {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::TraceGc => "--trace-gc",
            Self::TraceGcNvp => "--trace-gc-nvp",
            Self::TraceGcJson => "--trace-gc-nvp as JSON",
            Self::TraceGcVerbose => "--trace-gc-verbose",
            Self::Recorder => "hasten gc record",
        }
    }
}

impl Summary {
    /// The format, the release of Node, the number of heaps, the length: `Node 20 · --trace-gc · 1 heap · 12m 3s`.
    #[must_use]
    pub fn description(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.node().map(|node| format!("Node {node}")));
        let mut formats: Vec<Format> = Vec::new();
        for format in self.isolates.iter().flat_map(|heap| &heap.formats) {
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
        parts.extend(
            (!formats.is_empty())
                .then(|| formats.iter().map(|one| one.word()).collect::<Vec<_>>().join(", ")),
        );
        let heaps = self.isolates.len() as u64 + self.rest.map_or(0, |rest| rest.isolates);
        parts.push(match heaps {
            1 => "1 heap".to_owned(),
            heaps => format!("{heaps} heaps"),
        });
        let longest = self.isolates.iter().max_by(|a, b| a.span_ms().total_cmp(&b.span_ms()));
        parts.push(longest.map_or_else(|| units::span(0.0), IsolateSummary::span_text));
        parts.join(" · ")
    }

    /// The releases that its heaps resemble.
    #[must_use]
    pub fn node(&self) -> Option<String> {
        let mut releases: Vec<&str> = Vec::new();
        for node in self.isolates.iter().filter_map(|heap| heap.node.as_deref()) {
            if !releases.contains(&node) {
                releases.push(node);
            }
        }
        // Many processes of many releases in one file are possible, but not worth a long line.
        (!releases.is_empty()).then(|| releases[..releases.len().min(4)].join(" and "))
    }
}

impl IsolateSummary {
    /// From the first collection's end to the last one's.
    #[must_use]
    pub fn span_ms(&self) -> f64 {
        (self.last_ms - self.first_ms).max(0.0)
    }

    /// The same without unobserved time.
    #[must_use]
    pub fn observed_ms(&self) -> f64 {
        (self.span_ms() - self.unseen_ms).max(0.0)
    }

    /// `3m`, or `observed 1m 10s of 3m`.
    #[must_use]
    pub fn span_text(&self) -> String {
        let span = units::span(self.span_ms());
        match self.unseen_ms > 0.0 {
            true => format!("observed {} of {span}", units::span(self.observed_ms())),
            false => span,
        }
    }

    /// As V8 identifies heaps: `process 123, isolate 0x5c0`.
    #[must_use]
    pub fn name(&self) -> String {
        let script = self.process.as_ref().and_then(|process| process.script.as_deref());
        let script = script.map(|script| format!(" {}", shortened(script, 80))).unwrap_or_default();
        match (self.isolate.pid, self.isolate.address) {
            (0, 0) => "the only heap".to_owned(),
            (pid, 0) => format!("process {pid}{script}"),
            (pid, address) => format!("process {pid}{script}, isolate {address:#x}"),
        }
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, understood, other, unknown, .. } = self;
        let noun = if *total == 1 { "line" } else { "lines" };
        write!(f, "{total} {noun}: {understood} of V8, {other} of the program")?;
        if *unknown > 0 { write!(f, ", {unknown} of V8 not understood") } else { Ok(()) }
    }
}

impl HeapSummary {
    /// Whether what survives grows, in one sentence.
    #[must_use]
    pub fn growth(&self) -> String {
        let Some(trend) = self.trend else {
            return match self.after_full.len() {
                0 => "no full collection, so nothing is known of leaks".to_owned(),
                _ => "too few full collections to tell a leak".to_owned(),
            };
        };
        let interval = format!("95 %: {} to {}", units::trend(trend.low), units::trend(trend.high));
        let slope = units::trend(trend.bytes_per_hour);
        let verdict = match trend {
            trend if trend.is_suspicious => "perhaps a leak",
            trend if trend.low > 0.0 => "it grows, but too little or for too short a time to call it a leak",
            _ => "no sign of a leak",
        };
        format!("{slope} over {} full collections ({interval}): {verdict}", trend.collections)
    }
}

/// A name for each trace: the file's, with as much of its path as distinguishes it from the others.
#[must_use]
pub fn short_names(traces: &[Summary]) -> Vec<String> {
    let tail = |source: &str, parts: usize| {
        let all: Vec<_> =
            Path::new(source).components().map(|part| part.as_os_str().to_string_lossy()).collect();
        all[all.len().saturating_sub(parts)..].join("/")
    };
    let deepest = traces.iter().map(|trace| Path::new(&trace.source).components().count()).max().unwrap_or(1);
    let names = |parts| traces.iter().map(|trace| tail(&trace.source, parts)).collect::<Vec<_>>();
    let differ = |names: &Vec<String>| (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    let best = (1..=deepest).map(names).find(differ).unwrap_or_else(|| names(1));
    best.iter().map(|name| shortened(name, 60)).collect()
}

/// Without its middle, if it is longer than `limit` characters.
#[must_use]
pub fn shortened(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Trend;

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("a long äöü text", 6), "a l…ext");
    }

    #[test]
    fn lines_add_up_before_the_reader_s_eyes() {
        let lines = Lines { total: 10, understood: 7, other: 2, unknown: 1, ..Lines::default() };
        assert_eq!(lines.to_string(), "10 lines: 7 of V8, 2 of the program, 1 of V8 not understood");
    }

    #[test]
    fn growth_is_told_with_its_interval_or_with_why_it_is_not_known() {
        let mut heap = HeapSummary::default();
        assert!(heap.growth().starts_with("no full collection"));
        heap.after_full = vec![(1.0, 1 << 20)];
        assert!(heap.growth().starts_with("too few"));
        let mib = f64::from(1 << 20);
        let trend = Trend {
            bytes_per_hour: 3.0 * mib,
            low: -mib,
            high: 7.0 * mib,
            collections: 12,
            is_suspicious: false,
        };
        heap.trend = Some(trend);
        let text = "+3 MiB/h over 12 full collections (95 %: −1 MiB/h to +7 MiB/h): no sign of a leak";
        assert_eq!(heap.growth(), text);
        heap.trend = Some(Trend { is_suspicious: true, ..trend });
        assert!(heap.growth().ends_with("perhaps a leak"));
    }
}
