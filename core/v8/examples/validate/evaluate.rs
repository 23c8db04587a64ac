//! Predictions beside measurements, and the full circle: a piece of advice, followed.

use std::error::Error;
use std::fs;
use std::process::Command;

use hasten_v8::advice::{Advice, Facts, Id, advise};
use hasten_v8::model::{Model, Prediction};
use serde::Serialize;

use crate::measure::{Format, Measured, Place, Plan, SIZES, WORKLOADS};

const MIB: u64 = 1 << 20;

/// The model is made from traces at these sizes: the release's own choice, and the same sizes for all releases.
const STARTS: [Option<u64>; 5] = [None, Some(1), Some(4), Some(16), Some(64)];

#[derive(Serialize)]
pub(crate) struct Report {
    host: Host,
    nodes: Vec<String>,
    runs: u32,
    real_time: bool,
    /// From a trace at each release's own size.
    cells: Vec<Cell>,
    starts: Vec<Start>,
    loops: Vec<Loop>,
}

#[derive(Serialize)]
struct Host {
    cpu: String,
    cores: usize,
    kernel: String,
    date: String,
}

/// Sizes are in MB, pauses in milliseconds.
#[derive(Clone, Serialize)]
struct Cell {
    workload: &'static str,
    node: u32,
    format: Format,
    /// The trace's size, and the predicted one.
    from: u64,
    size: u64,
    scavenges: Pair,
    pause_ms: Pair,
    pause_low_ms: f64,
    pause_high_ms: f64,
    promoted_mb: Pair,
    full_collections: Pair,
}

#[derive(Clone, Copy, Serialize)]
struct Pair {
    predicted: f64,
    measured: f64,
}

/// All programs and releases from traces at one size.
#[derive(Serialize)]
struct Start {
    format: Format,
    /// `null`: each release's own.
    from: Option<u64>,
    cells: usize,
    median_scavenges_error: f64,
    median_pause_error: f64,
    within_interval: f64,
    unfit: Vec<String>,
}

/// A trace, its advice, and the effect on pauses of following the advice.
#[derive(Serialize)]
struct Loop {
    workload: &'static str,
    node: u32,
    memory_limit_mb: Option<u64>,
    from: u64,
    advice: Id,
    /// `null` if no size was advised.
    to: Option<u64>,
    before_ms: f64,
    predicted_ms: Option<f64>,
    low_ms: Option<f64>,
    high_ms: Option<f64>,
    after_ms: Option<f64>,
}

pub(crate) fn report(plan: &Plan, versions: &[String]) -> Result<Report, Box<dyn Error>> {
    let (mut starts, mut cells) = (Vec::new(), Vec::new());
    for format in Format::ALL {
        for from in STARTS {
            let (all, unfit) = cells_from(plan, format, from)?;
            starts.push(Start::of(format, from, &all, unfit));
            if from.is_none() {
                cells.extend(all);
            }
        }
    }
    Ok(Report {
        host: Host::here()?,
        nodes: versions.to_vec(),
        runs: plan.runs,
        real_time: plan.is_real_time,
        cells,
        starts,
        loops: loops(plan)?,
    })
}

/// The cells, and the traces that reveal nothing about other sizes.
fn cells_from(
    plan: &Plan,
    format: Format,
    from: Option<u64>,
) -> Result<(Vec<Cell>, Vec<String>), Box<dyn Error>> {
    let (mut cells, mut unfit) = (Vec::new(), Vec::new());
    for workload in WORKLOADS {
        for &release in &plan.releases {
            let from = from.unwrap_or_else(|| usual(release));
            let place = |size| Place { release, workload, size, format };
            let start = plan.best(place(from))?;
            let model = match Model::fit(&start.heap().model, None) {
                Ok(model) => model,
                Err(why) => {
                    unfit.push(format!("{workload}, Node {release}: {why}"));
                    continue;
                }
            };
            for size in SIZES {
                let prediction = model.predict(size * MIB);
                cells.push(Cell::of(place(size), from, &prediction, &plan.best(place(size))?));
            }
        }
    }
    Ok((cells, unfit))
}

/// V8's own choice for the largest semi-space, in MB.
fn usual(release: u32) -> u64 {
    match release {
        ..=23 => 16,
        24 | 25 => 64,
        _ => 32,
    }
}

/// The same under a memory limit of 512 MB.
fn shrunk(release: u32) -> u64 {
    if release >= 26 { 4 } else { 1 }
}

impl Cell {
    fn of(place: Place, from: u64, prediction: &Prediction, measured: &Measured) -> Cell {
        let pair = |predicted: f64, measured: f64| Pair {
            predicted: rounded(predicted),
            measured: rounded(measured),
        };
        Cell {
            workload: place.workload,
            node: place.release,
            format: place.format,
            from,
            size: place.size,
            scavenges: pair(prediction.scavenges, measured.scavenges),
            pause_ms: pair(prediction.scavenge_pause_ms, measured.pause_ms),
            pause_low_ms: rounded(prediction.scavenge_pause_low_ms),
            pause_high_ms: rounded(prediction.scavenge_pause_high_ms),
            promoted_mb: pair(prediction.promoted_bytes / MIB as f64, measured.promoted / MIB as f64),
            full_collections: pair(prediction.full_collections, measured.fulls),
        }
    }

    fn is_within(&self) -> bool {
        (self.pause_low_ms..=self.pause_high_ms).contains(&self.pause_ms.measured)
    }
}

impl Start {
    /// The trace's own size is not a prediction.
    fn of(format: Format, from: Option<u64>, cells: &[Cell], unfit: Vec<String>) -> Start {
        let predicted: Vec<&Cell> = cells.iter().filter(|cell| cell.size != cell.from).collect();
        let error = |pair: fn(&Cell) -> Pair| {
            let error = |pair: Pair| (pair.predicted / pair.measured - 1.0).abs();
            median(predicted.iter().map(|cell| error(pair(cell))).collect())
        };
        let within = predicted.iter().filter(|cell| cell.is_within()).count();
        Start {
            format,
            from,
            cells: predicted.len(),
            median_scavenges_error: error(|cell| cell.scavenges),
            median_pause_error: error(|cell| cell.pause_ms),
            within_interval: within as f64 / predicted.len().max(1) as f64,
            unfit,
        }
    }
}

fn loops(plan: &Plan) -> Result<Vec<Loop>, Box<dyn Error>> {
    let mut loops = Vec::new();
    for &release in &plan.releases {
        for workload in WORKLOADS {
            loops.push(closed(plan, release, workload, usual(release), None)?);
            loops.push(closed(plan, release, workload, shrunk(release), Some(512))?);
        }
    }
    Ok(loops)
}

fn closed(
    plan: &Plan,
    release: u32,
    workload: &'static str,
    from: u64,
    memory_limit_mb: Option<u64>,
) -> Result<Loop, Box<dyn Error>> {
    let place = |size| Place { release, workload, size, format: Format::Nvp };
    let before = plan.best(place(from))?;
    let facts = Facts {
        memory_limit_bytes: memory_limit_mb.map(|limit| limit * MIB),
        node_version: Some(release.to_string()),
        ..Facts::default()
    };
    let advice = advise(std::slice::from_ref(&before.summary), &facts);
    let size = |advice: &Advice| {
        let option = advice.node_options.iter().find_map(|one| one.strip_prefix("--max-semi-space-size="))?;
        Some((advice.id, option.parse::<u64>().ok()?))
    };
    let taken = advice.iter().find_map(size);
    let prediction = match taken {
        Some((_, to)) => Some(Model::fit(&before.heap().model, None)?.predict(to * MIB)),
        None => None,
    };
    let after = taken.map(|(_, to)| plan.best(place(to))).transpose()?;
    Ok(Loop {
        workload,
        node: release,
        memory_limit_mb,
        from,
        advice: taken.map_or(Id::Nothing, |(id, _)| id),
        to: taken.map(|(_, to)| to),
        before_ms: rounded(before.pause_ms),
        predicted_ms: prediction.map(|prediction| rounded(prediction.scavenge_pause_ms)),
        low_ms: prediction.map(|prediction| rounded(prediction.scavenge_pause_low_ms)),
        high_ms: prediction.map(|prediction| rounded(prediction.scavenge_pause_high_ms)),
        after_ms: after.map(|after| rounded(after.pause_ms)),
    })
}

impl Report {
    pub(crate) fn in_a_line(&self, format: Format) -> String {
        let start = self.starts.iter().find(|start| start.format == format && start.from.is_none());
        start.map_or(String::new(), |start| {
            format!(
                "{:13} {} predictions: median error of scavenges {:.1} %, of their pause {:.1} %; {:.0} % within the interval",
                format.name(),
                start.cells,
                start.median_scavenges_error * 100.0,
                start.median_pause_error * 100.0,
                start.within_interval * 100.0
            )
        })
    }
}

impl Host {
    fn here() -> Result<Host, Box<dyn Error>> {
        let said = |program: &str, arguments: &[&str]| -> Result<String, Box<dyn Error>> {
            let output = Command::new(program).args(arguments).output()?;
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        let cpus = fs::read_to_string("/proc/cpuinfo")?;
        let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        Ok(Host {
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            kernel: said("uname", &["-r"])?,
            date: said("date", &["-u", "+%F"])?,
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
