//! The page: one self-contained file that makes no requests.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::words::{change, duration, interval, percent, value};
use super::{Effect, Fate, Pair, Report, ReportError, Screened, Suggestion, Verdict};
use crate::measure::Outcome;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn render(report: &Report) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("page", TEMPLATE)?;
    let axis = Axis::of(report);
    let name = |row: &Screened| format!("{}={}", row.setting.knob, row.setting.level);
    let (untried, tried): (Vec<_>, Vec<_>) =
        report.screened.iter().partition(|row| row.fate == Fate::Untried);
    let rows = tried.into_iter().map(|row| Row::new(name(row), row, axis));
    let kept = report.winner.iter().flat_map(|winner| &winner.settings);
    let page = Page {
        style: [hasten_charts::LOOK, hasten_charts::STYLE, hasten_charts::CHARTS_STYLE, STYLE].join("\n"),
        script: [hasten_charts::SCRIPT, hasten_charts::CHARTS_SCRIPT, SCRIPT].join("\n"),
        data: hasten_charts::embeddable(&serde_json::to_string(&Charts::of(report))?),
        headline: report.headline(),
        support: report.support(),
        tone: tone(report.verdict),
        report,
        tiles: tiles(report),
        kept: kept
            .map(|kept| Card {
                name: format!("{}={}", kept.setting.knob, kept.setting.level),
                about: &kept.about,
                risk: &kept.risk,
                carries: kept
                    .carries
                    .map(|effect| format!("{} ({})", change(effect.change), interval(effect))),
            })
            .collect(),
        rows: rows.collect(),
        untried: untried.into_iter().map(name).collect::<Vec<_>>().join(", "),
        noise: report.noise_line(),
        bytes: report.bytes_line(),
        zero: axis.position(0.0),
        ticks: axis.ticks(),
        trials: report.trials.iter().map(TrialView::of).collect(),
        suggestions: &report.suggestions,
    };
    Ok(environment.get_template("page")?.render(Serde(&page))?)
}

/// Everything the template refers to.
#[derive(Serialize)]
struct Page<'a> {
    style: String,
    script: String,
    data: String,
    headline: String,
    support: String,
    tone: &'static str,
    report: &'a Report,
    tiles: Vec<Tile>,
    kept: Vec<Card<'a>>,
    rows: Vec<Row>,
    /// Settings for which there was no time.
    untried: String,
    noise: Option<String>,
    bytes: Option<String>,
    zero: f64,
    ticks: Vec<(f64, String)>,
    trials: Vec<TrialView>,
    suggestions: &'a [Suggestion],
}

#[derive(Serialize)]
struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

#[derive(Serialize)]
struct Card<'a> {
    name: String,
    about: &'a str,
    risk: &'a str,
    carries: Option<String>,
}

/// A setting alone against the baseline: text and per cent of the axis.
#[derive(Serialize)]
struct Row {
    name: String,
    change: String,
    interval: String,
    /// Empty if nothing counted bytes.
    bytes: String,
    bytes_interval: String,
    pairs: usize,
    fate: &'static str,
    class: &'static str,
    place: Option<[f64; 3]>,
}

impl Row {
    fn new(name: String, row: &Screened, axis: Axis) -> Self {
        let effect = row.effect;
        Self {
            name,
            change: effect.map_or_else(|| "–".to_owned(), |effect| change(effect.change)),
            interval: effect.map(interval).unwrap_or_default(),
            bytes: row.bytes.map_or_else(String::new, |bytes| change(bytes.change)),
            bytes_interval: row.bytes.map(interval).unwrap_or_default(),
            pairs: row.pairs.len(),
            fate: row.fate.as_str(),
            class: fate_class(row.fate),
            place: effect
                .map(|effect| [effect.low, effect.change, effect.high].map(|share| axis.position(share))),
        }
    }
}

#[derive(Serialize)]
struct TrialView {
    number: usize,
    phase: String,
    candidate: String,
    value: String,
    requests: String,
    rss: String,
    p99: String,
    bytes: String,
    failure: String,
    /// The sort key.
    order: Option<f64>,
}

impl TrialView {
    fn of(trial: &super::Trial) -> Self {
        let (measured, failure) = match &trial.outcome {
            Outcome::Measured(measured) => (Some(measured), String::new()),
            Outcome::Disqualified(reason) => (None, reason.to_string()),
        };
        let text = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), value);
        Self {
            number: trial.number,
            phase: trial.phase.clone(),
            candidate: trial.candidate.clone(),
            value: text(trial.value),
            requests: measured.map_or_else(|| "–".to_owned(), |measured| format!("{:.0}", measured.requests)),
            rss: measured.map_or_else(
                || "–".to_owned(),
                |measured| format!("{:.0}", measured.peak_rss_bytes as f64 / 1e6),
            ),
            p99: text(measured.and_then(|measured| measured.latency?.p99)),
            bytes: measured
                .and_then(|measured| measured.bytes)
                .map_or_else(|| "–".to_owned(), |bytes| format!("{:.0}", bytes.per_request)),
            failure,
            order: trial.value,
        }
    }
}

/// The data that the script draws.
#[derive(Serialize)]
struct Charts<'a> {
    unit: &'a str,
    name: &'a str,
    panels: Vec<Panel>,
    trials: Vec<Dot<'a>>,
}

/// Pairs as points, and their effect.
#[derive(Serialize)]
struct Panel {
    place: &'static str,
    name: String,
    /// In per cent.
    changes: Vec<f64>,
    effect: Option<[f64; 3]>,
}

#[derive(Serialize)]
struct Dot<'a> {
    at: f64,
    value: f64,
    phase: &'a str,
    stock: bool,
}

impl<'a> Charts<'a> {
    fn of(report: &'a Report) -> Self {
        let noise = &report.noise;
        let mut panels = vec![Panel::of(
            "noise-chart",
            "the baseline against itself".to_owned(),
            &noise.pairs,
            noise.effect,
        )];
        if let Some(winner) = &report.winner {
            panels.push(Panel::of(
                "winner-chart",
                "all settings together".to_owned(),
                &winner.pairs,
                Some(winner.effect),
            ));
            let parts = winner.settings.iter();
            panels.extend(
                parts.map(|kept| {
                    Panel::of("parts-charts", kept.setting.knob.clone(), &kept.pairs, kept.carries)
                }),
            );
        }
        panels.retain(|panel| !panel.changes.is_empty());
        let dots = report.trials.iter().filter_map(|trial| {
            Some(Dot {
                at: trial.at,
                value: trial.value?,
                phase: &trial.phase,
                stock: trial.candidate == "stock",
            })
        });
        Self { unit: &report.objective.unit, name: &report.objective.name, panels, trials: dots.collect() }
    }
}

impl Panel {
    fn of(place: &'static str, name: String, pairs: &[Pair], effect: Option<Effect>) -> Self {
        let changes = pairs.iter().map(|pair| (pair.candidate / pair.baseline - 1.0) * 100.0);
        let changes = changes.filter(|change| change.is_finite()).collect();
        let effect = effect.map(|effect| [effect.low, effect.change, effect.high].map(|share| share * 100.0));
        Self { place, name, changes, effect }
    }
}

/// An axis of changes that always includes 0.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(report: &Report) -> Self {
        let effects = || report.screened.iter().filter_map(|row| row.effect);
        let low = effects().map(|effect| effect.low).filter(|low| low.is_finite()).fold(-0.02, f64::min);
        let high = effects().map(|effect| effect.high).filter(|high| high.is_finite()).fold(0.02, f64::max);
        let margin = (high - low) * 0.05;
        Self { low: low - margin, high: high + margin }
    }

    /// In per cent of the axis.
    fn position(self, share: f64) -> f64 {
        ((share - self.low) / (self.high - self.low) * 1000.0).round().clamp(0.0, 1000.0) / 10.0
    }

    fn ticks(self) -> Vec<(f64, String)> {
        let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        let step = steps.into_iter().find(|step| (self.high - self.low) / step <= 5.0).unwrap_or(50.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        let share = |number: i64| number as f64 * step;
        (first..=last)
            .map(|number| {
                (
                    self.position(share(number)),
                    format!("{:+.0} %", share(number) * 100.0).replace("+0", "0").replace('-', "−"),
                )
            })
            .collect()
    }
}

fn tiles(report: &Report) -> Vec<Tile> {
    let smallest = report.noise.smallest_effect;
    let failures = report.failures();
    let bytes = report.winner.as_ref().and_then(|winner| winner.bytes).map(|bytes| Tile {
        name: "Bytes on the wire",
        value: change(bytes.change),
        note: interval(bytes),
    });
    let tiles = vec![
        Tile {
            name: "Noise",
            value: smallest.map_or_else(|| "–".to_owned(), percent),
            note: format!(
                "is the least that could be seen; asked for {}",
                percent(report.noise.wanted_effect)
            ),
        },
        Tile {
            name: "Kept",
            value: report.winner.as_ref().map_or(0, |winner| winner.settings.len()).to_string(),
            note: format!(
                "of {} settings that were tried",
                report.screened.iter().filter(|row| row.fate != Fate::Untried).count()
            ),
        },
        Tile {
            name: "Measurements",
            value: report.trials.len().to_string(),
            note: match failures {
                0 => "fresh starts of the service, none disqualified".to_owned(),
                failures => format!("fresh starts of the service, {failures} disqualified"),
            },
        },
        Tile {
            name: "Time",
            value: duration(report.budget.used),
            note: format!("of {}", duration(report.budget.seconds)),
        },
    ];
    bytes.into_iter().chain(tiles).collect()
}

fn tone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "good",
        Verdict::NoDifference => "unknown",
        Verdict::Undecided | Verdict::TooNoisy | Verdict::Unfinished => "notable",
    }
}

fn fate_class(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "good",
        Fate::Harmful => "notable",
        Fate::Disqualified => "bad",
        Fate::NotNeeded | Fate::NoGain | Fate::NotProven | Fate::Undecided | Fate::Untried => "unknown",
    }
}
