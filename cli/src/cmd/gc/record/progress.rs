//! Progress on standard error: a bar on a terminal, one line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::client::{Info, State};
use crate::output::can_redraw;
use crate::render::say;

#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    begin: Instant,
}

impl Progress {
    pub(super) fn start(process: &Info, duration: Duration) -> Self {
        let Info { pid, node, script, .. } = process;
        let script = script.as_deref().unwrap_or("no script");
        let time = duration.as_secs_f64();
        say(format!(
            "process {pid} ({script}, Node {node}): {time:.0} s; Ctrl-C ends it early and keeps what there is"
        ));
        Self { bar: can_redraw().then(|| bar(duration)), begin: Instant::now() }
    }

    pub(super) fn update(&mut self, state: &State) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.begin.elapsed().as_secs());
            bar.set_message(format!("{} events, {}", state.events, HumanBytes(state.bytes)));
            bar.tick();
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(duration: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {elapsed} of {len} s {wide_msg}")
        .expect("the template is valid");
    ProgressBar::with_draw_target(Some(duration.as_secs()), ProgressDrawTarget::stderr()).with_style(style)
}
