//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use std::time::Duration;

use hasten_tune::measure::Outcome;
use hasten_tune::report::value;
use hasten_tune::session::{Phase, Settings, Status, Trial, Watcher};
use hasten_tune::space::Space;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::can_redraw;
use crate::render::say;

/// Draws only between measurements.
pub(super) struct Progress<'a> {
    bar: Option<ProgressBar>,
    space: &'a Space,
    /// The unit of a cost.
    unit: &'static str,
    /// All remarks, for the report.
    pub(super) remarks: Vec<String>,
}

impl<'a> Progress<'a> {
    pub(super) fn start(space: &'a Space, settings: &Settings) -> Self {
        let bar = can_redraw().then(|| bar(settings.budget));
        Self { bar, space, unit: settings.objective.unit(), remarks: Vec::new() }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => say(line),
        }
    }
}

impl Watcher for Progress<'_> {
    fn phase(&mut self, phase: Phase, what: &str) {
        self.line(&format!("[{}] {what}", phase.as_str()));
    }

    fn trying(&mut self, status: &Status<'_>) {
        let Some(bar) = &self.bar else { return };
        let best = match status.best {
            Some((candidate, ratio)) => {
                format!(" · best {} {:+.1} %", self.space.describe(candidate), change(*ratio))
            }
            None => String::new(),
        };
        let left = status.budget.saturating_sub(status.elapsed);
        bar.set_position(status.elapsed.as_secs());
        bar.set_message(format!(
            "{} left · {}: {}{best}",
            clock(left),
            status.phase.as_str(),
            self.space.describe(status.candidate)
        ));
        bar.tick();
    }

    fn tried(&mut self, trial: &Trial) {
        if let Outcome::Disqualified(reason) = &trial.outcome {
            self.line(&format!("  {}: out, {reason}", self.space.describe(&trial.candidate)));
        } else if self.bar.is_none() {
            let cost = trial.cost.unwrap_or_default();
            let (name, seconds) = (self.space.describe(&trial.candidate), trial.seconds);
            let cost = format!("{} {}", value(cost), self.unit);
            self.line(&format!("  {name}: {} (took {seconds:.1} s)", cost.trim_end()));
        }
    }

    fn note(&mut self, line: &str) {
        self.line(&format!("  {line}"));
    }

    fn remark(&mut self, line: &str) {
        self.line(&format!("  {line}"));
        self.remarks.push(line.to_owned());
    }
}

/// The change of the cost, in per cent.
fn change(ratio: f64) -> f64 {
    (1.0 / ratio - 1.0) * 100.0
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn bar(budget: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("the template is valid");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(Some(budget.as_secs()), target).with_style(style)
}
