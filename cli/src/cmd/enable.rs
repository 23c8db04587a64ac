//! `hasten enable`: accelerates services by a drop-in for their units or scripts.

mod recheck;
mod trial;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hasten_plan::{Decision, Side};
use hasten_units::{Activity, DropIn, Found, Manager, Outcome, Unit};

use self::trial::Verdict;
use super::services::restarts::Restarts;
use super::services::saved::Saved;
use super::services::{Offer, Place, Service, State};
use crate::choice::Choice;
use crate::failure::Failure;
use crate::output::print;
use crate::render::{self, say};

const EXAMPLES: &str = "\
Examples:
  sudo hasten enable nginx                 show the drop-in, write it, and ask whether to restart
  sudo hasten enable --restart nginx       restart without asking; taken back if nginx does not stay up
  hasten enable --all --dry-run            what could be accelerated on this host
  sudo hasten enable --only tls haproxy    TLS alone
  sudo hasten enable --recheck             after an upgrade; the packages do it by themselves

`hasten disable` undoes it, `hasten status` lists all services.
";

/// Accelerate services, by a drop-in for their units
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, long_about = "\
Writes a drop-in that sets environment variables, above all LD_PRELOAD, for a service of systemd or OpenRC. The unit's own command, user and \
sandbox stay as they are. A service that would gain nothing is refused, with the reason. A copy of the service, which writes to memory and has a network \
of its own, shows first whether it answers as before. The drop-in takes effect when the \
service starts again: the command offers to restart it, watches it for some seconds, and takes the drop-in back if it does not \
stay up. After a restart it says what the first minute has saved, by the counters of the service.")]
pub(crate) struct EnableArgs {
    /// Services, such as nginx
    #[arg(value_name = "SERVICE", required_unless_present_any = ["all", "recheck"])]
    services: Vec<String>,

    /// Every running service that would gain
    #[arg(long, conflicts_with = "services")]
    all: bool,

    /// Show what would be written, and change nothing
    #[arg(long, short = 'n', conflicts_with = "restart")]
    dry_run: bool,

    #[command(flatten)]
    restarts: Restarts,

    /// Do not try it with a copy of the service first
    #[arg(long)]
    no_trial: bool,

    /// How long to watch a service after its restart before its savings are reported; 0 for not at all
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=3600))]
    watch: u64,

    /// Look again at the services that are enabled, as after an upgrade, and take the drop-in from those that can no
    /// longer be accelerated
    #[arg(long, conflicts_with_all = ["services", "all", "restart", "no_restart"])]
    recheck: bool,

    #[command(flatten)]
    choice: Choice,
}

/// A service that stays up for this long has started.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &EnableArgs) -> Result<ExitCode, Failure> {
    let manager = hasten_units::of_host()?;
    let manager = &*manager;
    let place = Place::new(args.choice.config()?, manager);
    place.validate()?;
    if args.recheck {
        return recheck::run(manager, &place, args.dry_run);
    }
    let services = args.services(manager, &place)?;
    let mut failed = false;
    for service in services {
        if let Err(failure) = (Enabling { args, manager, service: &service }).run() {
            failure.tell();
            failed = true;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl EnableArgs {
    fn services(&self, manager: &dyn Manager, place: &Place<'_>) -> Result<Vec<Service>, Failure> {
        if !self.all {
            let units = self.services.iter().map(|name| manager.unit(name));
            let units: Vec<Unit> = units.collect::<Result<_, _>>()?;
            return Ok(units.into_iter().map(|unit| place.look_at(unit)).collect());
        }
        let running = manager.services()?.into_iter().filter(|unit| unit.activity == Activity::Running);
        let mut services: Vec<Service> = running.map(|unit| place.look_at(unit)).collect();
        services.retain(|service| matches!(service.state(manager), Ok(State::Possible)));
        if services.is_empty() {
            say(
                "hasten: no running service would gain that is not accelerated already; see `hasten status --all`",
            );
        }
        Ok(services)
    }
}

/// One service on its way.
struct Enabling<'a> {
    args: &'a EnableArgs,
    manager: &'a dyn Manager,
    service: &'a Service,
}

impl Enabling<'_> {
    fn run(&self) -> Result<(), Failure> {
        let unit = &self.service.unit;
        let offer = self.service.outcome.as_ref().map_err(|refusal| {
            Failure::new(
                format!("{} cannot be accelerated: {}", unit.name, refusal.what),
                refusal.fix.clone(),
            )
        })?;
        if self.service.state(self.manager)? == State::ByHand {
            let what = format!("{} loads hasten already, by its unit or another drop-in", unit.name);
            return Err(Failure::new(
                what,
                format!("see `{}`", self.manager.phrases().show(unit.short_name())),
            ));
        }
        let drop_in = self.manager.drop_in(&unit.name);
        let text = drop_in.text(&offer.lasting.variables);
        self.show(offer, &drop_in, &text)?;
        if self.args.dry_run {
            return Ok(());
        }
        self.try_out(offer, &drop_in)?;
        let is_new = drop_in.write(&text)?;
        self.manager.reload()?;
        self.take_effect(&drop_in, is_new)
    }

    /// The plan, and the file.
    fn show(&self, offer: &Offer, drop_in: &DropIn, text: &str) -> Result<(), Failure> {
        say(format!("{} runs {}", self.service.unit.name, offer.program.executable.display()));
        let expected = offer.plan.accelerators.iter().filter(|verdict| verdict.concerns);
        for verdict in expected {
            say(format!("  {}", render::in_a_line(verdict)));
            if verdict.decision == Decision::Skip {
                let fixes = verdict.reasons(Side::Against).filter_map(|reason| reason.fix.as_ref());
                fixes.take(1).for_each(|fix| say(format!("    fix: {fix}")));
            }
        }
        for setting in &offer.lasting.left_out {
            say(format!("  not in a drop-in: {setting}"));
        }
        say(format!("{}:", drop_in.path().display()));
        print(text).map_err(Failure::output)
    }

    /// What a copy shows; a service that cannot be copied is only watched after its restart.
    fn try_out(&self, offer: &Offer, drop_in: &DropIn) -> Result<(), Failure> {
        let unit = &self.service.unit;
        let is_enabled = drop_in.found()? == Found::Ours;
        if self.args.no_trial || is_enabled || unit.activity != Activity::Running {
            return Ok(());
        }
        say(format!("Trying it with a copy of {} that has a network of its own", unit.name));
        match trial::run(self.manager, unit, &offer.lasting.variables) {
            Verdict::Same(ports) => {
                say(format!("  it does the same with hasten as without: {}", ports.join(", ")));
            }
            Verdict::Unknown(why) => say(format!("  not tried: {why}")),
            Verdict::NoStart(why) => {
                let name = unit.short_name();
                return Err(Failure::new(
                    format!(
                        "{} was left as it is, because a copy of it does not start even without hasten: {why}",
                        unit.name
                    ),
                    format!(
                        "correct what a restart would stumble over, or use `--no-trial` if the copy lacks only the network: \
                         `sudo hasten enable --no-trial {name}`"
                    ),
                ));
            }
            Verdict::Different(what) => {
                return Err(Failure::new(
                    format!("{} was left as it is, because a copy of it {what}", unit.name),
                    "please report this; `--no-trial` goes on without a trial",
                ));
            }
        }
        Ok(())
    }

    fn take_effect(&self, drop_in: &DropIn, is_new: bool) -> Result<(), Failure> {
        let unit = &self.service.unit;
        if unit.activity != Activity::Running {
            say(format!(
                "{} is {}: the drop-in takes effect when it starts",
                unit.name,
                unit.activity.as_str()
            ));
            return Ok(());
        }
        if !is_new && unit.has_loaded() == Some(true) {
            say(format!("{} is accelerated already", unit.name));
            return Ok(());
        }
        if !self.args.restarts.is_wanted(&unit.name) {
            say(format!(
                "the drop-in of {} takes effect with its restart: `{}`",
                unit.name,
                self.manager.phrases().restart(unit.short_name())
            ));
            return Ok(());
        }
        self.restart(drop_in)
    }

    fn restart(&self, drop_in: &DropIn) -> Result<(), Failure> {
        let name = &self.service.unit.name;
        say(format!("Restarting {name}, and watching it for {} s", SETTLED.as_secs()));
        match self.manager.restart_and_watch(name, SETTLED)? {
            Outcome::Up(unit) => self.is_up(&unit),
            Outcome::Down { why, last_words } => Err(self.take_back(drop_in, &why, &last_words)),
        }
    }

    /// It is up, which does not mean that it is accelerated: a security module may have the loader ignore the variable.
    fn is_up(&self, unit: &Unit) -> Result<(), Failure> {
        let name = &unit.name;
        if unit.has_loaded() != Some(true) {
            return Err(Failure::new(
                format!("{name} is up, but has not loaded hasten"),
                format!(
                    "see `{}`; with SELinux, the policy may make the loader ignore LD_PRELOAD",
                    self.manager.phrases().log(name)
                ),
            ));
        }
        say(match self.service.accelerators().as_str() {
            "" => format!("{name} is up, and hasten waits there for something to accelerate"),
            _ => format!("{name} is up and accelerated"),
        });
        if self.args.watch > 0 {
            self.report(name)?;
        }
        Ok(())
    }

    /// What the first minute has saved.
    fn report(&self, name: &str) -> Result<(), Failure> {
        let (start, span) = (Instant::now(), Duration::from_secs(self.args.watch));
        say(format!("What it saves in {} s (Ctrl-C leaves it as it is):", span.as_secs()));
        thread::sleep(span);
        let unit = self.manager.unit(name)?;
        let seconds = start.elapsed().as_secs();
        let line = match Saved::of(&unit) {
            Some(saved) if saved.handshakes + saved.streams > 0 => format!(
                "in {seconds} s: {} handshakes, {} streams; estimated CPU saved {}",
                saved.handshakes,
                saved.streams,
                saved.in_short()
            ),
            _ => format!(
                "in {seconds} s nothing came that could be accelerated; look again with `hasten status`"
            ),
        };
        say(line);
        Ok(())
    }

    fn take_back(&self, drop_in: &DropIn, why: &str, last_words: &[String]) -> Failure {
        let name = &self.service.unit.name;
        for line in last_words {
            say(format!("  {name}: {line}"));
        }
        let what = format!("{name} did not stay up with hasten: {why}");
        let phrases = self.manager.phrases();
        match self.without(drop_in) {
            Ok(Outcome::Up(_)) => Failure::new(
                format!("{what}. The drop-in is removed, and it runs as before"),
                format!("please report this, with `{}` and `{}`", phrases.log(name), phrases.show(name)),
            ),
            Ok(Outcome::Down { why, .. }) => Failure::new(
                format!("{what}. Without the drop-in, which is removed, it does not stay up either: {why}"),
                format!("see `{}`: hasten is not the cause", phrases.log(name)),
            ),
            Err(failure) => failure,
        }
    }

    fn without(&self, drop_in: &DropIn) -> Result<Outcome, Failure> {
        drop_in.remove()?;
        self.manager.reload()?;
        Ok(self.manager.restart_and_watch(&self.service.unit.name, SETTLED)?)
    }
}
