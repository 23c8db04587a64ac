//! One accelerated process tree and its recent past.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use hasten_telemetry::{
    Counters, Engine, EngineCondition, PageError, Process, Snapshot, SuspensionReport, SuspensionShare,
    Tiers, Warning, Window,
};

use super::{Direction, Sample, in_words};

/// Enough for a chart across a wide terminal.
const HISTORY: usize = 240;
/// Shares and warnings look this far back: a single second says little.
const RECENT: Duration = Duration::from_secs(30);

pub(in crate::cmd::top) struct Program {
    inode: u64,
    name: String,
    processes: Vec<Process>,
    uptime: Duration,
    boottime: Duration,
    condition: Condition,
    disabled: Vec<Engine>,
    /// Oldest first; the newest is the last.
    past: VecDeque<(Instant, Counters)>,
    interval_by_pid: BTreeMap<u32, Counters>,
}

/// Whether there is something to show.
pub(in crate::cmd::top) enum Condition {
    Readable(Box<Snapshot>),
    Unreadable(PageError),
}

impl Program {
    pub(super) fn new(now: Instant, sample: Sample) -> Self {
        let mut program = Self {
            inode: sample.inode,
            name: String::new(),
            processes: Vec::new(),
            uptime: Duration::ZERO,
            boottime: Duration::ZERO,
            condition: Condition::Unreadable(PageError::NotAPage),
            disabled: Vec::new(),
            past: VecDeque::new(),
            interval_by_pid: BTreeMap::new(),
        };
        program.update(now, sample);
        program
    }

    pub(super) fn update(&mut self, now: Instant, sample: Sample) {
        self.name = sample.program;
        self.processes = sample.processes;
        self.uptime = sample.uptime;
        self.boottime = sample.boottime;
        self.disabled = sample.disabled;
        match sample.snapshot {
            Ok(snapshot) => self.record(now, snapshot),
            Err(error) => {
                self.condition = Condition::Unreadable(error);
                self.past.clear();
                self.interval_by_pid.clear();
            }
        }
    }

    pub(in crate::cmd::top) fn inode(&self) -> u64 {
        self.inode
    }

    /// The executable's name.
    pub(in crate::cmd::top) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::cmd::top) fn processes(&self) -> &[Process] {
        &self.processes
    }

    pub(in crate::cmd::top) fn first_pid(&self) -> u32 {
        self.processes.first().map_or(0, |process| process.pid)
    }

    pub(in crate::cmd::top) fn uptime(&self) -> Duration {
        self.uptime
    }

    pub(in crate::cmd::top) fn condition(&self) -> &Condition {
        &self.condition
    }

    pub(in crate::cmd::top) fn snapshot(&self) -> Option<&Snapshot> {
        match &self.condition {
            Condition::Readable(snapshot) => Some(snapshot),
            Condition::Unreadable(_) => None,
        }
    }

    /// The accelerator that counts here; empty while the page cannot be read.
    pub(in crate::cmd::top) fn accelerator(&self) -> &str {
        self.snapshot().map_or("", |snapshot| &snapshot.accelerator)
    }

    /// Whether it counts streams and bytes, as for compression, instead of operations.
    pub(in crate::cmd::top) fn counts_streams(&self) -> bool {
        self.accelerator() == "gzip"
    }

    /// Whether it reports where the memory is, and counts no work.
    pub(in crate::cmd::top) fn is_of_memory(&self) -> bool {
        self.accelerator() == "tier"
    }

    /// Whether the same processes have both pages: one for each accelerator.
    pub(in crate::cmd::top) fn is_same_process_as(&self, other: &Self) -> bool {
        self.first_pid() == other.first_pid()
    }

    /// Everything counted since the program's start.
    pub(in crate::cmd::top) fn total(&self) -> Counters {
        self.past.back().map(|(_, counters)| counters.clone()).unwrap_or_default()
    }

    /// Between the last two samples, once there are two.
    pub(in crate::cmd::top) fn interval(&self) -> Option<Window> {
        let before_last = self.past.len().checked_sub(2)?;
        self.window_from(before_last)
    }

    /// Over the last half minute, or as long as there are samples.
    pub(in crate::cmd::top) fn recent(&self) -> Option<Window> {
        let (now, _) = self.past.back()?;
        let first = self.past.iter().position(|(at, _)| now.duration_since(*at) <= RECENT)?;
        (first + 1 < self.past.len()).then(|| self.window_from(first))?
    }

    /// Operations per second of each interval on record, oldest first; bytes, where streams are counted.
    pub(in crate::cmd::top) fn rates(&self) -> Vec<u64> {
        let pairs = self.past.iter().zip(self.past.iter().skip(1));
        pairs
            .map(|((start, before), (end, after))| {
                let window = Window { elapsed: *end - *start, counted: after.since(before) };
                window.per_second(volume(&window.counted)).round() as u64
            })
            .collect()
    }

    /// Operations in the last interval of a process, by the number it has in
    /// its own namespace.
    pub(in crate::cmd::top) fn operations_of(&self, namespace_pid: u32) -> u64 {
        self.interval_by_pid.get(&namespace_pid).map_or(0, Counters::operations)
    }

    /// Its engines, in page order; none on a page of a version that did not list them.
    pub(in crate::cmd::top) fn engines(&self) -> Vec<EngineCondition> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        EngineCondition::all(snapshot, |pid| self.is_alive(pid), self.boottime)
    }

    /// An engine's state in words.
    pub(in crate::cmd::top) fn state_of(&self, engine: &EngineCondition) -> String {
        in_words(engine, self.disabled.contains(&engine.engine))
    }

    /// Whether its processes suspend handshakes; empty if none has reported it.
    pub(in crate::cmd::top) fn suspension(&self) -> Vec<SuspensionShare> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        SuspensionShare::all(snapshot, |pid| self.is_alive(pid), self.boottime)
    }

    /// The same for each process, by the number it has in its own namespace.
    pub(in crate::cmd::top) fn suspensions(&self) -> BTreeMap<u32, SuspensionReport> {
        self.snapshot().map(|snapshot| snapshot.suspensions(|pid| self.is_alive(pid))).unwrap_or_default()
    }

    /// Where each process has its memory, likewise.
    pub(in crate::cmd::top) fn tiers(&self) -> BTreeMap<u32, Tiers> {
        self.snapshot().map(|snapshot| snapshot.tiers(|pid| self.is_alive(pid))).unwrap_or_default()
    }

    /// The same in the order of the processes.
    pub(in crate::cmd::top) fn memory(&self) -> Vec<(Process, Tiers)> {
        let tiers = self.tiers();
        let of = |process: &Process| Some((*process, *tiers.get(&process.namespace_pid)?));
        self.processes.iter().filter_map(of).collect()
    }

    /// The memory of all its processes, with the threshold and the target of the first; `None` if none has reported it.
    pub(in crate::cmd::top) fn memory_of_all(&self) -> Option<Tiers> {
        let sum = |all: Tiers, one: Tiers| Tiers { near: all.near + one.near, far: all.far + one.far, ..all };
        self.memory().into_iter().map(|(_, tiers)| tiers).reduce(sum)
    }

    /// Warnings for the user, gravest first.
    pub(in crate::cmd::top) fn warnings(&self) -> Vec<Warning> {
        match &self.condition {
            Condition::Unreadable(error) => vec![Warning::unreadable(error.to_string(), error.fix())],
            Condition::Readable(snapshot) => self.warnings_of(snapshot),
        }
    }

    fn warnings_of(&self, snapshot: &Snapshot) -> Vec<Warning> {
        let (engines, recent) = (self.engines(), self.recent());
        let is_older = snapshot.engines.is_empty() && snapshot.control.is_none();
        let mut warnings: Vec<_> = is_older.then(Warning::of_older_page).into_iter().collect();
        let pid = Some(self.first_pid());
        warnings.extend(engines.iter().filter_map(|engine| Warning::of_engine(engine, pid)));
        warnings.extend(Warning::of_counters(&self.total(), recent.as_ref(), !engines.is_empty()));
        warnings.extend(self.suspension().iter().filter_map(Warning::of_suspension));
        let break_even = |algorithm| snapshot.break_even(algorithm);
        warnings.extend(recent.iter().flat_map(|recent| Warning::of_batches(break_even, recent)));
        warnings.sort_by_key(|warning| warning.severity);
        warnings
    }

    fn is_alive(&self, namespace_pid: u32) -> bool {
        self.processes.iter().any(|process| process.namespace_pid == namespace_pid)
    }

    fn record(&mut self, now: Instant, snapshot: Snapshot) {
        if let Condition::Readable(before) = &self.condition {
            self.interval_by_pid = snapshot.by_pid_since(before);
        }
        if self.past.len() == HISTORY {
            self.past.pop_front();
        }
        self.past.push_back((now, snapshot.total()));
        self.condition = Condition::Readable(Box::new(snapshot));
    }

    fn window_from(&self, index: usize) -> Option<Window> {
        let ((start, before), (end, after)) = (self.past.get(index)?, self.past.back()?);
        Some(Window { elapsed: *end - *start, counted: after.since(before) })
    }
}

/// How much was done, as far as one number can say it.
pub(in crate::cmd::top) fn volume(counted: &Counters) -> u64 {
    let plain =
        Direction::Deflate.of(counted).bytes_in.saturating_add(Direction::Inflate.of(counted).bytes_out);
    if plain > 0 { plain } else { counted.operations() }
}

#[cfg(test)]
mod tests {
    use hasten_telemetry::Algorithm;

    use super::*;
    use crate::cmd::top::fixture;

    fn after(program: &mut Program, start: Instant, seconds: u64, batched: u64) {
        let mut sample = fixture::idle(7);
        fixture::counters(&mut sample)[Algorithm::P256Sign].batched = batched;
        program.update(start + Duration::from_secs(seconds), sample);
    }

    #[test]
    fn rates_need_two_samples_and_use_their_real_distance() {
        let start = Instant::now();
        let mut program = Program::new(start, fixture::idle(7));
        assert!(program.interval().is_none() && program.recent().is_none());
        after(&mut program, start, 4, 100);
        let interval = program.interval().unwrap();
        assert_eq!(interval.per_second(interval.operations()), 25.0);
        assert_eq!(program.rates(), [25]);
        assert_eq!(program.operations_of(fixture::WORKER), 100);
        assert_eq!(program.operations_of(1), 0);
    }

    #[test]
    fn recent_forgets_what_is_older_than_half_a_minute() {
        let start = Instant::now();
        let mut program = Program::new(start, fixture::idle(7));
        after(&mut program, start, 10, 1000);
        after(&mut program, start, 35, 1100);
        let recent = program.recent().unwrap();
        assert_eq!((recent.elapsed.as_secs(), recent.operations()), (25, 100));
        assert_eq!(program.total()[Algorithm::P256Sign].batched, 1100);
    }

    #[test]
    fn history_is_bounded() {
        let start = Instant::now();
        let mut program = Program::new(start, fixture::idle(7));
        (1..2 * HISTORY as u64).for_each(|second| after(&mut program, start, second, second));
        assert_eq!(program.rates().len(), HISTORY - 1);
    }

    #[test]
    fn a_page_that_becomes_unreadable_says_so_and_starts_afresh() {
        let start = Instant::now();
        let mut program = Program::new(start, fixture::idle(7));
        let broken = Sample { snapshot: Err(PageError::WrongVersion { found: 9 }), ..fixture::idle(7) };
        program.update(start + Duration::from_secs(1), broken);
        assert!(program.snapshot().is_none() && program.interval().is_none());
        assert_eq!(program.warnings().len(), 1);
        assert!(program.warnings()[0].message.contains("version 9"));
        after(&mut program, start, 2, 50);
        assert!(program.snapshot().is_some() && program.interval().is_none());
    }

    #[test]
    fn warnings_of_engines_and_counters_stand_together_gravest_first() {
        let state = fixture::troubled();
        let warnings = state.programs()[0].warnings();
        let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
        assert_eq!(codes, ["engine-open", "engine-disabled"]);
        assert!(
            warnings[1].fix.contains("hasten engine enable isal 4242"),
            "one of its processes: {}",
            warnings[1].fix
        );
    }

    #[test]
    fn a_page_that_tells_nothing_of_engines_is_an_older_ones() {
        let mut sample = fixture::idle(1);
        assert!(
            Program::new(Instant::now(), fixture::idle(1)).warnings().is_empty(),
            "no engine on this CPU"
        );
        sample.snapshot.as_mut().unwrap().control = None;
        let warnings = Program::new(Instant::now(), sample).warnings();
        assert_eq!((warnings.len(), warnings[0].code), (1, "older-page"));
    }
}
