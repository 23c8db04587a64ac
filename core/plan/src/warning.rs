//! What the user should know before the command runs, although none of it prevents the command from running.

use std::fmt;

use crate::config::Config;
use crate::plan::{Decision, Plan, Verdict};
use crate::surroundings::{Surroundings, misspelt_variable};
use crate::{accelerator, library, nearest};

/// A request without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// `HASTEN_DISABLE` names something that is not an accelerator.
    NoAccelerator { name: String, meant: Option<&'static str> },
    /// Nothing reads this variable. It is not rejected: it may be meant for another program.
    MisspeltVariable { name: String, meant: &'static str },
    /// A user who names a directory means the libraries in it; the sentence says which are not there.
    LibrariesElsewhere(String),
    /// A user who asks for verification relies on it.
    NothingToVerify,
    /// All the options that the garbage collection advice asks for are left out.
    NoAdviceSet,
}

/// Every warning, in the order of printing: misspellings first, then requests without effect.
pub(crate) fn warnings(plan: &Plan, config: &Config, surroundings: &Surroundings) -> Vec<Warning> {
    unknown_accelerators(surroundings)
        .chain(misspelt_variables(surroundings))
        .chain(libraries_elsewhere(plan, surroundings))
        .chain(nothing_to_verify(plan, config))
        .chain(no_advice_set(plan))
        .collect()
}

fn unknown_accelerators(surroundings: &Surroundings) -> impl Iterator<Item = Warning> {
    let warning = |name: &str| {
        let meant = nearest(&name.to_ascii_lowercase(), accelerator::names().chain(["all"]));
        Warning::NoAccelerator { name: name.to_owned(), meant }
    };
    surroundings.unknown_disabled().into_iter().map(warning)
}

fn misspelt_variables(surroundings: &Surroundings) -> impl Iterator<Item = Warning> {
    surroundings.names.iter().filter_map(|name| {
        let name = name.to_string_lossy();
        let meant = misspelt_variable(&name)?;
        Some(Warning::MisspeltVariable { name: name.into_owned(), meant })
    })
}

fn libraries_elsewhere(plan: &Plan, surroundings: &Surroundings) -> Option<Warning> {
    let loaded = plan.accelerators.iter().filter(|verdict| verdict.is_loaded());
    let libraries = loaded.filter_map(|verdict| verdict.library.as_deref());
    library::elsewhere(libraries, surroundings).map(Warning::LibrariesElsewhere)
}

fn nothing_to_verify(plan: &Plan, config: &Config) -> Option<Warning> {
    let is_off = |verdict: &Verdict| verdict.decision == Decision::Skip;
    let is_asked_for = config.gzip.verify_always;
    (is_asked_for && plan.verdict("gzip").is_some_and(is_off)).then_some(Warning::NothingToVerify)
}

fn no_advice_set(plan: &Plan) -> Option<Warning> {
    let advice = &plan.gc_advice;
    let is_in_vain = !advice.is_empty() && advice.iter().all(|advised| advised.left_out.is_some());
    is_in_vain.then_some(Warning::NoAdviceSet)
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAccelerator { name, meant } => {
                let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                write!(f, "HASTEN_DISABLE names no accelerator `{name}`{hint}")
            }
            Self::MisspeltVariable { name, meant } => {
                write!(f, "nothing reads {name}; did you mean {meant}?")
            }
            Self::LibrariesElsewhere(sentence) => f.write_str(sentence),
            Self::NothingToVerify => f.write_str("--verify has no effect: gzip is off"),
            Self::NoAdviceSet => f.write_str("the GC advice has no effect: nothing of it is set"),
        }
    }
}
