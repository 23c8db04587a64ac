//! Counters of an accelerated process tree, on one shared page.
//!
//! The preload library is the writer: it identifies itself with [`init`], in
//! the constructor, and creates the page with [`start`], at the first thing
//! worth counting; from then on [`slot`] gives every thread its own [`Slot`] to
//! count in. Nothing there allocates, locks, logs or panics. `hasten top` is
//! the reader: [`discover`] finds the pages of this host and [`Snapshot`] is a
//! validated, owned copy of one.
//!
//! The page holds only counts, names and times; no secret ever enters it.
//! `docs/telemetry.md` gives the layout byte by byte.
//!
//! A second page next to it works in the other direction: [`is_disabled`] reads
//! what an operator has set for an engine through [`Control`].

mod control;
mod layout;
mod memory;
mod reader;
mod writer;

/// The vocabulary of the page.
pub use hasten_names::{
    Algorithm, BreakerState, Doubt, Engine, EngineClass, Event, Fault, LANES, Reason, Suspension,
};

pub use control::{CONTROL_NAME, CONTROL_SIZE, CONTROL_VERSION, is_disabled};
pub use layout::{
    ALGORITHM_CAPACITY, ENGINE_CAPACITY, EVENT_CAPACITY, HEADER_SIZE, MAGIC, MAGIC_CONTROL, PAGE_NAME,
    PAGE_SIZE, Page, REASON_CAPACITY, SLOT_COUNT, SLOT_SIZE, Slot, VERSION,
};
pub use reader::{
    AlgorithmCounters, BreakEven, Control, ControlError, Counters, EngineCondition, EngineCounters,
    EngineInfo, EngineReport, Handshakes, PageError, PageHandle, Process, ProcessError, Scan, Severity,
    Share, Snapshot, SuspensionReport, SuspensionShare, Unseen, Warning, Window, Writer, boottime, discover,
    duration, pages_of,
};
pub use writer::{EngineWork, Tiers, after_fork_child, init, page, seal, set_tiers, slot, start, uncounted};
