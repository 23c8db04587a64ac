//! Tests the model of the young generation against V8: runs the programs of bench/gc-model under every release of Node
//! and every size of a semi-space, predicts all sizes from the trace at one, and writes both down.
//!
//! `cargo run --release -p hasten-v8 --example validate -- --nodes .deps/nodes/node_modules --out docs/results/gc-model.json`
//! The traces are kept with `--traces DIR`, and a second run measures only what is missing there. A pause is wall time,
//! so on a busy machine `--real-time` (root) keeps other processes out of it. `cargo xtask results` turns the output
//! into the tables of docs/gc-model.md.

mod evaluate;
mod measure;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;

use measure::{Format, Plan};

#[derive(Debug, Parser)]
struct Options {
    /// The folder of scripts/nodes.sh, with node20/bin/node and others in it
    #[arg(long, value_name = "DIR", default_value = ".deps/nodes/node_modules")]
    nodes: PathBuf,

    /// The programs
    #[arg(long, value_name = "DIR", default_value = "bench/gc-model")]
    workloads: PathBuf,

    /// Major releases of Node
    #[arg(long, value_delimiter = ',', default_value = "20,22,24,26")]
    releases: Vec<u32>,

    /// Runs of each program, at each size, of each release, with each kind of trace; the one with the least pauses counts
    #[arg(long, default_value_t = 2)]
    runs: u32,

    /// Keep the traces here
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,

    /// Run the programs with real-time priority, by chrt
    #[arg(long)]
    real_time: bool,

    /// Where the result goes
    #[arg(long, value_name = "FILE", default_value = "docs/results/gc-model.json")]
    out: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let scratch = std::env::temp_dir().join(format!("hasten-gc-model-{}", std::process::id()));
    let plan = Plan {
        nodes: options.nodes,
        workloads: options.workloads,
        releases: options.releases,
        runs: options.runs,
        traces: options.traces.clone().unwrap_or_else(|| scratch.clone()),
        is_real_time: options.real_time,
    };
    let versions = plan.versions()?;
    plan.measure()?;
    let report = evaluate::report(&plan, &versions)?;
    for format in Format::ALL {
        println!("{}", report.in_a_line(format));
    }
    std::fs::write(&options.out, serde_json::to_string_pretty(&report)? + "\n")?;
    println!("{}", options.out.display());
    if options.traces.is_none() {
        std::fs::remove_dir_all(&scratch)?;
    }
    Ok(())
}
