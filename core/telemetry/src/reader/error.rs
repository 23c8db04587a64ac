//! What can be wrong with a page or a process, and how to fix it.

use crate::VERSION;
use std::{fmt, io};

/// Why the bytes of a page cannot be used.
#[derive(Debug)]
pub enum PageError {
    /// There are fewer bytes than the header says, or than a header has.
    TooShort { have: usize, need: usize },
    /// The bytes do not start with [`crate::MAGIC`].
    NotAPage,
    /// Written by an incompatible version of hasten.
    WrongVersion { found: u32 },
    /// A size in the header is impossible.
    Corrupt { field: &'static str, value: u64 },
    /// Reading failed.
    Io(io::Error),
}

/// How to fix a process that failed to create a page.
pub(super) const NO_PAGE_FIX: &str = "allow memfd_create and shared mmap in its sandbox, or raise its memory, \
                                      open-file and file-size limits, and restart it";

/// Why a process has no page to show.
#[derive(Debug)]
pub enum ProcessError {
    /// No such process.
    Gone { pid: u32 },
    /// The kernel does not allow this user to inspect the process.
    Denied { pid: u32 },
    /// The process runs without any hasten library.
    NotAccelerated { pid: u32, program: String },
    /// A hasten library is loaded but has had nothing to do yet.
    StandBy { pid: u32, program: String },
    /// A hasten library is loaded and working, but could not share a page.
    NoPage { pid: u32, program: String },
    /// Any other error from `/proc`.
    Io { pid: u32, error: io::Error },
}

impl PageError {
    /// How to fix it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::WrongVersion { .. } => {
                "use the hasten that started the server, or restart the server with this one"
            }
            Self::TooShort { .. } | Self::NotAPage | Self::Corrupt { .. } | Self::Io(_) => {
                "try again, and restart the server if it stays so"
            }
        }
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { have, need } => {
                write!(f, "the counter page has {have} bytes where {need} are needed: it is damaged")
            }
            Self::NotAPage => f.write_str("the counter page does not start like one: it is damaged"),
            Self::WrongVersion { found } => {
                write!(f, "the counter page has version {found}, and this hasten reads version {VERSION}")
            }
            Self::Corrupt { field, value } => {
                write!(f, "the counter page gives {value} as its {field}, which cannot be: it is damaged")
            }
            Self::Io(error) => write!(f, "the counter page cannot be read: {error}"),
        }
    }
}

impl ProcessError {
    /// How to fix it.
    pub fn fix(&self) -> String {
        match self {
            Self::Gone { .. } => "run `hasten top` without PID to see what is accelerated".to_owned(),
            Self::Denied { pid } => {
                format!(
                    "run `sudo hasten top {pid}`; if you are root, leave the container or give it CAP_SYS_PTRACE"
                )
            }
            Self::NotAccelerated { program, .. } => format!(
                "start it with `hasten run -- {program} …`; `hasten check -- {program}` says what that would do"
            ),
            Self::StandBy { program, .. } => format!(
                "look again when it has worked; `hasten check -- {program}` says what would be accelerated"
            ),
            Self::NoPage { .. } => NO_PAGE_FIX.to_owned(),
            Self::Io { pid, .. } => format!("look at /proc/{pid}/maps, which must be readable"),
        }
    }

    pub(super) fn from_io(pid: u32, error: io::Error) -> Self {
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ESRCH)) => Self::Gone { pid },
            (io::ErrorKind::PermissionDenied, _) => Self::Denied { pid },
            _ => Self::Io { pid, error },
        }
    }
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { pid } => write!(f, "there is no process {pid}"),
            Self::Denied { pid } => {
                write!(
                    f,
                    "process {pid} may not be inspected: it belongs to another user or has more privileges"
                )
            }
            Self::NotAccelerated { pid, program } => {
                write!(f, "process {pid} ({program}) is not accelerated")
            }
            Self::NoPage { pid, program } => {
                write!(f, "process {pid} ({program}) is accelerated but could not make its counter page")
            }
            Self::StandBy { pid, program } => {
                write!(f, "process {pid} ({program}) is standing by: it has had nothing to accelerate yet")
            }
            Self::Io { pid, error } => write!(f, "process {pid} cannot be looked into: {error}"),
        }
    }
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl std::error::Error for ProcessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for PageError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let program = || "nginx".to_owned();
        for (error, fix) in [
            (ProcessError::Gone { pid: 7 }, "hasten top"),
            (ProcessError::Denied { pid: 7 }, "sudo hasten top 7"),
            (ProcessError::NotAccelerated { pid: 7, program: program() }, "hasten run -- nginx"),
            (ProcessError::StandBy { pid: 7, program: program() }, "hasten check -- nginx"),
            (ProcessError::NoPage { pid: 7, program: program() }, "memfd_create"),
        ] {
            assert!(error.to_string().contains("process 7"), "{error}");
            assert!(error.fix().contains(fix), "{}", error.fix());
        }
    }

    #[test]
    fn the_kernel_says_gone_and_denied_in_several_ways() {
        let classify = |errno| ProcessError::from_io(7, io::Error::from_raw_os_error(errno));
        assert!(matches!(classify(libc::ENOENT), ProcessError::Gone { pid: 7 }));
        assert!(matches!(classify(libc::ESRCH), ProcessError::Gone { pid: 7 }));
        assert!(matches!(classify(libc::EACCES), ProcessError::Denied { pid: 7 }));
        assert!(matches!(classify(libc::EPERM), ProcessError::Denied { pid: 7 }));
        assert!(matches!(classify(libc::EIO), ProcessError::Io { pid: 7, .. }));
    }
}
