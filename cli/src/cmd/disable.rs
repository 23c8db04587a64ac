//! `hasten disable`: takes back what `hasten enable` has done.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hasten_units::{Activity, Found, Manager, Outcome, UnitError};

use super::services::restarts::Restarts;
use crate::failure::Failure;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  sudo hasten disable nginx               remove the drop-in, and ask whether to restart
  sudo hasten disable --all --no-restart  the same for every service; each goes on accelerated until its restart

To stop accelerating at once, without a restart: `sudo hasten engine disable all`.
";

/// Take back what `hasten enable` has done
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DisableArgs {
    /// Services, such as nginx
    #[arg(value_name = "SERVICE", required_unless_present = "all")]
    services: Vec<String>,

    /// Every service that was enabled
    #[arg(long, conflicts_with = "services")]
    all: bool,

    #[command(flatten)]
    restarts: Restarts,
}

const SETTLED: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &DisableArgs) -> Result<ExitCode, Failure> {
    let manager = hasten_units::of_host()?;
    let manager = &*manager;
    let names = if args.all { manager.enabled() } else { args.services.clone() };
    if names.is_empty() {
        say("hasten: no service was enabled");
    }
    let mut failed = false;
    for name in names {
        if let Err(failure) = args.disable(manager, &name) {
            failure.tell();
            failed = true;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl DisableArgs {
    fn disable(&self, manager: &dyn Manager, name: &str) -> Result<(), Failure> {
        let unit = match manager.unit(name) {
            Ok(unit) => unit,
            // The unit is gone with its package; the drop-in is not.
            Err(UnitError::NotFound { name } | UnitError::Masked { name }) if remove(manager, &name)? => {
                say(format!("{name} is no service any more; the drop-in is removed"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if !remove(manager, &unit.name)? {
            return Err(Failure::new(
                format!("{} was not enabled by `hasten enable`", unit.name),
                format!("see what it loads with `{}`", manager.phrases().show(unit.short_name())),
            ));
        }
        say(format!("{} is removed", manager.drop_in(&unit.name).path().display()));
        if unit.activity != Activity::Running {
            return Ok(());
        }
        if !self.restarts.is_wanted(&unit.name) {
            let name = unit.short_name();
            say(format!("{name} is accelerated until its restart: `{}`", manager.phrases().restart(name)));
            return Ok(());
        }
        restart(manager, &unit.name)
    }
}

/// Removes the drop-in of a unit; false if there is none of ours.
fn remove(manager: &dyn Manager, unit: &str) -> Result<bool, Failure> {
    let drop_in = manager.drop_in(unit);
    if drop_in.found()? != Found::Ours {
        return Ok(false);
    }
    drop_in.remove()?;
    manager.reload()?;
    Ok(true)
}

fn restart(manager: &dyn Manager, name: &str) -> Result<(), Failure> {
    match manager.restart_and_watch(name, SETTLED)? {
        Outcome::Up(_) => {
            say(format!("{name} is up, without hasten"));
            Ok(())
        }
        Outcome::Down { why, .. } => Err(Failure::new(
            format!("{name} does not stay up without hasten: {why}"),
            format!("see `{}`", manager.phrases().log(name)),
        )),
    }
}
