//! The operator's side of the control page.

use super::discover::open_one;
use super::error::NO_PAGE_FIX;
use super::{PageHandle, Snapshot, proc};
use crate::control::{CONTROL_SIZE, CONTROL_VERSION, ControlPage};
use crate::{Engine, MAGIC_CONTROL};
use std::fs::File;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;
use std::{fmt, io};

/// The control page that belongs to a counter page, validated and open for writing.
#[derive(Debug)]
pub struct Control {
    file: File,
    engines: usize,
}

/// Why a program's engines cannot be controlled.
#[derive(Debug)]
pub enum ControlError {
    /// The program's version of hasten had no control page.
    Older {
        program: String,
    },
    /// The program failed to create one.
    NoPage {
        program: String,
    },
    /// The kernel does not allow this user to open it.
    Denied {
        pid: u32,
    },
    /// All processes of the program have ended.
    Gone {
        program: String,
    },
    /// Written by an incompatible version of hasten.
    WrongVersion {
        found: u32,
    },
    /// The file is not a control page.
    NotAPage,
    Io(io::Error),
}

impl PageHandle {
    /// The control page of this page's engines. `snapshot` is one of this page.
    pub fn control(&self, snapshot: &Snapshot) -> Result<Control, ControlError> {
        let program = || self.program.clone();
        let Some(inode) = snapshot.control else {
            return Err(match snapshot.engines.is_empty() {
                true => ControlError::Older { program: program() },
                false => ControlError::NoPage { program: program() },
            });
        };
        let mut error = ControlError::Gone { program: program() };
        for pid in self.pids() {
            let mapped = proc::mappings(pid).map(|mappings| mappings.controls).unwrap_or_default();
            let Some(mapping) = mapped.into_iter().find(|mapping| mapping.inode == inode) else { continue };
            match open_one(pid, &mapping, proc::CONTROL_LINK, true) {
                Ok(file) => return Control::of(file),
                Err(refused) if refused.kind() == io::ErrorKind::PermissionDenied => {
                    error = ControlError::Denied { pid };
                }
                Err(other) => error = ControlError::Io(other),
            }
        }
        Err(error)
    }
}

impl Control {
    fn of(file: File) -> Result<Self, ControlError> {
        let mut page = [0; CONTROL_SIZE];
        file.read_exact_at(&mut page, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ControlError::NotAPage,
            _ => ControlError::Io(error),
        })?;
        Ok(Self { file, engines: check(&page)? })
    }

    /// Takes an engine out of service in every process of the program, or puts it back. Processes see it at their next
    /// operation, including those forked later.
    pub fn set_disabled(&self, engine: Engine, disabled: bool) -> io::Result<()> {
        if engine.index() >= self.engines {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let offset = offset_of!(ControlPage, disabled) + engine.index() * size_of::<u64>();
        self.file.write_all_at(&u64::from(disabled).to_le_bytes(), offset as u64)
    }

    /// The page's current setting.
    pub fn is_disabled(&self, engine: Engine) -> io::Result<bool> {
        let offset = offset_of!(ControlPage, disabled) + engine.index() * size_of::<u64>();
        let mut word = [0; size_of::<u64>()];
        self.file.read_exact_at(&mut word, offset as u64)?;
        Ok(engine.index() < self.engines && word != [0; size_of::<u64>()])
    }
}

/// How many engines the page covers. Its contents are not to be trusted.
fn check(page: &[u8; CONTROL_SIZE]) -> Result<usize, ControlError> {
    let number = |offset: usize| page[offset..].first_chunk().copied().map_or(0, u32::from_le_bytes);
    if page[..size_of::<u64>()] != MAGIC_CONTROL.to_le_bytes() {
        return Err(ControlError::NotAPage);
    }
    match number(offset_of!(ControlPage, version)) {
        CONTROL_VERSION => Ok((number(offset_of!(ControlPage, engine_count)) as usize).min(Engine::COUNT)),
        found => Err(ControlError::WrongVersion { found }),
    }
}

impl ControlError {
    /// How to fix it.
    pub fn fix(&self) -> String {
        match self {
            Self::Older { program } => {
                format!("restart it with this hasten: `hasten run -- {program} …`")
            }
            Self::NoPage { .. } => NO_PAGE_FIX.to_owned(),
            Self::Denied { .. } => {
                "run it with sudo; if you are root, leave the container or give it CAP_SYS_PTRACE and \
                 CAP_CHECKPOINT_RESTORE"
                    .to_owned()
            }
            Self::Gone { .. } => "run `hasten engine list` to see what is accelerated".to_owned(),
            Self::WrongVersion { .. } => {
                "use the hasten that started the server, or restart the server with this one".to_owned()
            }
            Self::NotAPage | Self::Io(_) => "try again, and restart the server if it stays so".to_owned(),
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Older { program } => {
                write!(f, "{program} was started by an older hasten, whose engines cannot be controlled")
            }
            Self::NoPage { program } => {
                write!(f, "{program} could not make the page that engines are controlled by")
            }
            Self::Denied { pid } => {
                write!(
                    f,
                    "process {pid} may not be controlled: it belongs to another user or has more privileges"
                )
            }
            Self::Gone { program } => write!(f, "{program} has ended"),
            Self::WrongVersion { found } => {
                write!(
                    f,
                    "the control page has version {found}, and this hasten writes version {CONTROL_VERSION}"
                )
            }
            Self::NotAPage => f.write_str("the control page does not start like one: it is damaged"),
            Self::Io(error) => write!(f, "the control page cannot be used: {error}"),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(magic: u64, version: u32, engines: u32) -> [u8; CONTROL_SIZE] {
        let mut page = [0; CONTROL_SIZE];
        page[..8].copy_from_slice(&magic.to_le_bytes());
        page[8..12].copy_from_slice(&version.to_le_bytes());
        page[12..16].copy_from_slice(&engines.to_le_bytes());
        page
    }

    #[test]
    fn a_page_is_checked_before_it_is_written_to() {
        assert_eq!(check(&page(MAGIC_CONTROL, 1, 4)).unwrap(), 4);
        assert_eq!(check(&page(MAGIC_CONTROL, 1, u32::MAX)).unwrap(), Engine::COUNT);
        assert!(matches!(check(&page(MAGIC_CONTROL, 2, 4)), Err(ControlError::WrongVersion { found: 2 })));
        assert!(matches!(check(&page(7, 1, 4)), Err(ControlError::NotAPage)));
    }

    #[test]
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let program = || "nginx".to_owned();
        for (error, text, fix) in [
            (ControlError::Older { program: program() }, "older hasten", "hasten run -- nginx"),
            (ControlError::NoPage { program: program() }, "could not make", "memfd_create"),
            (ControlError::Denied { pid: 7 }, "process 7", "sudo"),
            (ControlError::Gone { program: program() }, "has ended", "hasten engine list"),
            (ControlError::WrongVersion { found: 2 }, "version 2", "restart the server"),
        ] {
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.fix().contains(fix), "{}", error.fix());
        }
    }
}
