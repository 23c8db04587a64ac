//! The results of a session: files, and a summary on the terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hasten_bench::affinity::Placement;
use hasten_bench::host;
use hasten_tune::report::{Commands, NotTried, Report, Verdict, duration};
use hasten_tune::session::{self, Findings, Halt};
use hasten_tune::summary::{self, Circumstances};
use hasten_tune::trial::TrialError;
use serde::Serialize;

use super::TuneArgs;
use super::setup::Setup;
use crate::cmd::bench::style;
use crate::failure::Failure;
use crate::render::say;

/// The files of a session.
pub(super) struct Written {
    report: Report,
    /// As JSON.
    data: String,
    html: PathBuf,
    json: PathBuf,
    profile: Option<PathBuf>,
    /// How to use the profile in the unit.
    unit: Option<String>,
}

impl Written {
    /// Whether the verdict is conclusive.
    pub(super) fn says_something(&self) -> bool {
        matches!(self.report.verdict, Verdict::Better | Verdict::NoDifference)
    }
}

/// Facts about the session besides the measurements.
pub(super) struct Around {
    /// Of the machine, at the beginning.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) remarks: Vec<String>,
    pub(super) ending: Ending,
}

/// Why a session ended early, and the budget that would suffice if it ran out of time.
#[derive(Default)]
pub(super) struct Ending {
    pub(super) why: Option<String>,
    pub(super) budget: Option<Duration>,
}

impl Ending {
    pub(super) fn of(halt: &Halt<TrialError>, setup: &Setup, findings: &Findings) -> Self {
        let had = duration(setup.settings.budget.as_secs_f64());
        match halt {
            Halt::OutOfTime => {
                let budget = session::sufficient(&setup.space, &setup.settings, &findings.trials);
                let enough = budget.map(|budget| {
                    format!("; --budget {} would be enough for all settings", minutes(budget.as_secs_f64()))
                });
                let why = format!("the budget of {had} was used up{}", enough.unwrap_or_default());
                Self { why: Some(why), budget }
            }
            Halt::TooShort { needed, .. } => Self {
                why: Some(format!("the budget of {had} is too short for this load")),
                budget: Some(Duration::from_secs_f64(*needed)),
            },
            Halt::Stopped(TrialError::Interrupted) => {
                Self { why: Some("it was interrupted".to_owned()), budget: None }
            }
            other => Self { why: Some(other.to_string()), budget: None },
        }
    }

    /// The line to paste: without more time the same would happen again.
    pub(super) fn resume(&self, folder: &Path) -> String {
        let budget = self.budget.map(|budget| format!(" --budget {}", minutes(budget.as_secs_f64())));
        format!(
            "hasten tune --resume {}{}",
            quoted(&[folder.display().to_string()]),
            budget.unwrap_or_default()
        )
    }
}

/// In `--budget`'s notation, rounded up.
pub(super) fn minutes(seconds: f64) -> String {
    format!("{:.0}m", (seconds / 60.0).ceil())
}

/// The machine, and the time.
pub(super) fn facts() -> Vec<(&'static str, String)> {
    host::facts(&[], &Placement { server: None, driver: Vec::new(), shared_core: false }).0
}

/// Before the first measurement.
pub(super) fn announce(setup: &Setup, args: &TuneArgs) {
    let levels: usize = setup.space.dimensions.iter().map(|dimension| dimension.levels.len() - 1).sum();
    say(format!(
        "{}: {} knobs with {levels} settings, {} minutes; each measurement is saved: after the first one, Ctrl-C loses \
         nothing, and --resume {} goes on",
        setup.launch.name(),
        setup.space.dimensions.len(),
        (setup.settings.budget.as_secs_f64() / 60.0).round(),
        args.resume.as_deref().unwrap_or(&args.out).display(),
    ));
    say(format!(
        "load: {}; objective: {}; seed: {}",
        setup.load.describe(),
        setup.settings.objective,
        setup.settings.seed
    ));
}

pub(super) fn write(
    args: &TuneArgs,
    setup: &Setup,
    findings: &Findings,
    around: Around,
    folder: &Path,
) -> Result<Written, Failure> {
    let profile = write_profile(setup, findings, folder)?;
    let date = around.facts.iter().find(|(name, _)| *name == "date");
    let started = date.map(|(_, date)| date.clone()).unwrap_or_default();
    let machine =
        around.facts.into_iter().filter(|(name, _)| !["placement", "date", "hasten"].contains(name));
    let circumstances = Circumstances {
        hasten: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        environment: machine
            .map(|(name, value)| (name.to_owned(), value))
            .chain([("seed".to_owned(), setup.settings.seed.to_string())])
            .collect(),
        commands: commands(setup, profile.as_deref(), findings, &around.ending, folder),
        constraints: constraints(args),
        not_tried: setup
            .choices
            .left_out
            .iter()
            .map(|knob| NotTried { knob: knob.name.clone(), why: knob.why.clone() })
            .collect(),
        suggestions: setup.suggestions.clone(),
        counts_bytes: !setup.load.is_other_than_http(),
        longer: setup.load.longer(),
        stopped: around.ending.why,
        warnings: around.remarks,
    };
    let report = summary::report(findings, &setup.settings, &setup.choices, circumstances);
    let (html, json) = (folder.join("report.html"), folder.join("report.json"));
    let page = report.html().map_err(|error| Failure::new(error.to_string(), "please report it"))?;
    fs::write(&html, page).map_err(|error| failure(&html, &error))?;
    let data = report.json().map_err(|error| Failure::new(error.to_string(), "please report it"))?;
    fs::write(&json, &data).map_err(|error| failure(&json, &error))?;
    let unit = report.commands.run.as_deref().and_then(|run| setup.drop_in(run));
    Ok(Written { report, data, html, json, profile, unit })
}

/// Only what was proven; otherwise, not even a file of an earlier session is left.
fn write_profile(setup: &Setup, findings: &Findings, folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let path = folder.join("hasten.toml");
    let Some((candidate, _)) = findings.proven() else {
        let _ = fs::remove_file(&path);
        return Ok(None);
    };
    let because = |knob: usize| summary::reason(findings, &setup.settings, knob);
    let mut profile = setup.choices.explained(candidate, &setup.launch, because).profile;
    for why in summary::missing(findings, &setup.choices, &setup.settings) {
        profile.is_without(why);
    }
    let text = profile.to_toml();
    fs::write(&path, text).map_err(|error| failure(&path, &error))?;
    Ok(Some(path))
}

fn commands(
    setup: &Setup,
    profile: Option<&Path>,
    findings: &Findings,
    ending: &Ending,
    folder: &Path,
) -> Commands {
    let words: Vec<_> = setup.launch.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = quoted(&words);
    let unfinished = findings.conclusion == session::Conclusion::Unfinished;
    Commands {
        tune: format!("hasten tune {}", quoted(&super::resume::words())),
        load: setup.load.describe(),
        run: profile.map(|path| format!("hasten run --config {} -- {command}", path.display())),
        resume: unfinished.then(|| ending.resume(folder)),
    }
}

fn constraints(args: &TuneArgs) -> Vec<String> {
    let rss = args.max_rss.map(|bytes| format!("memory at most {:.0} MB", bytes as f64 / 1e6));
    let p99 = args.max_p99.map(|limit| format!("p99 at most {limit} ms"));
    let bytes = Some(args.max_bytes).filter(|limit| limit.is_finite());
    let bytes = bytes.map(|limit| format!("at most {} % more bytes on the wire", limit * 100.0));
    rss.into_iter().chain(p99).chain(bytes).collect()
}

/// Quoted for a shell.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

pub(super) fn print(args: &TuneArgs, written: &Written) -> Result<(), Failure> {
    if args.json {
        return crate::output::print(&written.data).map_err(Failure::output);
    }
    let mut text = format!("{}\n\n", written.report.terminal(style()).trim_end());
    let files = [
        ("Report", Some(&written.html)),
        ("Data", Some(&written.json)),
        ("Profile", written.profile.as_ref()),
    ];
    for (what, path) in files {
        if let Some(path) = path {
            text += &format!("{:<9}{}\n", format!("{what}:"), path.display());
        }
    }
    if let Some(unit) = &written.unit {
        text += &format!("Unit:    {unit}\n");
    }
    crate::output::print(&text).map_err(Failure::output)
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot make JSON: {error}"), "please report it"))
}

fn failure(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()), "choose another directory with --out")
}
