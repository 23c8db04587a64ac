//! `hasten tune --list-knobs`: what would be tried, and why anything else would not.

use std::process::ExitCode;

use hasten_tune::knob::{Choice, Choices, RiskLevel};
use serde::Serialize;

use super::output::to_json;
use crate::failure::Failure;
use crate::output::print;
use crate::render::Style;

#[derive(Serialize)]
struct KnobJson<'a> {
    name: &'a str,
    about: &'a str,
    scope: &'a str,
    cost: &'a str,
    risk: RiskLevel,
    risk_why: &'a str,
    /// The first is the value without the knob.
    levels: Vec<String>,
}

pub(super) fn list(choices: &Choices, json: bool) -> Result<ExitCode, Failure> {
    let text = if json { self::json(choices)? } else { table(choices) };
    print(&format!("{}\n", text.trim_end())).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn json(choices: &Choices) -> Result<String, Failure> {
    let knob = |choice: &Choice| -> serde_json::Value {
        let knob = &choice.knob;
        serde_json::json!(KnobJson {
            name: knob.name(),
            about: knob.about(),
            scope: knob.scope(),
            cost: knob.cost(),
            risk: knob.risk().level,
            risk_why: knob.risk().why,
            levels: choice.levels.iter().map(ToString::to_string).collect(),
        })
    };
    let knobs: Vec<_> = choices.knobs.iter().map(knob).collect();
    to_json(&serde_json::json!({ "knobs": knobs, "left_out": choices.left_out }))
}

fn table(choices: &Choices) -> String {
    let style = Style::stdout();
    let mut tried = style.table(&["KNOB", "FOR", "AS IT IS", "TRIED", "RISK", "WHAT IT DOES, AND COSTS"]);
    for choice in &choices.knobs {
        let (knob, levels) = (&choice.knob, &choice.levels);
        let others: Vec<String> = levels.iter().skip(1).map(ToString::to_string).collect();
        tried.add_row([
            knob.name().to_owned(),
            knob.scope().to_owned(),
            levels[0].to_string(),
            others.join(", "),
            format!("{}: {}", knob.risk().level, knob.risk().why),
            format!("{}; {}", knob.about(), knob.cost()),
        ]);
    }
    let mut left_out = style.table(&["NOT TRIED", "WHY"]);
    for knob in &choices.left_out {
        left_out.add_row([knob.name.clone(), knob.why.clone()]);
    }
    format!("{tried}\n\n{left_out}")
}
