//! `hasten enable --recheck`: an upgrade may have brought a program or an OpenSSL that hasten leaves alone.

use std::process::ExitCode;

use hasten_units::{Manager, UnitError};

use crate::cmd::services::Place;
use crate::failure::Failure;
use crate::render::say;

pub(super) fn run(manager: &dyn Manager, place: &Place<'_>, dry_run: bool) -> Result<ExitCode, Failure> {
    let mut changed = false;
    for name in manager.enabled() {
        let Some(why) = objection(manager, place, &name)? else { continue };
        let line = format!("{name} is no longer accelerated: {why}");
        say(format!("hasten: {line}"));
        if !dry_run {
            manager.drop_in(&name).remove()?;
            manager.note(&name, &line);
            changed = true;
        }
    }
    if changed {
        manager.reload()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a service is to start as it is from now on. One that is gone is not started at all, and may come back.
fn objection(manager: &dyn Manager, place: &Place<'_>, name: &str) -> Result<Option<String>, Failure> {
    match manager.unit(name) {
        Ok(unit) => Ok(place.look_at(unit).outcome.err().map(|refusal| refusal.what)),
        Err(UnitError::NotFound { .. } | UnitError::Masked { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
