//! Why no core file was made. The process was left as it was in each case.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("processes are copied on x86-64 only, and this machine is {machine}")]
    Machine { machine: &'static str },
    #[error("there is no process {pid}")]
    NoProcess { pid: i32 },
    #[error("process {pid} may not be traced: {error}{why}")]
    Refused { pid: i32, error: std::io::Error, why: String },
    #[error("process {pid} is traced already, by process {by}")]
    Traced { pid: i32, by: i32 },
    #[error("process {pid} cannot be copied: {why}")]
    Unfit { pid: i32, why: String },
    #[error("process {pid} ended while it was looked at")]
    Ended { pid: i32 },
    #[error("{what} has {free} MB left, and the copy of process {pid} may need {needed} MB")]
    Short { pid: i32, what: String, free: u64, needed: u64 },
    #[error("the copy of process {pid} was given up: {what} fell below {least} MB")]
    GivenUp { pid: i32, what: String, least: u64 },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("{what} of process {pid}: {error}")]
    System { pid: i32, what: &'static str, error: std::io::Error },
}

impl LiveError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Machine { .. } => "gcore PID writes a core file without a copy".to_owned(),
            Self::NoProcess { .. } => {
                "pass the number that ps shows here; in a container the process has another number".to_owned()
            }
            Self::Refused { .. } => {
                "run as the process's own user, or with sudo; in a container add the capability SYS_PTRACE"
                    .to_owned()
            }
            Self::Traced { by, .. } => format!("end the debugger or tracer first: process {by}"),
            Self::Unfit { .. } => {
                "pass a 64-bit x86 process, such as a stock Node.js; gcore PID writes a core file without a copy"
                    .to_owned()
            }
            Self::Ended { .. } => {
                "look at the service's own log; a core file of the kernel can be read with hasten core".to_owned()
            }
            Self::Short { what, .. } if what.starts_with('/') => "pass another place: --out FILE".to_owned(),
            Self::Short { .. } | Self::GivenUp { .. } => {
                "raise the limit, or wait for a quieter time; hasten snapshot --stack needs no copy".to_owned()
            }
            Self::Write { .. } => "check the folder, the space on the disk and the permissions".to_owned(),
            Self::System { .. } => {
                "try again; if it happens again, report it with the kernel's version (uname -r)".to_owned()
            }
        }
    }
}
