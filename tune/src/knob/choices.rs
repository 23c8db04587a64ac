//! The knobs that apply to one service, translated for the search and back.

use serde::Serialize;

use super::facts::is_useful;
use super::{Custom, Facts, Knob, Value, registry};
use crate::service::Launch;
use crate::space::{Candidate, Dimension, Space};

#[derive(Debug)]
pub struct Choices {
    pub knobs: Vec<Choice>,
    /// Those that do not apply, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Accelerators that `hasten run` loads into this program by default.
    pub by_default: Vec<&'static str>,
}

#[derive(Debug)]
pub struct Choice {
    pub knob: Box<dyn Knob>,
    /// The first is the value without the knob.
    pub levels: Vec<Value>,
    /// Whether `hasten check`, or the user, expects a benefit.
    pub promising: bool,
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
        let known = registry()
            .iter()
            .map(|knob| (Box::new(*knob) as Box<dyn Knob>, facts.promising.contains(&knob.name())));
        let own = custom.into_iter().map(|knob| (Box::new(knob) as Box<dyn Knob>, true));
        let loaded = facts.accelerators.iter().filter(|verdict| is_useful(verdict));
        let by_default = loaded.map(|verdict| verdict.name).collect();
        let mut choices = Self { knobs: Vec::new(), left_out: Vec::new(), by_default };
        for (knob, promising) in known.chain(own) {
            match knob.levels(facts) {
                Ok(levels) if levels.len() > 1 => {
                    choices.knobs.push(Choice { knob, levels, promising });
                }
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
        Space { dimensions: self.knobs.iter().map(dimension).collect(), order: self.order() }
    }

    /// The order in which settings are tried: promising knobs before others, and each knob's most promising level
    /// first.
    fn order(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<(usize, bool, usize, usize)> = Vec::new();
        for (at, Choice { knob, levels, promising }) in self.knobs.iter().enumerate() {
            for (rank, level) in knob.favourites(levels.len()).into_iter().enumerate() {
                order.push((rank + usize::from(!promising), !promising, at, level));
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, _, knob, level)| (knob, level)).collect()
    }

    /// The service with a candidate's settings.
    #[must_use]
    pub fn launch(&self, candidate: &Candidate, stock: &Launch) -> Launch {
        self.explained(candidate, stock, |_| None)
    }

    /// The same, with `effect`'s text about a knob as the comment of its settings.
    #[must_use]
    pub fn explained(
        &self,
        candidate: &Candidate,
        stock: &Launch,
        effect: impl Fn(usize) -> Option<String>,
    ) -> Launch {
        let mut launch = stock.clone();
        for (at, level) in candidate.set() {
            let Choice { knob, levels, .. } = &self.knobs[at];
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
