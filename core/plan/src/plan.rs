//! The plan itself.

use std::ffi::OsString;
use std::path::PathBuf;

use hasten_probe::{Cpu, Program};
use serde::Serialize;

use crate::accelerator::{ACCELERATORS, Accelerator};
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
    /// What the accelerator does, in one line.
    pub summary: &'static str,
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
    /// The plan for one program.
    pub fn new(cpu: &Cpu, program: &Program, config: &Config, surroundings: &Surroundings) -> Self {
        let accelerators: Vec<_> = ACCELERATORS
            .iter()
            .map(|accelerator| Verdict::of(*accelerator, cpu, Some(program), config, surroundings))
            .collect();
        let active = || ACCELERATORS.iter().zip(&accelerators).filter(|(_, verdict)| verdict.is_loaded());
        let preload: Vec<_> = active().filter_map(|(_, verdict)| verdict.library.clone()).collect();
        let settings = active().flat_map(|(accelerator, _)| accelerator.environment(config, surroundings));
        let environment = ld_preload(surroundings, &preload)
            .into_iter()
            .chain(settings.map(|(name, value)| (name, Some(value))))
            .collect();
        Self { accelerators, preload, environment }
    }

    /// Whether any accelerator is loaded at all.
    pub fn applies(&self) -> bool {
        self.accelerators.iter().any(Verdict::is_loaded)
    }
}

/// The change to `LD_PRELOAD`, if any.
fn ld_preload(
    surroundings: &Surroundings,
    libraries: &[PathBuf],
) -> Option<(&'static str, Option<OsString>)> {
    let present = surroundings.ld_preload.as_deref();
    let value = Some(preload::compose(present, libraries)).filter(|value| !value.is_empty());
    (value.as_deref() != present).then_some(("LD_PRELOAD", value))
}

/// What this host alone says about every accelerator, before any program is known.
pub fn host_verdicts(cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Verdict> {
    ACCELERATORS
        .iter()
        .map(|accelerator| Verdict::of(*accelerator, cpu, None, config, surroundings))
        .collect()
}

impl Verdict {
    fn of(
        accelerator: &dyn Accelerator,
        cpu: &Cpu,
        program: Option<&Program>,
        config: &Config,
        surroundings: &Surroundings,
    ) -> Self {
        let name = accelerator.name();
        let choice = surroundings.kill_switch(name).unwrap_or_else(|| config.choice(name));
        let host = accelerator.judge_host(cpu, surroundings);
        let program = program.map(|program| accelerator.judge_program(program)).unwrap_or_default();
        let (library, found) = match preload::find(accelerator.library(), surroundings) {
            Ok(path) => {
                let reason = Reason::favour(format!("the library is {}", path.display()));
                (Some(path), reason)
            }
            Err(reason) => (None, reason),
        };
        let reasons: Vec<_> = [choice].into_iter().chain(host).chain(program).chain([found]).collect();
        let decision = Decision::from_reasons(&reasons);
        Self { name, summary: accelerator.summary(), decision, reasons, library }
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
