//! The knobs that apply to one service: as the search sees them, and back.

use serde::Serialize;

use super::{Custom, Facts, Knob, Value, registry};
use crate::service::Launch;
use crate::space::{Candidate, Dimension, Space};

#[derive(Debug)]
pub struct Choices {
    pub knobs: Vec<Choice>,
    /// Those that do not apply, with the reason.
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug)]
pub struct Choice {
    pub knob: Box<dyn Knob>,
    /// The first is what there is without the knob.
    pub levels: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub name: String,
    pub why: String,
}

impl Choices {
    /// The registry and the user's own knobs, as far as they apply.
    #[must_use]
    pub fn of(facts: &Facts, custom: Vec<Custom>) -> Self {
        let known = registry().iter().map(|knob| Box::new(*knob) as Box<dyn Knob>);
        let own = custom.into_iter().map(|knob| Box::new(knob) as Box<dyn Knob>);
        let mut choices = Self { knobs: Vec::new(), left_out: Vec::new() };
        for knob in known.chain(own) {
            match knob.levels(facts) {
                Ok(levels) if levels.len() > 1 => choices.knobs.push(Choice { knob, levels }),
                Ok(_) => choices.leave_out(&*knob, "there is nothing else to set it to"),
                Err(why) => choices.leave_out(&*knob, &why),
            }
        }
        choices
    }

    /// Keeps the named ones only, or all but the named ones.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool, why: &str) {
        let (kept, dropped) =
            std::mem::take(&mut self.knobs).into_iter().partition(|choice| keep(choice.knob.name()));
        self.knobs = kept;
        for choice in dropped as Vec<Choice> {
            self.leave_out(&*choice.knob, why);
        }
    }

    #[must_use]
    pub fn space(&self) -> Space {
        let dimension = |choice: &Choice| Dimension {
            name: choice.knob.name().to_owned(),
            levels: choice.levels.iter().map(ToString::to_string).collect(),
            ordered: choice.knob.ordered(),
        };
        Space { dimensions: self.knobs.iter().map(dimension).collect() }
    }

    /// The service with what a candidate sets.
    #[must_use]
    pub fn launch(&self, candidate: &Candidate, stock: &Launch) -> Launch {
        self.explained(candidate, stock, |_| None)
    }

    /// The same, with what `effect` says of a knob as a comment of what it sets.
    #[must_use]
    pub fn explained(
        &self,
        candidate: &Candidate,
        stock: &Launch,
        effect: impl Fn(usize) -> Option<String>,
    ) -> Launch {
        let mut launch = stock.clone();
        for (at, level) in candidate.set() {
            let Choice { knob, levels } = &self.knobs[at];
            if let Some(effect) = effect(at) {
                launch.profile.because(format!("{}={}: {effect}", knob.name(), levels[level]));
            }
            knob.apply(&levels[level], &mut launch);
        }
        launch
    }

    fn leave_out(&mut self, knob: &dyn Knob, why: &str) {
        self.left_out.push(LeftOut { name: knob.name().to_owned(), why: why.to_owned() });
    }
}
