//! The plan itself.

use std::ffi::OsString;
use std::path::PathBuf;

use hasten_probe::{Cpu, Program};
use serde::Serialize;

use crate::accelerator::{ACCELERATORS, Accelerator, Carrier, node};
use crate::config::Config;
use crate::devices::{self, Outlook};
use crate::gc_advice::Setting;
use crate::process::{self, Settings};
use crate::surroundings::Surroundings;
use crate::warning::{self, Warning};
use crate::{library, node_options, preload};

/// What hasten would do to one process.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub accelerators: Vec<Verdict>,
    /// Libraries to preload, in order.
    pub preload: Vec<PathBuf>,
    /// The module that Node.js loads first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_plugin: Option<PathBuf>,
    /// The options from the advice of `hasten gc`, as they apply here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gc_advice: Vec<AdvisedOption>,
    /// Settings besides accelerators.
    pub settings: Settings,
    /// Variables to set, `LD_PRELOAD` and `NODE_OPTIONS` included; `None` removes a variable.
    #[serde(skip)]
    pub environment: Vec<(&'static str, Option<OsString>)>,
    /// Warnings about requests without effect.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// The outlook for each device engine, once [`Plan::look_at_devices`] has been called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outlooks: Vec<Outlook>,
}

/// The answer for one accelerator.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub name: &'static str,
    /// What the accelerator does, in one line.
    pub summary: &'static str,
    pub decision: Decision,
    /// How sure that is, for accelerators whose benefit varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    pub reasons: Vec<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
    /// Where to see its effect.
    #[serde(skip)]
    pub follow_up: String,
    /// Whether the user of this program expects to be told when it is left out.
    #[serde(skip)]
    pub concerns: bool,
}

/// A Node.js option requested by advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdvisedOption {
    #[serde(flatten)]
    pub setting: Setting,
    /// Why it is not set; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It will work on this program.
    Apply,
    /// It is loaded but idle until this program, or one of its children, uses what it accelerates.
    Standby,
    /// It is left out.
    Skip,
}

/// The evidence behind a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// This very program is run by hasten's tests and by a public test suite.
    Proven,
    /// The program has the prerequisites; its behaviour is checked while it runs, before anything is changed.
    Expected,
}

impl Proof {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Expected => "expected",
        }
    }
}

/// One fact, and which way it points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub side: Side,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The user who starts the program can do nothing about it: shown only on request.
    #[serde(skip)]
    pub is_aside: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    For,
    /// Not against it, but it will be idle for now.
    Idle,
    Against,
}

impl Plan {
    /// The plan for one program.
    pub fn new(cpu: &Cpu, program: &Program, config: &Config, surroundings: &Surroundings) -> Self {
        let regards = |accelerator: &&&dyn Accelerator| {
            accelerator.regards(program) || config.asks_for(accelerator.name())
        };
        let accelerators: Vec<_> = ACCELERATORS
            .iter()
            .filter(regards)
            .map(|accelerator| Verdict::of(*accelerator, cpu, Some(program), config, surroundings))
            .collect();
        let own = process::settle(program, config, surroundings);
        let preload = own.preload.iter().cloned().chain(carried(&accelerators, Carrier::LdPreload)).collect();
        let node_plugin = carried(&accelerators, Carrier::NodeOptions).next();
        let mut plan = Self {
            preload,
            node_plugin,
            gc_advice: gc_advice(program, config, surroundings),
            settings: own,
            accelerators,
            environment: Vec::new(),
            warnings: Vec::new(),
            outlooks: Vec::new(),
        };
        plan.environment = plan.variables(config, surroundings);
        plan.warnings = warning::warnings(&plan, config, surroundings);
        plan
    }

    /// The variables that carry the accelerators into the process and configure them there.
    fn variables(
        &self,
        config: &Config,
        surroundings: &Surroundings,
    ) -> Vec<(&'static str, Option<OsString>)> {
        let (libraries, chosen) = self.named();
        let ld_preload = preload::change(surroundings.ld_preload.as_deref(), &libraries);
        let chosen = (chosen != surroundings.chosen).then_some((preload::CHOSEN, chosen));
        let plugin = self.node_plugin.as_deref();
        let node_options =
            node_options::change(surroundings.node_options.as_deref(), plugin, &self.node_options());
        let settings = loaded(&self.accelerators)
            .flat_map(|(accelerator, _)| accelerator.environment(config, surroundings));
        // Only preloaded libraries use devices.
        let devices =
            if self.preload.is_empty() { Vec::new() } else { devices::environment(config, surroundings) };
        let settings = settings.chain(devices).map(|(name, value)| (name, Some(value)));
        ld_preload.into_iter().chain(chosen).chain(node_options).chain(settings).collect()
    }

    /// What `LD_PRELOAD` names: the libraries, or the shim in their place; and what the shim is told to load.
    fn named(&self) -> (Vec<PathBuf>, Option<OsString>) {
        let theirs = loaded(&self.accelerators)
            .filter(|(accelerator, _)| accelerator.carrier() == Carrier::LdPreload)
            .filter_map(|(accelerator, verdict)| Some((accelerator.name(), verdict.library.clone()?)));
        match preload::through_shim(&theirs.collect::<Vec<_>>()) {
            Some((shim, names)) => {
                (self.settings.preload.iter().cloned().chain([shim]).collect(), Some(names))
            }
            None => (self.preload.clone(), None),
        }
    }

    /// The options for `NODE_OPTIONS`: advice that nothing speaks against, and configured options.
    fn node_options(&self) -> Vec<String> {
        let advised = self.gc_advice.iter().filter(|advised| advised.left_out.is_none());
        let advised = advised.map(|advised| &advised.setting.option);
        advised.chain(&self.settings.node_options).cloned().collect()
    }

    /// The answer for one accelerator.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.accelerators.iter().find(|verdict| verdict.name == name)
    }

    /// Whether any accelerator is loaded, or anything else is set.
    pub fn applies(&self) -> bool {
        self.accelerators.iter().any(Verdict::is_loaded) || self.settings.applies()
    }

    /// Whether it is of any use, as far as can be told: a plugin that waits for something this program is not known
    /// to start is not.
    pub fn promises(&self) -> bool {
        let promises = |verdict: &Verdict| match verdict.decision {
            Decision::Apply => true,
            Decision::Standby => verdict.concerns,
            Decision::Skip => false,
        };
        self.accelerators.iter().any(promises) || self.settings.applies()
    }
}

/// The accelerators that are loaded.
fn loaded(verdicts: &[Verdict]) -> impl Iterator<Item = (&&dyn Accelerator, &Verdict)> {
    verdicts.iter().filter(|verdict| verdict.is_loaded()).filter_map(|verdict| {
        let accelerator = ACCELERATORS.iter().find(|accelerator| accelerator.name() == verdict.name)?;
        Some((accelerator, verdict))
    })
}

/// Their libraries, or their plugin.
fn carried(verdicts: &[Verdict], carrier: Carrier) -> impl Iterator<Item = PathBuf> {
    let theirs = loaded(verdicts).filter(move |(accelerator, _)| accelerator.carrier() == carrier);
    theirs.filter_map(|(_, verdict)| verdict.library.clone())
}

/// Each advised option, unless the user has decided it already, or nothing may be changed.
fn gc_advice(program: &Program, config: &Config, surroundings: &Surroundings) -> Vec<AdvisedOption> {
    let Some(advice) = &config.gc_advice else { return Vec::new() };
    let obstacle = surroundings.kill_switch(node::NAME).or_else(|| {
        let heeds = node::heeds(program);
        (heeds.side == Side::Against).then_some(heeds)
    });
    let advised = |setting: &Setting| {
        let left_out = obstacle.as_ref().map(|reason| reason.text.clone());
        AdvisedOption { setting: setting.clone(), left_out: left_out.or_else(|| surroundings.sets(setting)) }
    };
    advice.settings.iter().map(advised).collect()
}

/// The host's own verdict on every accelerator, before any program is known.
pub fn host_verdicts(cpu: &Cpu, config: &Config, surroundings: &Surroundings) -> Vec<Verdict> {
    ACCELERATORS
        .iter()
        .filter(|accelerator| !accelerator.needs_asking() || config.asks_for(accelerator.name()))
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
        let host = accelerator.judge_host(cpu, config, surroundings);
        let concerns = program.is_none_or(|program| accelerator.concerns(program));
        let proof = program.and_then(|program| accelerator.proof(program));
        let around =
            program.and_then(|program| accelerator.judge_surroundings(program, config, surroundings));
        let named = program;
        let program = match program {
            Some(program) => accelerator.judge_program(program),
            None => accelerator.judge_libraries(surroundings).into_iter().collect(),
        };
        let (library, found) = match library::find(accelerator, named, surroundings) {
            Ok(path) => {
                let what = match accelerator.carrier() {
                    Carrier::LdPreload => "library",
                    Carrier::NodeOptions => "plugin",
                };
                let aside = library::remark(&path, surroundings);
                let reason = Reason::favour(format!("the {what} is {}{aside}", path.display()));
                (Some(path), reason)
            }
            Err(reason) => (None, reason),
        };
        let reasons: Vec<_> =
            [choice].into_iter().chain(host).chain(program).chain(around).chain([found]).collect();
        let decision = Decision::from_reasons(&reasons);
        let concerns = config.asks_for(name) || concerns && !reasons.iter().any(|reason| reason.is_aside);
        let proof = proof.filter(|_| decision == Decision::Apply);
        let follow_up = accelerator.follow_up(config, surroundings);
        Self { name, summary: accelerator.summary(), decision, proof, reasons, library, follow_up, concerns }
    }

    pub fn is_loaded(&self) -> bool {
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
        Self::new(Side::For, text)
    }

    pub fn idle(text: impl Into<String>) -> Self {
        Self::new(Side::Idle, text)
    }

    pub fn against(text: impl Into<String>) -> Self {
        Self::new(Side::Against, text)
    }

    fn new(side: Side, text: impl Into<String>) -> Self {
        Self { side, text: text.into(), fix: None, is_aside: false }
    }

    pub(crate) fn aside(self) -> Self {
        Self { is_aside: true, ..self }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
