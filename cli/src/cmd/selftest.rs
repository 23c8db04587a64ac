//! `hasten selftest`: whether the engines give the known answers on this machine.

mod exercise;
mod preloaded;
mod software;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Color};
use hasten_device::selftest::{Outcome, Report};
use hasten_device::{Root, library, selftest};
use serde::Serialize;

use self::exercise::Exercise;
use crate::failure::Failure;
use crate::output::print;
use crate::render::Style;

/// Changes only when a name is removed or changes its meaning.
const SCHEMA: u32 = 1;

const EXAMPLES: &str = "\
Examples:
  hasten selftest                     the engines in software
  hasten selftest --devices           accelerator devices and their libraries, too
  hasten selftest --storage /mnt/nvme the libraries for memory and storage, too, with files there
  hasten selftest --devices --json | jq '.engines[] | select(.result == \"failed\")'

The exit code is 1 when an engine failed. One that is not here has not failed.
";

/// Check every engine with questions whose answers are known
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Gives each engine work whose results are known, or can be checked by another: RSA, elliptic curves and X25519 in \
batches; compression at several levels and sizes. With --devices the libraries of QAT and IAA are opened and \
their devices used for a moment, as this user; `hasten check` says what a device lacks that is not here. \
HASTEN_DEVICE_LIBRARIES names a folder with the libraries. With --storage, each library for memory and storage is \
loaded into a process that does known work, with files in a folder of that directory; the folder is removed again.")]
pub(crate) struct SelftestArgs {
    /// Test accelerator devices, too
    #[arg(long)]
    devices: bool,

    /// Test the libraries for memory and storage, too, with files in this directory
    #[arg(long, value_name = "DIRECTORY")]
    storage: Option<PathBuf>,

    /// Be the process that does such work
    #[arg(long, hide = true, requires = "storage")]
    exercise: Option<Exercise>,

    /// Print JSON (its names are stable; see docs/devices.md)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Results {
    schema: u32,
    hasten: &'static str,
    engines: Vec<Row>,
}

/// One engine.
#[derive(Serialize)]
struct Row {
    engine: &'static str,
    /// `software`, `preloaded`, or the kind of device.
    class: &'static str,
    result: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<&'static str>,
    simulated: bool,
    devices: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Passed,
    Failed,
    NotHere,
}

pub(crate) fn run(args: &SelftestArgs) -> Result<ExitCode, Failure> {
    if let (Some(exercise), Some(place)) = (args.exercise, &args.storage) {
        return exercise.run(place);
    }
    let storage = args.storage.as_deref().map(existing).transpose()?;
    let mut engines = software::run();
    if args.devices {
        let reports = selftest::run(&Root::from_environment(), hasten_deflate::verify::unpack, &None);
        engines.extend(reports.into_iter().map(Row::from));
    }
    if let Some(directory) = storage {
        engines.extend(preloaded::run(&directory));
    }
    let failed = engines.iter().any(|row| row.result == Verdict::Failed);
    let results = Results { schema: SCHEMA, hasten: env!("CARGO_PKG_VERSION"), engines };
    let text = match args.json {
        true => results.json()?,
        false => results.table(args.devices),
    };
    print(&text).map_err(Failure::output)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// As an absolute path, which the libraries want.
fn existing(directory: &Path) -> Result<PathBuf, Failure> {
    directory.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
        Failure::usage(
            format!("--storage: {} is no directory", directory.display()),
            "name a directory on the device to test".to_owned(),
        )
    })
}

impl From<Report> for Row {
    fn from(report: Report) -> Self {
        let (result, detail) = match report.outcome {
            Outcome::Passed(detail) => (Verdict::Passed, detail),
            Outcome::Failed(detail) => (Verdict::Failed, detail),
            Outcome::NotHere(detail) => (Verdict::NotHere, detail),
        };
        Self {
            engine: report.engine,
            class: report.kind.label(),
            result,
            detail,
            library: report.library,
            simulated: report.simulated,
            devices: report.devices,
        }
    }
}

impl Results {
    fn json(&self) -> Result<String, Failure> {
        let json = serde_json::to_string_pretty(self).map_err(|error| Failure::json("results", &error))?;
        Ok(json + "\n")
    }

    fn table(&self, devices: bool) -> String {
        let style = Style::stdout();
        let mut table = style.table(&["Engine", "Class", "Result", "What was done, or why not"]);
        for row in &self.engines {
            let (mark, colour) = match row.result {
                Verdict::Passed => ("+ passed", Color::Green),
                Verdict::Failed => ("! failed", Color::Red),
                Verdict::NotHere => ("- not here", Color::DarkGrey),
            };
            let simulated = if row.simulated { " (simulated: no device was used)" } else { "" };
            table.add_row(vec![
                style.bold(row.engine),
                Cell::new(row.class),
                style.cell(mark, colour),
                Cell::new(format!("{}{simulated}", row.detail)),
            ]);
        }
        let mut text = format!("{}\n", table.trim_fmt());
        if !devices {
            text += "\nTry `hasten selftest --devices` for QAT and IAA.\n";
        } else if self.engines.iter().any(|row| row.result == Verdict::NotHere) {
            let folder = library::FOLDER;
            text += &format!(
                "\n`hasten check` says what devices lack; {folder} names a folder with libraries.\n"
            );
        }
        text
    }
}
