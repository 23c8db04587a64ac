//! A validated, owned copy of a page.

use super::engines::{EngineInfo, EngineReport, boottime};
use super::suspension::SuspensionReport;
use super::{Counters, EngineCounters, PageError};
use crate::layout::{
    ALGORITHM_CAPACITY, AlgorithmCells, BreakEvenCell, EngineCell, EngineCells, Header, TierCells,
};
use crate::{
    Algorithm, BreakerState, Doubt, Engine, EngineClass, Event, Fault, HEADER_SIZE, LANES, MAGIC,
    REASON_CAPACITY, Reason, Slot, Suspension, Tiers, VERSION,
};
use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::time::Duration;

/// The contents of a page at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The process that created the page, by its own number for itself.
    pub creator_pid: u32,
    /// Wall clock at the start, since the epoch.
    pub started: Duration,
    /// Time since boot at the start; together with the creator it identifies the page.
    pub started_boottime: Duration,
    /// The executable, without its directory.
    pub program: String,
    /// The accelerator that counts here, such as `tls`.
    pub accelerator: String,
    /// The accelerator's remark for people; may be empty.
    pub note: String,
    /// One entry per slot that has or had a writer.
    pub writers: Vec<Writer>,
    /// By [`Algorithm::index`]; `None` if the writer has not reported it.
    pub break_even: [Option<BreakEven>; Algorithm::COUNT],
    /// The engines that the processes of this page have, in page order. Empty for a page of a version without an engine
    /// table.
    pub engines: Vec<EngineInfo>,
    /// Inode of the control page, if there is one.
    pub control: Option<u64>,
}

/// A slot: one thread of one process, and its predecessors in the slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Writer {
    /// Position on the page: the same slot in another snapshot has the same counters, whoever its writer is.
    pub slot: usize,
    /// Process number, as seen by the process itself.
    pub pid: u32,
    pub tid: u32,
    /// Writers so far, including this one: a slot outlives them and goes on.
    pub owners: u64,
    pub counters: Counters,
    /// By [`Engine::index`]; `None` if this writer has not used the engine yet.
    pub reports: [Option<EngineReport>; Engine::COUNT],
    /// Whether it suspends handshakes; `None` if it has not reported.
    pub suspension: Option<SuspensionReport>,
    /// Where its process has its memory; `None` if it has not reported.
    pub tiers: Option<Tiers>,
}

/// When a batch pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakEven {
    /// The smallest group worth a batch; none is if this exceeds [`LANES`].
    pub lanes: u64,
    /// Cost of one original operation.
    pub scalar_ns: u64,
    /// Cost of a batch, however many lanes it fills.
    pub batch_ns: u64,
}

impl BreakEven {
    /// The break-even implied by the two costs: the smallest group that costs more one by one than as a batch, or one
    /// more than there are lanes.
    pub fn measured_lanes(&self) -> Option<u64> {
        let never = hasten_names::NEVER as u64;
        Some((self.batch_ns.checked_div(self.scalar_ns)? + 1).min(never))
    }

    /// Whether the lanes follow from the costs instead of being set by hand. If one way is always taken, the library
    /// tries the other from time to time.
    pub fn is_measured(&self) -> bool {
        match self.measured_lanes() {
            Some(1) => self.lanes <= 2,
            Some(measured) if measured > LANES as u64 => self.lanes >= LANES as u64,
            measured => measured == Some(self.lanes),
        }
    }
}

impl Snapshot {
    /// Parses the bytes of a page. Whatever they are, the result is a snapshot or an error; slots and names of a newer
    /// writer are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, PageError> {
        let geometry = Geometry::parse(bytes)?;
        if bytes.len() < geometry.total() {
            return Err(PageError::TooShort { have: bytes.len(), need: geometry.total() });
        }
        let header = Words(&bytes[..geometry.header_size]);
        let control = geometry.has_engines().then(|| header.u64(offset_of!(Header, control)));
        let slots = bytes[geometry.header_size..geometry.total()].chunks_exact(geometry.slot_size);
        Ok(Self {
            creator_pid: header.u32(offset_of!(Header, creator_pid)),
            started: Duration::from_nanos(header.u64(offset_of!(Header, started_realtime_ns))),
            started_boottime: Duration::from_nanos(header.u64(offset_of!(Header, started_boottime_ns))),
            program: header.text(offset_of!(Header, program), offset_of!(Header, accelerator)),
            accelerator: header.text(offset_of!(Header, accelerator), offset_of!(Header, note)),
            note: header.text(offset_of!(Header, note), offset_of!(Header, break_even)),
            break_even: Algorithm::ALL.map(|algorithm| geometry.break_even(&header, algorithm)),
            engines: geometry.engines(&header),
            control: control.filter(|inode| *inode != 0),
            writers: slots
                .enumerate()
                .filter_map(|(slot, bytes)| geometry.writer(slot, &Words(bytes)))
                .collect(),
        })
    }

    /// Where each process has its memory, by its number inside its namespace. Processes that have ended leave their last
    /// report behind, so select only those that are alive.
    pub fn tiers(&self, is_alive: impl Fn(u32) -> bool) -> BTreeMap<u32, Tiers> {
        let alive = self.writers.iter().filter(|writer| is_alive(writer.pid));
        alive.filter_map(|writer| Some((writer.pid, writer.tiers?))).collect()
    }

    /// The sum over all writers, including past ones.
    pub fn total(&self) -> Counters {
        sum(&self.writers)
    }

    /// Sums by process. The counts of a dead process stay with the slot, and so with the process that took it over.
    pub fn by_pid(&self) -> BTreeMap<u32, Counters> {
        let mut sums = BTreeMap::<u32, Counters>::new();
        for writer in &self.writers {
            *sums.entry(writer.pid).or_default() += &writer.counters;
        }
        sums
    }

    /// What each process counted after `earlier`, an older snapshot of the same page. This is exact even if a slot has
    /// passed from one process to another.
    pub fn by_pid_since(&self, earlier: &Self) -> BTreeMap<u32, Counters> {
        let old: BTreeMap<usize, &Counters> = earlier.writers.iter().map(|w| (w.slot, &w.counters)).collect();
        let mut sums = BTreeMap::<u32, Counters>::new();
        for writer in &self.writers {
            let delta = old.get(&writer.slot).map(|old| writer.counters.since(old));
            *sums.entry(writer.pid).or_default() += delta.as_ref().unwrap_or(&writer.counters);
        }
        sums
    }

    /// When a batch of this algorithm pays, if the writer has reported it.
    pub fn break_even(&self, algorithm: Algorithm) -> Option<BreakEven> {
        self.break_even[algorithm.index()]
    }

    /// Time since the page was created, including suspend.
    pub fn uptime(&self) -> Duration {
        boottime().saturating_sub(self.started_boottime)
    }
}

/// The number of bytes worth reading of a page whose first [`HEADER_SIZE`] bytes these are.
pub(super) fn page_size(header: &[u8]) -> Result<usize, PageError> {
    Ok(Geometry::parse(header)?.total())
}

fn sum(writers: &[Writer]) -> Counters {
    let mut total = Counters::default();
    writers.iter().for_each(|writer| total += &writer.counters);
    total
}

/// The validated sizes of a page. A later hasten may enlarge header and slots and add names without a new version, so
/// these come from the page.
struct Geometry {
    header_size: usize,
    slot_size: usize,
    slot_count: usize,
    algorithms: usize,
    reasons: usize,
    events: usize,
    engines: usize,
}

impl Geometry {
    /// Limits on a page's claims, so that a hostile page cannot make the reader allocate without bound.
    const LARGEST_PART: u32 = 64 * 1024;
    const MOST_SLOTS: u32 = 1024;
    const SMALLEST_HEADER: usize =
        offset_of!(Header, break_even) + ALGORITHM_CAPACITY * size_of::<BreakEvenCell>();
    const SMALLEST_SLOT: usize = offset_of!(Slot, events) + crate::EVENT_CAPACITY * size_of::<u64>();

    fn parse(bytes: &[u8]) -> Result<Self, PageError> {
        let header = Words(bytes);
        if bytes.len() >= size_of::<u64>() && header.u64(offset_of!(Header, magic)) != MAGIC {
            return Err(PageError::NotAPage);
        }
        if bytes.len() < HEADER_SIZE {
            return Err(PageError::TooShort { have: bytes.len(), need: HEADER_SIZE });
        }
        let found = header.u32(offset_of!(Header, version));
        if found != VERSION {
            return Err(PageError::WrongVersion { found });
        }
        let bounded = |field, offset, smallest: usize, largest: u32| {
            let value = header.u32(offset);
            let fits = value as usize >= smallest && value <= largest;
            if fits { Ok(value as usize) } else { Err(PageError::Corrupt { field, value: value.into() }) }
        };
        let count = |offset, known: usize| (header.u32(offset) as usize).min(known);
        let (header_size, slot_size) = (offset_of!(Header, header_size), offset_of!(Header, slot_size));
        Ok(Self {
            header_size: bounded("header size", header_size, Self::SMALLEST_HEADER, Self::LARGEST_PART)?,
            slot_size: bounded("slot size", slot_size, Self::SMALLEST_SLOT, Self::LARGEST_PART)?,
            slot_count: bounded("slot count", offset_of!(Header, slot_count), 1, Self::MOST_SLOTS)?,
            algorithms: count(offset_of!(Header, algorithm_count), Algorithm::COUNT),
            reasons: count(offset_of!(Header, reason_count), Reason::COUNT),
            events: count(offset_of!(Header, event_count), Event::COUNT),
            engines: count(offset_of!(Header, engine_count), Engine::COUNT),
        })
    }

    fn total(&self) -> usize {
        self.header_size + self.slot_size * self.slot_count
    }

    fn break_even(&self, header: &Words<'_>, algorithm: Algorithm) -> Option<BreakEven> {
        let cell = offset_of!(Header, break_even) + algorithm.index() * size_of::<BreakEvenCell>();
        let lanes = header.u64(cell + offset_of!(BreakEvenCell, lanes));
        (lanes > 0 && algorithm.index() < self.algorithms).then(|| BreakEven {
            lanes,
            scalar_ns: header.u64(cell + offset_of!(BreakEvenCell, scalar_ns)),
            batch_ns: header.u64(cell + offset_of!(BreakEvenCell, batch_ns)),
        })
    }

    fn has_engines(&self) -> bool {
        self.engines > 0
    }

    fn engines(&self, header: &Words<'_>) -> Vec<EngineInfo> {
        let info = |engine: &Engine| {
            let cell = offset_of!(Header, engines) + engine.index() * size_of::<EngineCell>();
            let class = header.u32(cell + offset_of!(EngineCell, class)) as usize;
            let class = EngineClass::from_number(class)?;
            let device =
                header.text(cell + offset_of!(EngineCell, device), cell + offset_of!(EngineCell, class));
            let timeout = Duration::from_nanos(header.u64(cell + offset_of!(EngineCell, timeout_ns)));
            let is_present = header.u32(cell + offset_of!(EngineCell, present)) != 0;
            let timeout = (!timeout.is_zero()).then_some(timeout);
            is_present.then_some(EngineInfo { engine: *engine, class, device, timeout })
        };
        Engine::ALL[..self.engines].iter().filter_map(info).collect()
    }

    fn report(&self, slot: &Words<'_>, engine: Engine) -> Option<EngineReport> {
        let cells = offset_of!(Slot, engines) + engine.index() * size_of::<EngineCells>();
        let word = slot.u64(cells + offset_of!(EngineCells, state));
        let since = slot.u64(cells + offset_of!(EngineCells, since_ns));
        let probe = slot.u64(cells + offset_of!(EngineCells, probe_ns));
        let state = BreakerState::from_index((word & 0xff) as usize)?;
        let fault = Fault::from_number((word >> 8 & 0xff) as usize);
        (since != 0 && engine.index() < self.engines).then(|| EngineReport {
            state,
            fault,
            since: Duration::from_nanos(since),
            probe: (probe != 0).then(|| Duration::from_nanos(probe)),
        })
    }

    fn suspension(slot: &Words<'_>) -> Option<SuspensionReport> {
        let word = slot.u64(offset_of!(Slot, suspension));
        let number = |byte: u64| (byte & 0xff) as usize;
        Some(SuspensionReport {
            state: Suspension::from_number(number(word))?,
            doubt: Doubt::from_number(number(word >> 8)),
            since: Duration::from_nanos(slot.u64(offset_of!(Slot, suspension_since_ns))),
        })
    }

    fn tiers(slot: &Words<'_>) -> Option<Tiers> {
        let cell = |offset| slot.u64(offset_of!(Slot, tiers) + offset);
        let target = cell(offset_of!(TierCells, target));
        (target != 0).then(|| Tiers {
            near: cell(offset_of!(TierCells, near)),
            far: cell(offset_of!(TierCells, far)),
            threshold: cell(offset_of!(TierCells, threshold)),
            target: target.min(1 << 16),
        })
    }

    fn writer(&self, slot: usize, words: &Words<'_>) -> Option<Writer> {
        let owner = words.u64(offset_of!(Slot, owner));
        (owner != 0).then(|| Writer {
            slot,
            pid: (owner >> 32) as u32,
            tid: owner as u32,
            owners: words.u64(offset_of!(Slot, owners)),
            counters: self.counters(words),
            reports: Engine::ALL.map(|engine| self.report(words, engine)),
            suspension: Self::suspension(words),
            tiers: Self::tiers(words),
        })
    }

    fn counters(&self, slot: &Words<'_>) -> Counters {
        let mut counters = Counters::default();
        for algorithm in &Algorithm::ALL[..self.algorithms] {
            let cells = offset_of!(Slot, algorithms) + algorithm.index() * size_of::<AlgorithmCells>();
            let one = &mut counters[*algorithm];
            one.batched = slot.u64(cells + offset_of!(AlgorithmCells, batched));
            one.single = slot.u64(cells + offset_of!(AlgorithmCells, single));
            one.scalar = slot.u64(cells + offset_of!(AlgorithmCells, scalar));
            one.failed = slot.u64(cells + offset_of!(AlgorithmCells, failed));
            one.batches = slot.u64(cells + offset_of!(AlgorithmCells, batches));
            one.batch_ns = slot.u64(cells + offset_of!(AlgorithmCells, batch_ns));
            one.saved_ns = slot.u64(cells + offset_of!(AlgorithmCells, saved_ns));
            let lanes = cells + offset_of!(AlgorithmCells, lanes);
            one.lanes = std::array::from_fn::<_, LANES, _>(|lane| slot.u64(lanes + lane * size_of::<u64>()));
        }
        for reason in &Reason::ALL[..self.reasons] {
            counters[*reason] = slot.u64(offset_of!(Slot, bypassed) + reason.index() * size_of::<u64>());
        }
        for event in &Event::ALL[..self.events] {
            counters[*event] = slot.u64(offset_of!(Slot, events) + event.index() * size_of::<u64>());
        }
        for engine in &Engine::ALL[..self.engines] {
            let cells = offset_of!(Slot, engines) + engine.index() * size_of::<EngineCells>();
            counters[*engine] = EngineCounters {
                ok: slot.u64(cells + offset_of!(EngineCells, ok)),
                failed: slot.u64(cells + offset_of!(EngineCells, failed)),
                bytes_in: slot.u64(cells + offset_of!(EngineCells, bytes_in)),
                bytes_out: slot.u64(cells + offset_of!(EngineCells, bytes_out)),
                busy_ns: slot.u64(cells + offset_of!(EngineCells, busy_ns)),
                opened: slot.u64(cells + offset_of!(EngineCells, opened)),
            };
        }
        counters
    }
}

/// Little-endian integers by offset; 0 beyond the end.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u32(&self, offset: usize) -> u32 {
        self.bytes(offset).map_or(0, u32::from_le_bytes)
    }

    fn u64(&self, offset: usize) -> u64 {
        self.bytes(offset).map_or(0, u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }

    /// The text up to its first zero. Control characters are replaced, because it goes to a terminal, and the page may
    /// be hostile.
    fn text(&self, start: usize, end: usize) -> String {
        let bytes = self.0.get(start..end).unwrap_or_default();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).replace(char::is_control, "\u{fffd}")
    }
}

const _: () =
    assert!(REASON_CAPACITY * size_of::<u64>() == offset_of!(Slot, events) - offset_of!(Slot, bypassed));

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
