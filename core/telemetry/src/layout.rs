//! Version 1 of the page, shared by writer and reader.
//!
//! Every field is an atomic integer, so the page can be mapped by many processes without a data race, and all-zero
//! bytes are a valid empty page. Arrays have spare room: a new name needs no new version.

use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use hasten_names::{Algorithm, Engine, Event, LANES, Reason};

/// Name of the memfd; `/proc/PID/maps` shows `/memfd:hasten-telemetry (deleted)`.
pub const PAGE_NAME: &std::ffi::CStr = c"hasten-telemetry";
/// First eight bytes of a page: `hastenTP`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hastenTP");
/// First eight bytes of a control page: `hastenCT`.
pub const MAGIC_CONTROL: u64 = u64::from_le_bytes(*b"hastenCT");
pub const VERSION: u32 = 1;

pub const ALGORITHM_CAPACITY: usize = 16;
pub const REASON_CAPACITY: usize = 32;
pub const EVENT_CAPACITY: usize = 64;
pub const ENGINE_CAPACITY: usize = 16;

/// A slot fills a memory page: unused slots cost no memory, and two writers never share a cache line.
pub const SLOT_SIZE: usize = 4096;
pub const SLOT_COUNT: usize = 256;
pub const HEADER_SIZE: usize = 4096;
pub const PAGE_SIZE: usize = HEADER_SIZE + SLOT_SIZE * SLOT_COUNT;

/// The whole page: a header and the slots.
#[repr(C)]
pub struct Page {
    pub(crate) header: Header,
    pub(crate) slots: [Slot; SLOT_COUNT],
}

#[repr(C, align(4096))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) header_size: AtomicU32,
    pub(crate) slot_size: AtomicU32,
    pub(crate) slot_count: AtomicU32,
    pub(crate) creator_pid: AtomicU32,
    pub(crate) lanes: AtomicU32,
    pub(crate) started_realtime_ns: AtomicU64,
    pub(crate) started_boottime_ns: AtomicU64,
    pub(crate) algorithm_count: AtomicU32,
    pub(crate) reason_count: AtomicU32,
    pub(crate) event_count: AtomicU32,
    /// 0 if the writer had no engine table.
    pub(crate) engine_count: AtomicU32,
    pub(crate) program: Text<8>,
    pub(crate) accelerator: Text<4>,
    pub(crate) note: Text<16>,
    pub(crate) break_even: [BreakEvenCell; ALGORITHM_CAPACITY],
    pub(crate) engines: [EngineCell; ENGINE_CAPACITY],
    /// Inode of the control page that belongs to this page; 0 if there is none.
    pub(crate) control: AtomicU64,
}

#[repr(C)]
pub(crate) struct BreakEvenCell {
    pub(crate) lanes: AtomicU64,
    pub(crate) scalar_ns: AtomicU64,
    pub(crate) batch_ns: AtomicU64,
}

/// The description of an engine; its condition is in the slots.
#[repr(C)]
pub(crate) struct EngineCell {
    pub(crate) name: Text<4>,
    /// Empty for software.
    pub(crate) device: Text<4>,
    pub(crate) class: AtomicU32,
    /// Non-zero if the process has this engine.
    pub(crate) present: AtomicU32,
    pub(crate) timeout_ns: AtomicU64,
    pub(crate) reserved: [AtomicU64; 14],
}

/// The counters of one writer: a thread of one of the processes that share the page. All additions are atomic, so
/// sharing a slot loses no counts.
#[repr(C, align(4096))]
pub struct Slot {
    /// `pid << 32 | tid` of the writer; 0 if free.
    pub(crate) owner: AtomicU64,
    /// How many writers have had this slot.
    pub(crate) owners: AtomicU64,
    /// Byte 0 is the number of a [`crate::Suspension`], byte 1 of a [`crate::Doubt`].
    pub(crate) suspension: AtomicU64,
    /// `CLOCK_BOOTTIME` of its last change.
    pub(crate) suspension_since_ns: AtomicU64,
    pub(crate) tiers: TierCells,
    pub(crate) algorithms: [AlgorithmCells; ALGORITHM_CAPACITY],
    pub(crate) bypassed: [AtomicU64; REASON_CAPACITY],
    pub(crate) events: [AtomicU64; EVENT_CAPACITY],
    pub(crate) engines: [EngineCells; ENGINE_CAPACITY],
}

/// Where the process has its memory, in the slot of its first thread.
#[repr(C)]
pub(crate) struct TierCells {
    pub(crate) near: AtomicU64,
    pub(crate) far: AtomicU64,
    /// The size class on the boundary.
    pub(crate) threshold: AtomicU64,
    /// The wanted far part of all bytes in 1/65,536; 0 if the process has not reported.
    pub(crate) target: AtomicU64,
}

#[repr(C)]
pub(crate) struct AlgorithmCells {
    pub(crate) batched: AtomicU64,
    pub(crate) scalar: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) batch_ns: AtomicU64,
    pub(crate) saved_ns: AtomicU64,
    pub(crate) single: AtomicU64,
    pub(crate) reserved: AtomicU64,
    /// Batches by number of lanes filled, 1 first.
    pub(crate) lanes: [AtomicU64; LANES],
}

#[repr(C)]
pub(crate) struct EngineCells {
    pub(crate) ok: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) opened: AtomicU64,
    /// Byte 0 is the index of a [`crate::BreakerState`], byte 1 the number of the last [`crate::Fault`].
    pub(crate) state: AtomicU64,
    /// `CLOCK_BOOTTIME` of the last change; 0 if this writer has not used the engine yet.
    pub(crate) since_ns: AtomicU64,
    pub(crate) probe_ns: AtomicU64,
}

/// UTF-8 padded with zeros, in words so that it can be rewritten under a reader: the worst a race can do is mix two
/// texts.
#[repr(C)]
pub(crate) struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Stores as much of `text` as fits; the last byte always stays zero.
    pub(crate) fn store(&self, text: &[u8]) {
        let text = &text[..text.len().min(WORDS * 8 - 1)];
        for (index, word) in self.0.iter().enumerate() {
            let mut bytes = [0; 8];
            for (byte, source) in bytes.iter_mut().zip(text.iter().skip(index * 8)) {
                *byte = *source;
            }
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
    }

    pub(crate) fn copy_from(&self, other: &Self) {
        self.0.iter().zip(&other.0).for_each(|(into, from)| into.store(from.load(Relaxed), Relaxed));
    }
}

impl Page {
    /// An empty page: all zero, so that a static one costs no file space.
    pub(crate) const fn new() -> Self {
        Self { header: Header::new(), slots: [const { Slot::new() }; SLOT_COUNT] }
    }
}

impl Header {
    const fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            header_size: AtomicU32::new(0),
            slot_size: AtomicU32::new(0),
            slot_count: AtomicU32::new(0),
            creator_pid: AtomicU32::new(0),
            lanes: AtomicU32::new(0),
            started_realtime_ns: AtomicU64::new(0),
            started_boottime_ns: AtomicU64::new(0),
            algorithm_count: AtomicU32::new(0),
            reason_count: AtomicU32::new(0),
            event_count: AtomicU32::new(0),
            engine_count: AtomicU32::new(0),
            program: Text::new(),
            accelerator: Text::new(),
            note: Text::new(),
            break_even: [const { BreakEvenCell::new() }; ALGORITHM_CAPACITY],
            engines: [const { EngineCell::new() }; ENGINE_CAPACITY],
            control: AtomicU64::new(0),
        }
    }
}

impl BreakEvenCell {
    pub(crate) fn copy_from(&self, other: &Self) {
        self.lanes.store(other.lanes.load(Relaxed), Relaxed);
        self.scalar_ns.store(other.scalar_ns.load(Relaxed), Relaxed);
        self.batch_ns.store(other.batch_ns.load(Relaxed), Relaxed);
    }

    const fn new() -> Self {
        Self { lanes: AtomicU64::new(0), scalar_ns: AtomicU64::new(0), batch_ns: AtomicU64::new(0) }
    }
}

impl EngineCell {
    pub(crate) fn copy_from(&self, other: &Self) {
        self.name.copy_from(&other.name);
        self.device.copy_from(&other.device);
        self.class.store(other.class.load(Relaxed), Relaxed);
        self.timeout_ns.store(other.timeout_ns.load(Relaxed), Relaxed);
        self.present.store(other.present.load(Relaxed), Relaxed);
    }

    const fn new() -> Self {
        Self {
            name: Text::new(),
            device: Text::new(),
            class: AtomicU32::new(0),
            present: AtomicU32::new(0),
            timeout_ns: AtomicU64::new(0),
            reserved: [const { AtomicU64::new(0) }; 14],
        }
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            owners: AtomicU64::new(0),
            suspension: AtomicU64::new(0),
            suspension_since_ns: AtomicU64::new(0),
            tiers: TierCells {
                near: AtomicU64::new(0),
                far: AtomicU64::new(0),
                threshold: AtomicU64::new(0),
                target: AtomicU64::new(0),
            },
            algorithms: [const { AlgorithmCells::new() }; ALGORITHM_CAPACITY],
            bypassed: [const { AtomicU64::new(0) }; REASON_CAPACITY],
            events: [const { AtomicU64::new(0) }; EVENT_CAPACITY],
            engines: [const { EngineCells::new() }; ENGINE_CAPACITY],
        }
    }
}

impl AlgorithmCells {
    const fn new() -> Self {
        Self {
            batched: AtomicU64::new(0),
            scalar: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            batch_ns: AtomicU64::new(0),
            saved_ns: AtomicU64::new(0),
            single: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            lanes: [const { AtomicU64::new(0) }; LANES],
        }
    }
}

impl EngineCells {
    const fn new() -> Self {
        Self {
            ok: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            state: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            probe_ns: AtomicU64::new(0),
        }
    }
}

// The offsets that docs/telemetry.md guarantees to readers in other languages.
const _: () = {
    assert!(size_of::<Page>() == PAGE_SIZE);
    assert!(size_of::<Header>() == HEADER_SIZE);
    assert!(size_of::<Slot>() == SLOT_SIZE);
    assert!(size_of::<AlgorithmCells>() == 128);
    assert!(offset_of!(Header, version) == 8);
    assert!(offset_of!(Header, started_realtime_ns) == 32);
    assert!(offset_of!(Header, algorithm_count) == 48);
    assert!(offset_of!(Header, program) == 64);
    assert!(offset_of!(Header, accelerator) == 128);
    assert!(offset_of!(Header, note) == 160);
    assert!(offset_of!(Header, engine_count) == 60);
    assert!(offset_of!(Header, break_even) == 288);
    assert!(offset_of!(Header, engines) == 672);
    assert!(offset_of!(Header, control) == 3744);
    assert!(size_of::<EngineCell>() == 192);
    assert!(offset_of!(EngineCell, device) == 32);
    assert!(offset_of!(EngineCell, class) == 64);
    assert!(offset_of!(EngineCell, present) == 68);
    assert!(offset_of!(EngineCell, timeout_ns) == 72);
    assert!(offset_of!(Slot, suspension) == 16);
    assert!(offset_of!(Slot, suspension_since_ns) == 24);
    assert!(offset_of!(Slot, algorithms) == 64);
    assert!(offset_of!(Slot, bypassed) == 2112);
    assert!(offset_of!(Slot, events) == 2368);
    assert!(offset_of!(Slot, engines) == 2880);
    assert!(size_of::<EngineCells>() == 72);
    assert!(offset_of!(EngineCells, opened) == 40);
    assert!(offset_of!(EngineCells, state) == 48);
    assert!(offset_of!(EngineCells, since_ns) == 56);
    assert!(offset_of!(EngineCells, probe_ns) == 64);
    assert!(cfg!(target_endian = "little"), "the page is little endian");
};

// There is room for every name.
const _: () = {
    assert!(Algorithm::COUNT <= ALGORITHM_CAPACITY);
    assert!(Reason::COUNT <= REASON_CAPACITY);
    assert!(Event::COUNT <= EVENT_CAPACITY);
    assert!(Engine::COUNT <= ENGINE_CAPACITY);
};
