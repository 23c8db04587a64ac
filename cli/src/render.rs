//! How plans and tables look on a terminal.

use std::fmt::Display;
use std::io::Write;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use hasten_plan::process::Setting;
use hasten_plan::{AdvisedOption, Config, Decision, Plan, Reason, Side, Verdict};

use crate::output;

/// Wide enough for most tables, narrow enough for a page; for output that is not a terminal.
const DEFAULT_WIDTH: u16 = 120;

/// Whether and how to decorate what goes to standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    pub(crate) fn stdout() -> Self {
        Self { colours: output::has_colours() }
    }

    /// A table that fits the terminal.
    pub(crate) fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if !self.colours {
            table.force_no_tty();
        }
        if let Some(width) = width(&table) {
            table.set_width(width);
        }
        table.set_header(header.iter().map(|title| self.bold(title)));
        table
    }

    pub(crate) fn bold(self, text: &str) -> Cell {
        if self.colours { Cell::new(text).add_attribute(Attribute::Bold) } else { Cell::new(text) }
    }

    pub(crate) fn cell(self, text: &str, colour: Color) -> Cell {
        if self.colours { Cell::new(text).fg(colour) } else { Cell::new(text) }
    }
}

/// A line on standard error. If nobody reads it, that is no reason to stop.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// `COLUMNS` wins; `None` leaves it to the terminal.
fn width(table: &Table) -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| (!table.is_tty()).then_some(DEFAULT_WIDTH))
}

/// `on`, `standby` or `off`.
fn decision(verdict: &Verdict) -> &'static str {
    match verdict.decision {
        Decision::Apply => "on",
        Decision::Standby => "standby",
        Decision::Skip => "off",
    }
}

/// A reason and its fix, one line each.
pub(crate) fn reason(reason: &Reason) -> String {
    let mark = match reason.side {
        Side::For => '+',
        Side::Idle => '~',
        Side::Against => '-',
    };
    let fix = reason.fix.as_ref().map(|fix| format!("\n    fix: {fix}")).unwrap_or_default();
    format!("  {mark} {}{fix}", reason.text)
}

/// An accelerator's verdict with the deciding reason.
pub(crate) fn in_a_line(verdict: &Verdict) -> String {
    let side = match verdict.decision {
        Decision::Apply => Side::For,
        Decision::Standby => Side::Idle,
        Decision::Skip => Side::Against,
    };
    let texts: Vec<&str> = verdict.reasons(side).map(|reason| reason.text.as_str()).collect();
    // All reasons against it have to go; for it, what it does says more than where its library is.
    let why = if side == Side::For { verdict.summary.to_owned() } else { texts.join("; ") };
    format!("{:<5} {:<8} {why}", verdict.name, decision(verdict))
}

/// An accelerator's verdict with all of its reasons.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let decision = decision(verdict);
    let proof = verdict.proof.map(|proof| format!(" ({})", proof.as_str())).unwrap_or_default();
    let lines = [format!("{} {decision}{proof}: {}", verdict.name, verdict.summary)].into_iter();
    lines.chain(verdict.reasons.iter().map(reason)).collect::<Vec<_>>().join("\n")
}

/// What is set besides accelerators, a line for each.
pub(crate) fn settings(plan: &Plan) -> Vec<String> {
    let line = |setting: &Setting| match &setting.left_out {
        None => format!("{}: {}", setting.key, setting.value),
        Some(why) => format!("{} {} left out: {why}", setting.key, setting.value),
    };
    plan.settings.list.iter().map(line).collect()
}

/// What becomes of the garbage collection advice, a line for each option.
pub(crate) fn gc_advice(plan: &Plan, config: &Config) -> Vec<String> {
    let Some(advice) = &config.gc_advice else { return Vec::new() };
    let file = advice.file.display();
    if advice.settings.is_empty() {
        let remarks = advice.remarks.join("; ");
        let remarks = if remarks.is_empty() { "it is empty".to_owned() } else { remarks };
        return vec![format!("gc advice in {file} sets nothing: {remarks}")];
    }
    let line = |advised: &AdvisedOption| match &advised.left_out {
        None => format!("gc advice {}: {} ({file})", advised.setting.option, advised.setting.because),
        Some(why) => format!("gc advice {} left out: {why}", advised.setting.option),
    };
    plan.gc_advice.iter().map(line).collect()
}
