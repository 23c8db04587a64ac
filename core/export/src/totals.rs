//! Adds up what counter pages say, so that no count is ever taken back.
//!
//! A page lives as long as a process that shares it. Its last counts stay in the totals of its program, and a new
//! program of the same name adds to them. All memory here is bounded: any user of the host can make pages, with any
//! names on them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use hasten_telemetry::{
    Algorithm, BreakEven, BreakerState, Counters, Doubt, Engine, EngineCondition, PageHandle, Snapshot,
    Suspension, SuspensionShare, Tiers, Window, boottime,
};

/// More programs than this are counted together, under [`Key::rest`].
const MOST_KEYS: usize = 128;
/// The same where containers are told apart.
const MOST_KEYS_OF_CONTAINERS: usize = 1024;
/// A container never comes back, so it is forgotten after it has ended: when whoever scrapes has had its last counts.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Pages of processes that have ended are remembered: a process may only have been out of sight for a moment.
const MOST_GONE: usize = 512;

/// The labels of a program's series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub program: String,
    pub accelerator: String,
    /// The container's identifier, if containers are told apart and it is in one; otherwise empty.
    pub container: String,
}

/// Distinguishes a page from every other since this host booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageId {
    pub inode: u64,
    pub creator_pid: u32,
    pub started_boottime_ns: u128,
}

/// A page that was read just now.
#[derive(Clone, Debug)]
pub struct Reading {
    pub id: PageId,
    pub key: Key,
    pub counters: Counters,
    pub page: Live,
}

/// What a page says about a running program, besides counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    pub processes: usize,
    /// The accelerator's remark for people.
    pub note: String,
    /// Wall clock at the start, since the epoch.
    pub started: Duration,
    pub engines: Vec<EngineCondition>,
    /// Whether its processes suspend handshakes.
    pub suspension: Vec<SuspensionShare>,
    /// Where its processes have their memory.
    pub tiers: Vec<Tiers>,
    /// The point at which its batches become worthwhile.
    pub break_even: [Option<BreakEven>; Algorithm::COUNT],
}

/// All programs of one name under one accelerator, including those that have ended.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub counters: Counters,
    /// Batched operations that did not fail. A page counts a batch first and its failures a moment later, so the
    /// difference may shrink between looks, but this does not.
    pub good: [u64; Algorithm::COUNT],
    /// Engines that any of them has had: a series that has begun stays.
    pub engines: BTreeSet<Engine>,
    /// Those running now.
    pub live: Vec<Live>,
    /// Counts of the last minute or so, once available.
    pub recent: Option<Window>,
}

/// Programs by the labels of their series.
pub type Programs = BTreeMap<Key, Program>;

/// What is known about this host's programs.
#[derive(Debug, Default)]
pub struct Totals {
    programs: Programs,
    pages: HashMap<PageId, Counted>,
    /// Oldest first.
    gone: VecDeque<PageId>,
    /// Since when nothing of a container runs.
    ended: HashMap<Key, Instant>,
}

/// The part of a page that is already in the totals.
#[derive(Debug)]
struct Counted {
    key: Key,
    counters: Counters,
    is_live: bool,
}

impl Key {
    /// For programs beyond the limit.
    fn rest() -> Self {
        Self { program: "(other)".to_owned(), accelerator: "(other)".to_owned(), container: String::new() }
    }
}

impl Reading {
    #[must_use]
    pub fn new(page: &PageHandle, snapshot: Snapshot, container: String) -> Self {
        let is_alive = |pid| page.processes.iter().any(|process| process.namespace_pid == pid);
        let engines = EngineCondition::all(&snapshot, is_alive, boottime());
        let suspension = SuspensionShare::all(&snapshot, is_alive, boottime());
        let tiers = snapshot.tiers(is_alive).into_values().collect();
        Self {
            id: PageId {
                inode: page.inode,
                creator_pid: snapshot.creator_pid,
                started_boottime_ns: snapshot.started_boottime.as_nanos(),
            },
            counters: snapshot.total(),
            key: Key { program: snapshot.program, accelerator: snapshot.accelerator, container },
            page: Live {
                processes: page.processes.len(),
                engines,
                suspension,
                tiers,
                note: snapshot.note,
                started: snapshot.started,
                break_even: snapshot.break_even,
            },
        }
    }
}

impl Program {
    /// The engine in the page whose processes have most to say about it.
    #[must_use]
    pub fn engine(&self, engine: Engine) -> Option<&EngineCondition> {
        let pages = self.live.iter().flat_map(|page| &page.engines);
        pages
            .filter(|state| state.engine == engine)
            .max_by_key(|state| state.state().map(BreakerState::gravity))
    }

    /// How many processes suspend handshakes or do not, over all pages, and why not.
    #[must_use]
    pub fn suspension(&self) -> BTreeMap<(Suspension, Option<Doubt>), u64> {
        let mut processes = BTreeMap::new();
        for share in self.live.iter().flat_map(|page| &page.suspension) {
            *processes.entry((share.report.state, share.report.doubt)).or_default() += share.processes as u64;
        }
        processes
    }

    /// The lowest among several pages.
    #[must_use]
    pub fn break_even(&self, algorithm: Algorithm) -> Option<BreakEven> {
        let reported = self.live.iter().filter_map(|page| page.break_even[algorithm.index()]);
        reported.min_by_key(|break_even| break_even.lanes)
    }

    fn add(&mut self, news: &Counters) {
        self.counters += news;
        for algorithm in Algorithm::ALL {
            let now = self.counters[algorithm];
            let good = &mut self.good[algorithm.index()];
            *good = (*good).max(now.batched.saturating_sub(now.failed));
        }
    }
}

impl Totals {
    /// Takes in all current pages, and the last look at those that were there before.
    pub fn update(&mut self, live: Vec<Reading>, last_looks: &[Reading]) {
        for reading in last_looks {
            self.count(reading);
        }
        self.programs.values_mut().for_each(|program| program.live.clear());
        self.pages.values_mut().for_each(|page| page.is_live = false);
        for reading in live {
            let key = self.count(&reading);
            let program = self.programs.entry(key).or_default();
            program.engines.extend(reading.page.engines.iter().map(|state| state.engine));
            program.live.push(reading.page);
        }
        self.forget();
        self.forget_containers(Instant::now());
    }

    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Adds the difference from what the page said before. A count smaller than before is damage, or somebody's idea of
    /// a joke, and changes nothing.
    fn count(&mut self, reading: &Reading) -> Key {
        let id = reading.id;
        let key = self.key(reading);
        let page = self.pages.entry(id).or_insert_with(|| Counted {
            key: key.clone(),
            counters: Counters::default(),
            is_live: true,
        });
        page.is_live = true;
        let news = reading.counters.since(&page.counters);
        page.counters += &news;
        self.programs.entry(key.clone()).or_default().add(&news);
        self.gone.retain(|gone| *gone != id);
        key
    }

    /// A page keeps the key that it had first: its texts can change, counts cannot move.
    fn key(&self, reading: &Reading) -> Key {
        if let Some(page) = self.pages.get(&reading.id) {
            return page.key.clone();
        }
        let most = if reading.key.container.is_empty() { MOST_KEYS } else { MOST_KEYS_OF_CONTAINERS };
        match self.programs.contains_key(&reading.key) || self.programs.len() < most {
            true => reading.key.clone(),
            false => Key::rest(),
        }
    }

    fn forget_containers(&mut self, now: Instant) {
        let programs = self.programs.iter().filter(|(key, _)| !key.container.is_empty());
        let over = programs.filter(|(_, program)| program.live.is_empty()).map(|(key, _)| key.clone());
        self.ended = over.map(|key| (key.clone(), self.ended.get(&key).copied().unwrap_or(now))).collect();
        let is_due = |key: &Key| {
            self.ended.get(key).is_some_and(|since| now.saturating_duration_since(*since) > REMEMBERED)
        };
        self.programs.retain(|key, _| !is_due(key));
    }

    fn forget(&mut self) {
        let known: HashSet<PageId> = self.gone.iter().copied().collect();
        let newly = self.pages.iter().filter(|(id, page)| !page.is_live && !known.contains(id));
        self.gone.extend(newly.map(|(id, _)| *id));
        while self.gone.len() > MOST_GONE {
            self.gone.pop_front().map(|id| self.pages.remove(&id));
        }
    }
}

#[cfg(test)]
#[path = "totals_tests.rs"]
mod tests;
