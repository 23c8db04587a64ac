//! What a line of a trace says.

use std::ops::{BitAnd, BitOr};

use super::profile::Part;
use crate::event::{Collection, Isolate};
use crate::summary::{Format, Process};

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Collection(Collection, Origin),
    /// A row of the table behind a collection.
    Row(Isolate, Row),
    /// Something else about this heap that reveals the release.
    Release(Isolate, Releases),
    Process(Isolate, Process),
    /// Nothing was observed between these times.
    Gap(Isolate, f64, f64),
    /// A part of a CPU profile: that of the main thread, or of the worker with this number.
    Profile(Isolate, Option<u32>, Box<Part>),
    OutOfMemory,
}

/// The origin of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    pub format: Format,
    pub releases: Releases,
    /// From the report of a process that ran out of memory, which may have written the same line before.
    pub is_last_words: bool,
}

/// A row of `--trace-gc-verbose`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Row {
    New {
        used: u64,
        capacity: u64,
    },
    NewLarge(u64),
    Old(u64),
    Code(u64),
    Map(u64),
    Large(u64),
    ReadOnly(u64),
    Other(u64),
    /// The total that all spaces have from the system.
    Committed(u64),
    External(u64),
}

/// Releases of Node whose traces look alike; odd ones look like one of their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Releases(u8);

impl Releases {
    pub(crate) const ALL: Self = Self(0b11111);
    pub(crate) const V18: Self = Self(1);
    pub(crate) const V20: Self = Self(1 << 1);
    pub(crate) const V22: Self = Self(1 << 2);
    pub(crate) const V24: Self = Self(1 << 3);
    pub(crate) const V26: Self = Self(1 << 4);
}

impl BitOr for Releases {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Releases {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Releases {
    /// `22, 24`; `None` if the lines contradict each other, or reveal nothing.
    pub(crate) fn names(self) -> Option<String> {
        const NAMES: [&str; 5] = ["18", "20", "22", "24", "26"];
        let names: Vec<&str> = NAMES
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| self.0 & 1 << bit != 0)
            .map(|(_, name)| name)
            .collect();
        (1..NAMES.len()).contains(&names.len()).then(|| names.join(", "))
    }
}
