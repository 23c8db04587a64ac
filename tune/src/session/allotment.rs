//! How the budget is divided. The measurements for the verdict are set aside first.

use serde::{Deserialize, Serialize};

use super::runner::Runner;
use super::{FEWEST_PAIRS, Halt, block};
use crate::measure::Subject;

/// Fewer pairs say nothing about the noise.
const FEWEST_NOISE_PAIRS: usize = 4;

/// The minimum for screening: a few levels, twice.
const LEAST_SCREENING: usize = 10;

/// The number of measurements in the shortest session.
pub const LEAST_ROOM: usize = 2 * FEWEST_NOISE_PAIRS + LEAST_SCREENING + 2 * FEWEST_PAIRS;

/// How often each setting is measured, so that one bad moment does not eliminate it.
const LOOKS: usize = 2;

/// The measurements needed to look at this many settings and to prove what looks good.
pub(super) fn enough_for(settings: usize) -> usize {
    let looks = LOOKS * block::size(settings);
    let is_enough = |room: &usize| Allotment::of(*room).is_some_and(|allotment| allotment.screen >= looks);
    // No phase gets more than half of the rest, so the search terminates.
    (LEAST_ROOM..).find(is_enough).unwrap_or(LEAST_ROOM)
}

/// Measurements for each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Allotment {
    /// Pairs.
    pub(super) noise: usize,
    pub(super) screen: usize,
    pub(super) search: usize,
    /// Pairs, once.
    pub(super) recheck: usize,
    pub(super) ablate: usize,
}

impl Allotment {
    pub(super) fn new<S: Subject>(runner: &mut Runner<'_, S>) -> Result<Self, Halt<S::Stop>> {
        if let Some(allotment) = runner.record.allotment() {
            return Ok(allotment);
        }
        let allotment = Self::of(runner.room()).ok_or_else(|| {
            let seconds = runner.usual_seconds();
            Halt::TooShort {
                seconds,
                budget: runner.settings.budget.as_secs_f64(),
                needed: runner.spent_before().as_secs_f64() + seconds * (LEAST_ROOM as f64 * 1.3 + 1.0),
            }
        })?;
        let time = runner.time_to_measure();
        runner.record.divide(time, allotment);
        Ok(allotment)
    }

    /// `None` if the shortest session does not fit.
    pub(super) fn of(room: usize) -> Option<Self> {
        let noise = (room / 16).clamp(FEWEST_NOISE_PAIRS, 12);
        let recheck = (room / 10).clamp(FEWEST_PAIRS, 24);
        let rest = room.checked_sub(2 * noise + 2 * recheck).filter(|rest| *rest >= LEAST_SCREENING)?;
        // After the ablation the verdict is proven again; without that, ablation is useless.
        let again = 2 * recheck;
        let ablate = (room / 5).min(rest.saturating_sub(again + LEAST_SCREENING));
        let ablate = if ablate >= 2 * FEWEST_PAIRS { ablate } else { 0 };
        let rest = rest - if ablate > 0 { ablate + again } else { 0 };
        let search = if ablate > 0 { rest / 3 } else { 0 };
        Some(Self { noise, screen: rest - search, search, recheck, ablate })
    }

    /// Measurements needed after screening.
    pub(super) fn needed(&self) -> usize {
        let again = if self.ablate > 0 { 2 * self.recheck } else { 0 };
        self.search + 2 * self.recheck + self.ablate + again
    }

    /// Frees what the later phases cannot use at this point; returns whether there was anything to free. `promising` is
    /// the number of knobs that go on, and `is_waiting` says that others have not been tried at all.
    pub(super) fn give_up(&mut self, promising: usize, is_waiting: bool) -> bool {
        let before = *self;
        match promising {
            // Nothing to combine or to ablate; and trying everything comes first.
            _ if (promising < 2 || is_waiting) && self.search + self.ablate > 0 => {
                (self.search, self.ablate) = (0, 0);
            }
            // Nothing to prove so far: late finds get the shortest proof,
            0 if self.recheck > FEWEST_PAIRS => self.recheck = FEWEST_PAIRS,
            // and in the end none.
            0 => self.recheck = 0,
            _ => {}
        }
        *self != before
    }

    /// Restores the time for combinations, if it fits into this many measurements.
    pub(super) fn regain(&mut self, first: &Self, room: usize) {
        if self.ablate > 0 || first.ablate == 0 {
            return;
        }
        let least = 4 * self.recheck + 2 * FEWEST_PAIRS + block::size(1);
        let Some(spare) = room.checked_sub(least) else { return };
        self.ablate = 2 * FEWEST_PAIRS + (spare / 2).min(first.ablate - 2 * FEWEST_PAIRS);
        self.search = (room - 4 * self.recheck - self.ablate).min(first.search.max(block::size(1)));
    }

    /// The most knobs whose contributions can be shown: the winner, and the winner without each of them, often enough.
    pub(super) fn most_knobs(&self) -> usize {
        (self.ablate / FEWEST_PAIRS).saturating_sub(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_few_measurements_are_no_session() {
        assert_eq!(Allotment::of(29), None);
        assert_eq!(Allotment::of(30).unwrap().most_knobs(), 1);
    }

    #[test]
    fn the_shortest_session_is_as_short_as_can_be() {
        assert_eq!(Allotment::of(LEAST_ROOM - 1), None);
        assert!(Allotment::of(LEAST_ROOM).is_some());
        let rooms = [1, 5, 20, 50].map(enough_for);
        assert!(rooms.is_sorted() && rooms[3] < 1000, "{rooms:?}");
    }

    #[test]
    fn a_hundred_measurements_have_all_phases() {
        let allotment = Allotment::of(100).unwrap();
        assert!(allotment.screen >= 15 && allotment.search >= 8, "{allotment:?}");
        assert!(allotment.most_knobs() >= 2, "{allotment:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_promised_twice(room in 0usize..2000) {
            if let Some(allotment) = Allotment::of(room) {
                let Allotment { noise, screen, search, recheck, ablate } = allotment;
                let again = if ablate > 0 { 2 * recheck } else { 0 };
                prop_assert!(2 * noise + screen + search + 2 * recheck + ablate + again <= room);
                let mut later = allotment;
                while later.give_up(0, true) {}
                prop_assert_eq!(later.needed(), 0);
            }
        }

        #[test]
        fn what_is_regained_is_there(room in 40usize..2000, left in 0usize..2000) {
            if let Some(allotment) = Allotment::of(room) {
                let mut later = allotment;
                later.give_up(1, false);
                let without = later.needed();
                later.regain(&allotment, left);
                prop_assert!(later.needed() <= left.max(without), "{later:?} of {left}");
            }
        }
    }
}
