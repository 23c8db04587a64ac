//! Whether an engine is used at all: a circuit breaker as a pure state machine.
//!
//! A closed breaker lets everything through. A fault opens it, and it lets nothing through for a time that doubles with
//! every failed attempt. Then it is half open: one probe at a time goes through, and after a few good ones it closes. A
//! probe that never reports loses its place after a while. Time is an argument, all related state is one atomic word,
//! and no lock is taken, so it can be used by any number of threads and in a signal handler.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hasten_names::{BreakerState, Fault};

/// How long a breaker stays open, and what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The time from the fault to the first probe.
    pub first: Duration,
    /// The longest interval; until then it doubles.
    pub longest: Duration,
    /// The number of consecutive good probes that close the breaker.
    pub good: u8,
    /// A probe that has not reported after this time is given up, and another may go.
    pub lease: Duration,
}

impl Settings {
    pub const DEFAULT: Self = Self {
        first: Duration::from_millis(250),
        longest: Duration::from_secs(30),
        good: 3,
        lease: Duration::from_secs(2),
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The right to use the engine once. Its outcome is reported with [`Breaker::succeeded`] or [`Breaker::failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a probe that is not reported holds up the next one"]
pub struct Permit {
    /// `None` while the breaker is closed.
    probe: Option<u8>,
}

impl Permit {
    /// Whether this is an attempt to find out if the engine is back.
    pub const fn is_probe(self) -> bool {
        self.probe.is_some()
    }
}

/// The state of a breaker, as shown to observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub state: BreakerState,
    /// What last opened it.
    pub fault: Option<Fault>,
    /// When its state last changed, in nanoseconds.
    pub since_ns: u64,
    /// When it will be tried again, in nanoseconds; 0 while it is closed.
    pub probe_ns: u64,
    /// How often it has opened from closed.
    pub opened: u32,
}

impl View {
    /// The state and the time of the next attempt, as on the counter page. `is_disabled`: the operator has disabled the
    /// engine there.
    pub const fn shown(&self, is_disabled: bool) -> (BreakerState, u64) {
        match self.state {
            _ if is_disabled => (BreakerState::Disabled, 0),
            BreakerState::Open => (BreakerState::Open, self.probe_ns),
            state => (state, 0),
        }
    }
}

/// One engine's breaker. All times are nanoseconds of one clock that does not go back.
#[derive(Debug)]
pub struct Breaker {
    word: AtomicU64,
    since_ns: AtomicU64,
    opened: AtomicU32,
    disabled: AtomicBool,
    settings: Settings,
    seed: u64,
}

impl Breaker {
    /// A closed breaker. Breakers with different seeds probe at different moments.
    pub const fn new(settings: Settings, seed: u64) -> Self {
        Self {
            word: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            opened: AtomicU32::new(0),
            disabled: AtomicBool::new(false),
            settings,
            seed,
        }
    }

    /// Whether everything is let through: the usual state, which is recognised without reading a clock.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) & Word::STATE == BreakerState::Closed.index() as u64
            && !self.disabled.load(Ordering::Relaxed)
    }

    /// Whether [`admit`](Self::admit) would let an operation through now. Takes no permit.
    pub fn admits(&self, now_ns: u64) -> bool {
        let now = Word::decode(self.word.load(Ordering::Acquire));
        !self.disabled.load(Ordering::Relaxed) && !now.is_waiting(now_ns)
    }

    /// Whether the engine may be used now.
    pub fn admit(&self, now_ns: u64) -> Option<Permit> {
        if self.disabled.load(Ordering::Relaxed) {
            return None;
        }
        let word = self.word.load(Ordering::Acquire);
        if word == 0 {
            return Some(Permit { probe: None });
        }
        let now = Word::decode(word);
        if now.state == BreakerState::Closed {
            return Some(Permit { probe: None });
        }
        if now.is_waiting(now_ns) {
            return None;
        }
        let next = Word {
            state: BreakerState::HalfOpen,
            probing: true,
            probe: now.probe.wrapping_add(1) & Word::PROBE,
            until_ms: milliseconds(now_ns).saturating_add(whole_milliseconds(self.settings.lease)),
            ..now
        };
        self.change(word, next, now.state, now_ns).then_some(Permit { probe: Some(next.probe) })
    }

    /// The engine did its work.
    pub fn succeeded(&self, permit: Permit, now_ns: u64) {
        let Some(probe) = permit.probe else { return };
        self.update(now_ns, |now| {
            if now.state != BreakerState::HalfOpen || !now.probing || now.probe != probe {
                return None;
            }
            let good = now.good + 1;
            if good >= self.settings.good.clamp(1, Word::GOOD) {
                return Some(Word { fault: now.fault, probe: now.probe, ..Word::CLOSED });
            }
            Some(Word { probing: false, good, until_ms: milliseconds(now_ns), ..now })
        });
    }

    /// The engine did not do its work.
    pub fn failed(&self, permit: Permit, fault: Fault, now_ns: u64) {
        self.update(now_ns, |now| match (permit.probe, now.state) {
            (None, BreakerState::Closed) => Some(self.opening(now, fault, 0, now_ns)),
            // Several operations were in progress when it opened; together they are one fault.
            (None, _) => None,
            (Some(probe), BreakerState::HalfOpen) if now.probing && now.probe == probe => {
                Some(self.opening(now, fault, (now.step + 1).min(Word::STEP), now_ns))
            }
            (Some(_), _) => None,
        });
    }

    /// Opens the breaker from outside, for example when the driver reports a lost heartbeat.
    pub fn trip(&self, fault: Fault, now_ns: u64) {
        self.failed(Permit { probe: None }, fault, now_ns);
    }

    pub fn disable(&self) {
        self.disabled.store(true, Ordering::Relaxed);
    }

    /// Lifts [`Self::disable`]. A breaker that was open stays so until its probe.
    pub fn enable(&self) {
        self.disabled.store(false, Ordering::Relaxed);
    }

    pub fn view(&self) -> View {
        let word = Word::decode(self.word.load(Ordering::Acquire));
        let is_disabled = self.disabled.load(Ordering::Relaxed);
        View {
            state: if is_disabled { BreakerState::Disabled } else { word.state },
            fault: Fault::from_number(word.fault.into()),
            since_ns: self.since_ns.load(Ordering::Relaxed),
            probe_ns: word.until_ms.saturating_mul(1_000_000),
            opened: self.opened.load(Ordering::Relaxed),
        }
    }

    fn opening(&self, now: Word, fault: Fault, step: u8, now_ns: u64) -> Word {
        let interval = self.interval(step, now.probe);
        Word {
            state: BreakerState::Open,
            probing: false,
            good: 0,
            step,
            fault: fault.number(),
            probe: now.probe,
            until_ms: milliseconds(now_ns).saturating_add(interval),
        }
    }

    /// The first interval, doubled for each step, at most the longest, and up to a fifth more or less.
    fn interval(&self, step: u8, probe: u8) -> u64 {
        let first = whole_milliseconds(self.settings.first).max(1);
        let longest = whole_milliseconds(self.settings.longest).max(first);
        let plain = first.saturating_mul(1 << step.min(40)).min(longest);
        let opened = u64::from(self.opened.load(Ordering::Relaxed));
        let random = scramble(self.seed ^ (opened << 16) ^ (u64::from(step) << 8) ^ u64::from(probe));
        let fifth = plain / 5;
        plain - fifth + random % (2 * fifth + 1)
    }

    fn update(&self, now_ns: u64, change: impl Fn(Word) -> Option<Word>) {
        loop {
            let word = self.word.load(Ordering::Acquire);
            let now = Word::decode(word);
            let Some(next) = change(now) else { return };
            if self.change(word, next, now.state, now_ns) {
                return;
            }
        }
    }

    fn change(&self, word: u64, next: Word, before: BreakerState, now_ns: u64) -> bool {
        let taken =
            self.word.compare_exchange(word, next.encode(), Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken && before != next.state {
            self.since_ns.store(now_ns, Ordering::Relaxed);
            if before == BreakerState::Closed {
                self.opened.fetch_add(1, Ordering::Relaxed);
            }
        }
        taken
    }
}

/// Everything that must change together: 2 bits of state, 1 probing, 5 good, 5 step, 5 fault, 6 probe, 40 milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    state: BreakerState,
    probing: bool,
    good: u8,
    step: u8,
    /// Its number; 0: none yet.
    fault: u8,
    /// Distinguishes the outstanding probe from one whose place it has taken.
    probe: u8,
    /// Open: when to probe. Half open with an outstanding probe: when it is given up.
    until_ms: u64,
}

impl Word {
    const CLOSED: Self = Self {
        state: BreakerState::Closed,
        probing: false,
        good: 0,
        step: 0,
        fault: 0,
        probe: 0,
        until_ms: 0,
    };
    const STATE: u64 = 3;
    const GOOD: u8 = 31;
    const STEP: u8 = 31;
    const PROBE: u8 = 63;
    const FAULT: u8 = 31;
    /// 34 years.
    const LATEST: u64 = (1 << 40) - 1;

    /// Open until its time, and half open while a probe is outstanding.
    const fn is_waiting(self, now_ns: u64) -> bool {
        let waits = matches!(self.state, BreakerState::Open) || self.probing;
        waits && milliseconds(now_ns) < self.until_ms
    }

    fn encode(self) -> u64 {
        self.state.index() as u64
            | (self.probing as u64) << 2
            | u64::from(self.good & Self::GOOD) << 3
            | u64::from(self.step & Self::STEP) << 8
            | u64::from(self.fault & Self::FAULT) << 13
            | u64::from(self.probe & Self::PROBE) << 18
            | self.until_ms.min(Self::LATEST) << 24
    }

    fn decode(word: u64) -> Self {
        Self {
            state: BreakerState::ALL[(word & Self::STATE) as usize],
            probing: word >> 2 & 1 == 1,
            good: (word >> 3) as u8 & Self::GOOD,
            step: (word >> 8) as u8 & Self::STEP,
            fault: (word >> 13) as u8 & Self::FAULT,
            probe: (word >> 18) as u8 & Self::PROBE,
            until_ms: word >> 24,
        }
    }
}

// The bits of the word have room for all of them.
const _: () = assert!(BreakerState::COUNT == 4 && Fault::COUNT <= Word::FAULT as usize);

const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// splitmix64: spreads differences in a few bits over all bits.
const fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
