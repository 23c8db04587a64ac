//! What `enable`, `disable` and `status` share: a service, and what hasten could do or does for it.

pub(super) mod restarts;
pub(super) mod saved;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use hasten_plan::{Config, Decision, Lasting, Plan, Reason, Side, Surroundings, Verdict};
use hasten_probe::{Cpu, Environment, Probe, Program};
use hasten_units::{Activity, Found, Manager, Unit, UnitError};

use crate::failure::Failure;

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

/// What plans for services depend on besides the service.
pub(super) struct Place<'a> {
    cpu: Cpu,
    config: Config,
    library_directory: Option<PathBuf>,
    manager: &'a dyn Manager,
}

/// A service, and what would be done for it.
pub(super) struct Service {
    pub(super) unit: Unit,
    pub(super) outcome: Result<Offer, Refusal>,
}

/// What hasten can do for a service.
pub(super) struct Offer {
    pub(super) plan: Plan,
    pub(super) program: Program,
    pub(super) lasting: Lasting,
}

/// Why it can do nothing.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) what: String,
    pub(super) fix: String,
}

/// Whether a service is accelerated, or could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    On,
    /// Enabled; this user may not see whether it was restarted since.
    Enabled,
    /// Enabled, but running since before that.
    AfterRestart,
    /// Enabled, and not running.
    AfterStart,
    /// Accelerated until its restart: the drop-in is gone.
    UntilRestart,
    /// By something else than `hasten enable`.
    ByHand,
    Possible,
    Off,
}

impl State {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Enabled => "enabled",
            Self::AfterRestart => "on after its restart",
            Self::AfterStart => "on when it starts",
            Self::UntilRestart => "on until its restart",
            Self::ByHand => "on, by hand",
            Self::Possible => "off, possible",
            Self::Off => "off",
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn new(config: Config, manager: &'a dyn Manager) -> Self {
        let library_directory = std::env::var_os("HASTEN_LIBDIR").filter(|folder| !folder.is_empty());
        Self {
            cpu: Probe::new().cpu(),
            config,
            library_directory: library_directory.map(PathBuf::from),
            manager,
        }
    }

    pub(super) fn look_at(&self, unit: Unit) -> Service {
        let outcome = self.offer(&unit);
        Service { unit, outcome }
    }

    fn offer(&self, unit: &Unit) -> Result<Offer, Refusal> {
        if unit.is_of_systemd() {
            return Err(Refusal::new("it is a part of systemd", "name another service"));
        }
        let file =
            unit.program().ok_or_else(|| Refusal::new("it starts no program", "name another service"))?;
        let program = Program::inspect(file.as_os_str(), &environment(unit))
            .map_err(|error| Refusal { what: error.to_string(), fix: error.fix() })?;
        let surroundings = self.surroundings(unit);
        let plan = Plan::new(&self.cpu, &program, &self.config, &surroundings);
        if !plan.promises() {
            return Err(Refusal::of(&plan, &program));
        }
        let lasting = plan.lasting(&program, &self.config, &surroundings).map_err(Refusal::from)?;
        match lasting.shim.as_deref().or(plan.node_plugin.as_deref()).and_then(|file| unit.obstacle_to(file))
        {
            Some(obstacle) => Err(Refusal { what: obstacle.what, fix: obstacle.fix }),
            None => Ok(Offer { plan, program, lasting }),
        }
    }

    /// Those of the service, as without us: what the caller's shell says does not reach it.
    fn surroundings(&self, unit: &Unit) -> Surroundings {
        let ours = self.manager.drop_in(&unit.name).names();
        let is_ours =
            |name: &OsString| ours.iter().any(|own| own.starts_with("HASTEN_") && name == own.as_str());
        let mut variables = unit.environment.clone();
        variables.retain(|name, _| !is_ours(name));
        let own = Surroundings::of(variables);
        Surroundings { library_directory: self.library_directory.clone().or(own.library_directory), ..own }
    }

    /// The configuration says what is wanted, which must be possible.
    pub(super) fn validate(&self) -> Result<(), Failure> {
        Ok(Surroundings::current().validate()?)
    }
}

fn environment(unit: &Unit) -> Environment {
    let variable = |name| unit.variable(name).map(OsStr::to_owned);
    Environment { path: variable("PATH"), library_path: variable("LD_LIBRARY_PATH") }
}

impl Service {
    pub(super) fn state(&self, manager: &dyn Manager) -> Result<State, UnitError> {
        let is_enabled = manager.drop_in(&self.unit.name).found()? == Found::Ours;
        Ok(match (is_enabled, self.unit.has_loaded()) {
            (true, Some(true)) => State::On,
            (true, _) if self.unit.activity != Activity::Running => State::AfterStart,
            (true, Some(false)) => State::AfterRestart,
            (true, None) => State::Enabled,
            (false, Some(true)) if !self.unit.names_hasten() => State::UntilRestart,
            (false, _) if self.unit.names_hasten() => State::ByHand,
            (false, _) if !self.accelerators().is_empty() => State::Possible,
            (false, _) => State::Off,
        })
    }

    /// Why nothing is gained, or nothing yet.
    pub(super) fn why_not(&self) -> String {
        match &self.outcome {
            Err(refusal) => refusal.what.clone(),
            Ok(offer) => reasons(&offer.plan, Decision::Standby, Side::Idle).join("; "),
        }
    }

    /// The accelerators that would work, such as `tls, gzip`; empty if none.
    pub(super) fn accelerators(&self) -> String {
        self.outcome.as_ref().map(Offer::accelerators).unwrap_or_default()
    }
}

impl Offer {
    pub(super) fn accelerators(&self) -> String {
        let names = self.plan.accelerators.iter().filter(|verdict| verdict.decision == Decision::Apply);
        names.map(|verdict| verdict.name).collect::<Vec<_>>().join(", ")
    }
}

impl Refusal {
    fn new(what: &str, fix: &str) -> Self {
        Self { what: what.to_owned(), fix: fix.to_owned() }
    }

    /// The reasons of all accelerators that a user of this program would expect.
    fn of(plan: &Plan, program: &Program) -> Self {
        let texts = reasons(plan, Decision::Skip, Side::Against);
        let what = match texts.is_empty() {
            true => format!("{} uses nothing that hasten accelerates", program.name()),
            false => texts.join("; "),
        };
        let fix = expected(plan, Decision::Skip).flat_map(|verdict| verdict.reasons(Side::Against));
        let fix = fix.into_iter().find_map(|reason| reason.fix.clone());
        Self {
            what,
            fix: fix.unwrap_or_else(|| format!("see `hasten check -- {}`", program.executable.display())),
        }
    }
}

fn expected(plan: &Plan, decision: Decision) -> impl Iterator<Item = &Verdict> {
    plan.accelerators.iter().filter(move |verdict| verdict.concerns && verdict.decision == decision)
}

/// Each reason once: the same one often stands against several accelerators.
fn reasons(plan: &Plan, decision: Decision, side: Side) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    for reason in expected(plan, decision).flat_map(|verdict| verdict.reasons(side)) {
        if !texts.contains(&reason.text.as_str()) {
            texts.push(&reason.text);
        }
    }
    texts
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { what: reason.text, fix: reason.fix.unwrap_or_default() }
    }
}
