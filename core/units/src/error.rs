//! What can go wrong between us and what starts the services.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum UnitError {
    #[error("neither systemd nor OpenRC runs here")]
    NoManager,
    #[error("there is no service {name}")]
    NotFound { name: String },
    #[error("{name} is not a service")]
    NotAService { name: String },
    #[error("{name} is masked")]
    Masked { name: String },
    #[error("cannot run {}: {why}", program.display())]
    Unavailable { program: PathBuf, why: io::Error },
    #[error("`{command}` failed: {said}")]
    Refused { command: String, said: String },
    #[error("cannot write {}: {why}", path.display())]
    Write { path: PathBuf, why: io::Error },
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: io::Error },
    #[error("{} was not written by hasten, or was changed since", path.display())]
    Foreign { path: PathBuf },
}

impl UnitError {
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NoManager => {
                "start the program with `hasten run -- PROGRAM`, or set LD_PRELOAD where it is started: see docs/install.md"
                    .into()
            }
            Self::NotFound { .. } => "see the names with `systemctl list-units --type=service --all`, or `rc-status --servicelist`".into(),
            Self::NotAService { .. } => "name the service itself: NAME.service".into(),
            Self::Masked { name } => format!("unmask it first: `systemctl unmask {name}`"),
            Self::Unavailable { .. } => "install it, or put it on the PATH".into(),
            Self::Refused { said, .. } if is_denial(said) => "run it with sudo".into(),
            Self::Refused { .. } => "see `systemctl status` and `journalctl -u`, or `rc-status`".into(),
            Self::Write { why, .. } | Self::Read { why, .. }
                if why.kind() == io::ErrorKind::PermissionDenied =>
            {
                "run it with sudo".into()
            }
            Self::Write { .. } | Self::Read { .. } => "check the file system that it is on".into(),
            Self::Foreign { path } => format!("move or delete it: `sudo rm {}`", path.display()),
        }
    }
}

/// What systemctl says to those who may not; without a message bus, that it cannot be reached.
fn is_denial(said: &str) -> bool {
    let denials =
        ["Access denied", "Permission denied", "authentication required", "Failed to connect to bus"];
    denials.iter().any(|denial| said.contains(denial))
}
