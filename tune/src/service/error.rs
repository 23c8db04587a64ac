//! Why a service did not start, or did not stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("{address} is in use already{by}")]
    PortInUse { address: SocketAddr, by: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("{program} ended with {status} before it was ready{log}")]
    Ended { program: String, status: String, log: String },
    #[error("{program} is not ready after {seconds} s: {what}{log}")]
    NotReady { program: String, seconds: u64, what: String, log: String },
    #[error("{program} still runs after SIGKILL: {left} of its processes are left")]
    Immortal { program: String, left: usize },
    #[error("{address} still accepts connections after {program} has ended")]
    PortKept { program: String, address: SocketAddr },
    #[error("cannot write {path}: {source}")]
    System { path: String, source: io::Error },
    #[error("{0}")]
    Readiness(String),
    #[error("stopped")]
    Stopped,
}

impl ServiceError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::PortInUse { .. } => {
                "stop what listens there, or tune a copy of the service on another port (and give its --url)"
                    .into()
            }
            Self::Write { .. } => "name another folder with --out".into(),
            Self::Spawn { .. } => "check the command behind --, which is looked up in PATH".into(),
            Self::Ended { .. } => "start the same command by hand; it has to run without a terminal".into(),
            Self::NotReady { .. } => {
                "say what ready means with --ready 'CMD', or give it longer with --ready-timeout".into()
            }
            Self::Immortal { .. } => "see with ps(1) what keeps it, such as a disk or a debugger".into(),
            Self::PortKept { .. } => "let the command itself end everything that it starts".into(),
            Self::System { .. } => "run as root, or leave the knob out with --without".into(),
            Self::Readiness(_) => "write http://HOST:PORT/PATH".into(),
            Self::Stopped => "go on with --resume".into(),
        }
    }

    /// Whether the candidate may be the cause, rather than the surroundings.
    #[must_use]
    pub fn is_of_the_service(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::NotReady { .. })
    }
}
