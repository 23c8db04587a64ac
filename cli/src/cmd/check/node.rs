//! What `hasten check` adds for Node.js: how the binary was built, and the state of each tuning.

use comfy_table::{Cell, Color};
use hasten_plan::tunings::{Measurements, Subject, Tuning, TuningState, tunings};
use hasten_plan::{Plan, Surroundings};
use hasten_probe::program::kind::Kind;
use hasten_probe::program::node::NodeBuild;
use hasten_probe::{Environment, Host, Probe, Program};
use serde::Serialize;

use crate::render::Style;

#[derive(Serialize)]
pub(super) struct NodeReport {
    /// The binary's own account of its build.
    build: Option<NodeBuild>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    silent: Option<String>,
    tunings: Vec<Tuning>,
}

impl NodeReport {
    /// Asks the program, if it is Node.js.
    pub(super) fn new(
        program: &Program,
        host: &Host,
        plan: &Plan,
        surroundings: &Surroundings,
    ) -> Option<Self> {
        if program.kind != Kind::Node {
            return None;
        }
        let build = match NodeBuild::ask(program, &Environment::current()) {
            Ok(build) => build,
            Err(error) => {
                return Some(Self { build: None, silent: Some(error.to_string()), tunings: Vec::new() });
            }
        };
        let subject = Subject {
            build: &build,
            host,
            plan,
            surroundings,
            cpus_allowed: Probe::new().cpus_allowed(),
            measurements: &Measurements::kept(),
        };
        let tunings = tunings(&subject);
        Some(Self { build: Some(build), silent: None, tunings })
    }

    /// The row about the build in the table of facts.
    pub(super) fn build(&self) -> String {
        match (&self.build, &self.silent) {
            (Some(build), _) => {
                let deaf = if build.ignores_node_options { ", built to ignore NODE_OPTIONS" } else { "" };
                format!("{} with V8 {}{deaf}", build.release, build.v8)
            }
            (None, why) => format!("cannot tell: {}", why.as_deref().unwrap_or_default()),
        }
    }

    pub(super) fn text(&self, style: Style) -> String {
        if self.tunings.is_empty() {
            return String::new();
        }
        let mut table = style.table(&["Tuning", "State", "What was found", "Measured (source)", "How"]);
        for tuning in &self.tunings {
            table.add_row(vec![
                Cell::new(tuning.name),
                state(tuning.state, style),
                Cell::new(&tuning.detail),
                Cell::new(format!("{} ({})", tuning.measured, tuning.source)),
                Cell::new(tuning.how.as_deref().unwrap_or("")),
            ]);
        }
        format!("\nTunings of the reference white paper\n\n{}\n", table.trim_fmt())
    }
}

fn state(state: TuningState, style: Style) -> Cell {
    let (mark, colour) = match state {
        TuningState::InEffect => ('+', Color::Green),
        TuningState::Applicable => ('!', Color::Yellow),
        TuningState::NeedsBuild | TuningState::NoEffect => ('-', Color::DarkGrey),
        TuningState::Unmeasured => ('?', Color::Yellow),
    };
    style.cell(&format!("{mark} {}", state.as_str()), colour)
}
