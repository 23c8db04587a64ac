//! Reruns V8's young generation with another limit: fill a semi-space, collect, keep what is young, promote what is
//! older, double the semi-space once enough has survived.

use super::cost::Cost;
use super::lifetime::Lifetimes;
use super::observe::{MB, Observed, SMALLEST, Step, median};

/// However much was kept, a program gets this fraction of a semi-space before the next scavenge.
const LEAST_ROOM: f64 = 0.1;

/// Scavenges whose survivors together show how much more or less than usual survived at that time.
const BLOCK: usize = 12;

/// A block's survivors are assumed to differ from the usual by this factor at most.
const VARIATION: f64 = 4.0;

/// The fraction of a larger young generation that V8 adds to the old one's allowed growth.
const YOUNG_IN_LIMIT: f64 = 0.25;

/// The outcome of a run of the young generation; bytes and milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub scavenges: f64,
    pub pause_ms: f64,
    pub copied: f64,
    pub promoted: f64,
    pub fulls: f64,
    /// The size that a semi-space had at the end.
    pub reached: f64,
}

/// A run of consecutive collections as a script that can be replayed at any size.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    allocated: f64,
    /// The first semi-space.
    capacity: f64,
    /// Until when (in bytes allocated), and how much more than usual survived.
    blocks: Vec<(f64, f64)>,
    /// The causes of full collections: growth of the old generation since the last one, and the semi-space at that
    /// moment.
    fulls: Vec<(f64, f64)>,
    /// The fraction of allocated bytes that is born old.
    born_old: f64,
}

impl Script {
    pub(crate) fn of(run: &[Step], lifetimes: &Lifetimes) -> Script {
        let born_old = born_old(run);
        Script {
            allocated: run.iter().map(|step| step.allocated).sum(),
            capacity: run.first().map_or(SMALLEST, |step| step.capacity.max(SMALLEST)),
            blocks: blocks(run, lifetimes),
            fulls: fulls(run, born_old),
            born_old,
        }
    }

    pub(crate) fn play(
        &self,
        observed: &Observed,
        lifetimes: &Lifetimes,
        cost: &Cost,
        limit: f64,
    ) -> Outcome {
        let mut state = State::new(self.capacity.min(limit));
        let mut block = 0;
        while state.clock < self.allocated {
            let capacity = state.capacity;
            let mut step = (observed.occupancy * capacity - state.kept).max(LEAST_ROOM * capacity);
            let until_full = (self.threshold(&state) - state.old_growth).max(0.0) / self.born_old.max(1e-9);
            let is_full = until_full < step;
            step = if is_full { until_full.max(LEAST_ROOM * capacity) } else { step };
            step = step.min(self.allocated - state.clock);
            state.clock += step;
            while block + 1 < self.blocks.len() && state.clock > self.blocks[block].0 {
                block += 1;
            }
            let more = self.blocks.get(block).map_or(1.0, |(_, more)| *more);
            state.old_growth += self.born_old * step;
            if state.clock >= self.allocated {
                break;
            }
            let survivors = Survivors::of(&state, step, more, lifetimes);
            match is_full {
                true => state.collect_all(survivors),
                false => state.scavenge(step, survivors, cost),
            }
            state.grow(limit, observed.grows_at_once);
        }
        state.outcome.reached = state.capacity;
        state.outcome
    }

    /// How much the old generation may grow before everything is collected.
    fn threshold(&self, state: &State) -> f64 {
        let next = state.outcome.fulls as usize;
        match self.fulls.get(next).or(self.fulls.last()) {
            Some((growth, capacity)) => {
                (growth + YOUNG_IN_LIMIT * (state.capacity - capacity)).max(growth / 2.0)
            }
            None => f64::INFINITY,
        }
    }
}

struct State {
    clock: f64,
    capacity: f64,
    /// Bytes copied by the last scavenge, and the bytes that had been allocated before it.
    kept: f64,
    kept_age: f64,
    old_growth: f64,
    /// Survivors since the semi-space last grew, as V8 counted them before this collection and after it.
    survived: f64,
    survived_before: f64,
    outcome: Outcome,
}

#[derive(Clone, Copy)]
struct Survivors {
    young: f64,
    older: f64,
}

impl Survivors {
    fn of(state: &State, step: f64, more: f64, lifetimes: &Lifetimes) -> Survivors {
        let young = (more * lifetimes.alive(step)).min(step);
        let older = more * (lifetimes.alive(step + state.kept_age) - lifetimes.alive(step));
        Survivors { young, older: older.clamp(0.0, state.kept) }
    }
}

impl State {
    fn new(capacity: f64) -> State {
        State {
            clock: 0.0,
            capacity,
            kept: 0.0,
            kept_age: 0.0,
            old_growth: 0.0,
            survived: 0.0,
            survived_before: 0.0,
            outcome: Outcome::default(),
        }
    }

    fn scavenge(&mut self, step: f64, survivors: Survivors, cost: &Cost) {
        self.outcome.scavenges += 1.0;
        self.outcome.pause_ms += cost.pause(survivors.young, survivors.older);
        self.outcome.copied += survivors.young;
        self.promote(survivors.older);
        (self.kept, self.kept_age) = (survivors.young, step);
        self.survived_before = self.survived;
        self.survived += survivors.young + survivors.older;
    }

    fn collect_all(&mut self, survivors: Survivors) {
        self.outcome.fulls += 1.0;
        let all = survivors.young + survivors.older;
        self.promote(all);
        (self.kept, self.kept_age) = (0.0, 0.0);
        self.old_growth = 0.0;
        self.survived_before = self.survived;
        self.survived += all;
    }

    fn promote(&mut self, bytes: f64) {
        self.outcome.promoted += bytes;
        self.old_growth += bytes;
    }

    fn grow(&mut self, limit: f64, at_once: bool) {
        let survived = if at_once { self.survived } else { self.survived_before };
        if self.capacity < limit && survived > self.capacity {
            self.capacity = (2.0 * self.capacity).min(limit);
            // Survivors of this collection count towards the next growth only if V8 decided before it.
            self.survived = if at_once { 0.0 } else { self.survived - self.survived_before };
            self.survived_before = 0.0;
        }
    }
}

fn blocks(run: &[Step], lifetimes: &Lifetimes) -> Vec<(f64, f64)> {
    let mut blocks = Vec::new();
    let (mut clock, mut observed, mut usual, mut count) = (0.0, 0.0, 0.0, 0);
    for step in run {
        clock += step.allocated;
        if step.is_full {
            continue;
        }
        observed += step.copied;
        usual += lifetimes.alive(step.allocated);
        count += 1;
        // The beginning is examined closely, because the semi-space grows there.
        if count == if blocks.len() < 4 { BLOCK / 4 } else { BLOCK } {
            blocks.push((clock, variation(observed, usual)));
            (observed, usual, count) = (0.0, 0.0, 0);
        }
    }
    blocks.push((f64::INFINITY, variation(observed, usual)));
    blocks
}

fn variation(observed: f64, usual: f64) -> f64 {
    let little = MB / 16.0;
    ((observed + little) / (usual + little)).clamp(1.0 / VARIATION, VARIATION)
}

/// The old generation grows by what is promoted; the rest of its growth was born there.
fn born_old(run: &[Step]) -> f64 {
    let (mut born, mut allocated) = (0.0, 0.0);
    for pair in run.windows(2) {
        let (before, step) = (&pair[0], &pair[1]);
        if step.is_full {
            continue;
        }
        let growth = (step.used_after - step.copied) - (before.used_after - step.kept);
        born += (growth - step.promoted).max(0.0);
        allocated += step.allocated;
    }
    if allocated > 0.0 { (born / allocated).clamp(0.0, 1.0) } else { 0.0 }
}

fn fulls(run: &[Step], born_old: f64) -> Vec<(f64, f64)> {
    let mut fulls = Vec::new();
    let mut growth = 0.0;
    for step in run {
        growth += born_old * step.allocated;
        if step.is_full {
            fulls.push((growth, step.capacity));
            growth = 0.0;
        } else {
            growth += step.promoted;
        }
    }
    // The first ones follow rules of their own; full collections after the last one resemble the later ones.
    let later: Vec<f64> = fulls.iter().skip(fulls.len() / 2).map(|(growth, _)| *growth).collect();
    let capacity = fulls.last().map(|(_, capacity)| *capacity);
    fulls.extend(capacity.map(|capacity| (median(later).max(MB), capacity)));
    fulls
}
