//! The engines of this build: what the plan says of each, how its library is opened, and how it is tested.

use hasten_names::Engine;

use super::{Folder, qat, qatzip, qpl};
#[cfg(feature = "unused-engines")]
use super::{dlb, dml};
use crate::discovery::DeviceKind;
use crate::library::{Library, LibraryError};
#[cfg(feature = "unused-engines")]
use crate::selftest::unused;
use crate::selftest::{self, Bench};

/// One engine, and the device that it needs.
#[derive(Debug)]
pub struct Entry {
    pub engine: Engine,
    pub kind: DeviceKind,
    /// Whose work it does, if anybody hands it work.
    pub accelerator: Option<&'static str>,
    pub summary: &'static str,
    /// Whether the library is there and of a version that is known.
    pub look: fn(&Folder) -> Result<Library, LibraryError>,
    /// How much was done without a fault.
    pub(crate) test: fn(&Bench<'_>) -> Result<String, String>,
}

/// In the order in which people read about them.
pub const ENGINES: &[Entry] = &[
    Entry {
        engine: Engine::Qatzip,
        kind: DeviceKind::Qat,
        accelerator: Some("gzip"),
        summary: "whole deflate streams by QAT",
        look: qatzip::look,
        test: selftest::deflate::<qatzip::QatZip>,
    },
    Entry {
        engine: Engine::Qpl,
        kind: DeviceKind::Iaa,
        accelerator: Some("gzip"),
        summary: "whole deflate streams by IAA",
        look: qpl::look,
        test: selftest::deflate::<qpl::Qpl>,
    },
    Entry {
        engine: Engine::Qat,
        kind: DeviceKind::Qat,
        accelerator: Some("tls"),
        summary: "public-key operations by QAT",
        look: qat::look,
        test: selftest::crypto,
    },
    #[cfg(feature = "unused-engines")]
    Entry {
        engine: Engine::Dml,
        kind: DeviceKind::Dsa,
        accelerator: None,
        summary: "copies by DSA",
        look: dml::look,
        test: unused::copies,
    },
    #[cfg(feature = "unused-engines")]
    Entry {
        engine: Engine::Dlb,
        kind: DeviceKind::Dlb,
        accelerator: None,
        summary: "queues by DLB",
        look: dlb::look,
        test: unused::hand_out,
    },
];

impl Entry {
    /// The entry of an engine, by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ENGINES.iter().find(|entry| entry.engine.as_str() == name)
    }
}
