//! Progress on standard error: a bar on a terminal, a line for each result elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use hasten_evidence::paired::Estimate;
use hasten_evidence::report::{Case, Row};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Observes a run. It draws only between rounds, when no server is being measured.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    rows: usize,
    row: usize,
    name: String,
}

impl Progress {
    /// For a run of `rows` rows that takes about `estimate`.
    #[must_use]
    pub fn start(rows: usize, estimate: Duration) -> Self {
        let minutes = (estimate.as_secs_f64() / 60.0).max(0.1);
        let time =
            if minutes < 2.0 { format!("{:.0} s", minutes * 60.0) } else { format!("{minutes:.0} min") };
        say(&format!(
            "{rows} comparisons, about {time}; results are saved after each, Ctrl-C keeps what is finished"
        ));
        Self { bar: can_redraw().then(|| bar(rows)), rows, row: 0, name: String::new() }
    }

    pub fn row(&mut self, name: &str) {
        self.row += 1;
        name.clone_into(&mut self.name);
        self.message("warm-up");
    }

    pub fn pair(&self, pairs: usize, ratio: Option<Estimate>) {
        match ratio {
            Some(ratio) => self
                .message(&format!("{pairs} pairs: {:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)),
            None => self.message(&format!("{pairs} pairs")),
        }
    }

    /// The rows of a case.
    pub fn finish_rows<C: Case>(&self, rows: &[Row<C>]) {
        rows.iter().for_each(|row| self.finish_row(row));
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn finish_row<C: Case>(&self, row: &Row<C>) {
        let (Estimate { value, low, high }, verdict) = (row.cpu_ratio, row.verdict);
        let title = row.case.title();
        self.line(&format!(
            "[{}/{}] {title}: {value:.2} [{low:.2}, {high:.2}] {verdict}",
            self.row, self.rows
        ));
        for (name, side) in [("stock", &row.stock), ("hasten", &row.hasten)] {
            for detail in &side.failure_details {
                self.line(&format!("      failed ({name}): {detail}"));
            }
        }
    }

    /// A remark that stays on the screen.
    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => say(line),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn message(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {what}", self.name));
            bar.tick();
        }
    }
}

/// Output that nobody has to read.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A terminal that shows escape sequences instead of obeying them identifies itself.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn bar(rows: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}")
        .expect("the template is valid");
    ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr()).with_style(style)
}
