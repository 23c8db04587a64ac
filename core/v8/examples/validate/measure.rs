//! Runs the programs and keeps their traces.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hasten_v8::event::Kind;
use hasten_v8::summary::{IsolateSummary, Summary};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

pub(crate) const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
pub(crate) const WORKLOADS: [&str; 4] = ["api", "ast", "cache", "render"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Format {
    #[serde(rename = "trace-gc-nvp")]
    Nvp,
    #[serde(rename = "trace-gc")]
    Plain,
}

impl Format {
    pub(crate) const ALL: [Format; 2] = [Format::Nvp, Format::Plain];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Nvp => "trace-gc-nvp",
            Format::Plain => "trace-gc",
        }
    }
}

pub(crate) struct Plan {
    pub(crate) nodes: PathBuf,
    pub(crate) workloads: PathBuf,
    pub(crate) releases: Vec<u32>,
    pub(crate) runs: u32,
    pub(crate) traces: PathBuf,
    pub(crate) is_real_time: bool,
}

/// One cell in the table of measurements.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) release: u32,
    pub(crate) workload: &'static str,
    pub(crate) size: u64,
    pub(crate) format: Format,
}

impl Plan {
    fn node(&self, release: u32) -> PathBuf {
        self.nodes.join(format!("node{release}/bin/node"))
    }

    pub(crate) fn versions(&self) -> Result<Vec<String>, Box<dyn Error>> {
        let version = |release: &u32| {
            let node = self.node(*release);
            let output = Command::new(&node)
                .arg("--version")
                .output()
                .map_err(|error| format!("{}: {error}; scripts/nodes.sh installs it", node.display()))?;
            Ok(String::from_utf8(output.stdout)?.trim().trim_start_matches('v').to_owned())
        };
        self.releases.iter().map(version).collect()
    }

    /// Sizes and releases alternate, so that other load on the machine affects all alike.
    pub(crate) fn measure(&self) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(&self.traces)?;
        let mut missing = Vec::new();
        for run in 1..=self.runs {
            for format in Format::ALL {
                for size in SIZES {
                    for workload in WORKLOADS {
                        for &release in &self.releases {
                            let place = Place { release, workload, size, format };
                            let trace = self.trace(place, run);
                            if !trace.exists() {
                                missing.push((place, trace));
                            }
                        }
                    }
                }
            }
        }
        let bar = ProgressBar::new(missing.len() as u64);
        bar.set_style(ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {eta} left")?);
        for (place, trace) in missing {
            bar.set_message(format!("node {} {} {} MB", place.release, place.workload, place.size));
            self.run(place, &trace)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn trace(&self, place: Place, run: u32) -> PathBuf {
        let Place { release, workload, size, format } = place;
        self.traces.join(format!("{release}-{workload}-{size}-{}-{run}.log", format.name()))
    }

    /// A trace gets its final name only when it is complete.
    fn run(&self, place: Place, trace: &Path) -> Result<(), Box<dyn Error>> {
        let part = trace.with_extension("part");
        let node = self.node(place.release);
        let mut command = match self.is_real_time {
            true => {
                let mut command = Command::new("chrt");
                command.args(["--fifo", "10"]).arg(&node);
                command
            }
            false => Command::new(&node),
        };
        let status = command
            .arg(format!("--{}", place.format.name()))
            .arg(format!("--max-semi-space-size={}", place.size))
            .arg(self.workloads.join(format!("{}.js", place.workload)))
            .env_remove("NODE_OPTIONS")
            .stdin(Stdio::null())
            .stdout(File::create(&part)?)
            .status()?;
        if !status.success() {
            return Err(format!("{command:?} failed: {status}").into());
        }
        Ok(fs::rename(part, trace)?)
    }

    /// The run with the least pauses: other load on the machine lengthens pauses, never shortens them.
    pub(crate) fn best(&self, place: Place) -> Result<Measured, Box<dyn Error>> {
        let runs: Result<Vec<Measured>, _> =
            (1..=self.runs).map(|run| Measured::read(&self.trace(place, run))).collect();
        let best = runs?.into_iter().min_by(|a, b| a.pause_ms.total_cmp(&b.pause_ms));
        best.ok_or_else(|| "no runs".into())
    }
}

/// A trace's measurements.
pub(crate) struct Measured {
    pub(crate) scavenges: f64,
    pub(crate) pause_ms: f64,
    pub(crate) promoted: f64,
    pub(crate) fulls: f64,
    pub(crate) summary: Summary,
}

impl Measured {
    fn read(path: &Path) -> Result<Measured, Box<dyn Error>> {
        let summary = hasten_v8::parse::read(File::open(path)?, &path.to_string_lossy(), &mut |_| ())?;
        let heap = summary.isolates.first().ok_or_else(|| format!("{}: no collections", path.display()))?;
        let (scavenges, pause_ms) = pauses(heap, Kind::Scavenge);
        let (fulls, _) = pauses(heap, Kind::MarkCompact);
        let promoted = heap.young.promoted_bytes.unwrap_or(0) as f64;
        Ok(Measured { scavenges, pause_ms, promoted, fulls, summary })
    }

    pub(crate) fn heap(&self) -> &IsolateSummary {
        &self.summary.isolates[0]
    }
}

fn pauses(heap: &IsolateSummary, kind: Kind) -> (f64, f64) {
    let kind = heap.by_kind.iter().find(|summary| summary.kind == kind);
    kind.map_or((0.0, 0.0), |kind| (kind.pauses.count as f64, kind.pauses.total_ms))
}
