//! Device engines: each speaks the C interface of one library, and promises nothing.

pub mod crypto;
pub mod deflate;
#[cfg(feature = "unused-engines")]
pub mod dlb;
#[cfg(feature = "unused-engines")]
pub mod dml;
mod job;
pub mod qat;
pub mod qatzip;
pub mod qpl;
mod table;

use std::path::PathBuf;

pub use self::table::{ENGINES, Entry};
use crate::Fault;

/// An engine's reason for not completing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The engine or its device is to blame.
    Fault(Fault),
    /// The data is to blame, or unsuitable for the engine. This opens no breaker: a client could send such data on
    /// purpose.
    Declined,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Where libraries are looked for; `None` for the system's own places and [`crate::library::FOLDER`].
pub type Folder = Option<PathBuf>;

fn open(known: &crate::library::Known, folder: &Folder) -> Result<crate::Library, crate::LibraryError> {
    match folder {
        Some(folder) => crate::Library::open_in(known, Some(folder)),
        None => crate::Library::open(known),
    }
}
