//! The plan itself.

use std::ffi::OsString;
use std::path::PathBuf;

use hasten_probe::{Cpu, Program};
use serde::Serialize;

use crate::accelerator::{ACCELERATORS, Context};
use crate::config::Config;
use crate::preload;
use crate::surroundings::Surroundings;

/// What hasten would do to one process.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub accelerators: Vec<Verdict>,
    /// Libraries to preload, in order.
    pub preload: Vec<PathBuf>,
    /// Variables to set, `LD_PRELOAD` included; `None` removes a variable.
    #[serde(skip)]
    pub environment: Vec<(&'static str, Option<OsString>)>,
}

/// The answer for one accelerator.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub name: &'static str,
    pub decision: Decision,
    pub reasons: Vec<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It will work on this program.
    Apply,
    /// It is loaded but idle until this program, or one that it starts, uses what it accelerates.
    Standby,
    /// It is left out.
    Skip,
}

/// One fact, and which way it points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub side: Side,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    For,
    /// Not against, but it will be idle for now.
    Idle,
    Against,
}

impl Plan {
    pub fn new(cpu: &Cpu, program: &Program, config: &Config, surroundings: &Surroundings) -> Self {
        let context = Context { cpu, program, config, surroundings };
        let accelerators: Vec<_> =
            ACCELERATORS.iter().map(|accelerator| Verdict::of(*accelerator, &context)).collect();
        let active = || ACCELERATORS.iter().zip(&accelerators).filter(|(_, verdict)| verdict.is_loaded());
        let preload: Vec<_> = active().filter_map(|(_, verdict)| verdict.library.clone()).collect();
        let mut environment: Vec<_> =
            active().flat_map(|(accelerator, _)| accelerator.environment(&context)).collect();
        let value = preload::compose(surroundings.ld_preload.as_deref(), &preload);
        if Some(&value) != surroundings.ld_preload.as_ref()
            && !(value.is_empty() && surroundings.ld_preload.is_none())
        {
            environment.insert(0, ("LD_PRELOAD", Some(value).filter(|value| !value.is_empty())));
        }
        Self { accelerators, preload, environment }
    }

    /// Whether any accelerator is loaded at all.
    pub fn applies(&self) -> bool {
        self.accelerators.iter().any(Verdict::is_loaded)
    }
}

impl Verdict {
    fn of(accelerator: &dyn crate::accelerator::Accelerator, context: &Context<'_>) -> Self {
        let mut reasons = vec![context.choice(accelerator.name())];
        reasons.extend(accelerator.judge(context));
        let library = match preload::find(accelerator.library(), context.surroundings) {
            Ok(path) => {
                reasons.push(Reason::favour(format!("the library is {}", path.display())));
                Some(path)
            }
            Err(reason) => {
                reasons.push(reason);
                None
            }
        };
        let decision = Decision::from_reasons(&reasons);
        Self { name: accelerator.name(), decision, reasons, library }
    }

    fn is_loaded(&self) -> bool {
        self.decision != Decision::Skip
    }

    /// The reasons on one side.
    pub fn reasons(&self, side: Side) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.side == side)
    }
}

impl Decision {
    /// One reason against is enough.
    fn from_reasons(reasons: &[Reason]) -> Self {
        let any = |side| reasons.iter().any(|reason| reason.side == side);
        match (any(Side::Against), any(Side::Idle)) {
            (true, _) => Self::Skip,
            (false, true) => Self::Standby,
            (false, false) => Self::Apply,
        }
    }
}

impl Reason {
    pub fn favour(text: impl Into<String>) -> Self {
        Self { side: Side::For, text: text.into(), fix: None }
    }

    pub fn idle(text: impl Into<String>) -> Self {
        Self { side: Side::Idle, text: text.into(), fix: None }
    }

    pub fn against(text: impl Into<String>) -> Self {
        Self { side: Side::Against, text: text.into(), fix: None }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
