//! The table of docs/tune-cases.md: what `hasten tune` has proven about real services.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

/// The part of a report that the table shows.
#[derive(Debug, Deserialize)]
pub(super) struct Session {
    verdict: String,
    winner: Option<Winner>,
    noise: Noise,
    budget: Budget,
    commands: Commands,
}

#[derive(Debug, Deserialize)]
struct Winner {
    settings: Vec<Setting>,
    effect: Effect,
    pairs: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct Setting {
    knob: String,
    level: String,
}

#[derive(Debug, Deserialize)]
struct Effect {
    change: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Deserialize)]
struct Pair {
    baseline: f64,
    candidate: f64,
}

#[derive(Debug, Deserialize)]
struct Noise {
    smallest_effect: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Budget {
    used: f64,
}

#[derive(Debug, Deserialize)]
struct Commands {
    tune: String,
}

pub(super) fn table(sessions: &[(String, Session)]) -> String {
    let mut text = String::from(
        "| service | CPU per request, µs | change [95 %] | kept | visible from | minutes | report |\n\
         |---|---:|---:|---|---:|---:|---|\n",
    );
    for (name, session) in sessions {
        let (cost, change, kept) = match &session.winner {
            Some(winner) => (cost(winner), change(&winner.effect), winner.kept()),
            None => ("–".to_owned(), session.verdict.replace('-', " "), "nothing".to_owned()),
        };
        let visible =
            session.noise.smallest_effect.map_or("–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let _ = writeln!(
            text,
            "| {} | {cost} | {change} | {kept} | {visible} | {:.0} | [page](results/tune-{name}.html), [data](results/tune-{name}.json) |",
            name.replace('-', " "),
            session.budget.used / 60.0,
        );
    }
    text.push('\n');
    for (name, session) in sessions {
        let _ = writeln!(text, "- {}: `{}`", name.replace('-', " "), session.commands.tune);
    }
    text
}

/// The part of a file's name that identifies the service.
pub(super) fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.strip_prefix("tune-").unwrap_or(&stem).to_owned()
}

impl Winner {
    fn kept(&self) -> String {
        let settings = self.settings.iter().map(|setting| format!("`{}={}`", setting.knob, setting.level));
        settings.collect::<Vec<_>>().join(", ")
    }
}

fn cost(winner: &Winner) -> String {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let side = |of: fn(&Pair) -> f64| median(winner.pairs.iter().map(of).collect());
    format!("{:.0} → {:.0}", side(|pair| pair.baseline), side(|pair| pair.candidate))
}

fn change(effect: &Effect) -> String {
    let percent = |share: f64| format!("{:+.1}", 100.0 * share).replace('-', "−");
    format!("**{} %** [{}, {}]", percent(effect.change), percent(effect.low), percent(effect.high))
}
