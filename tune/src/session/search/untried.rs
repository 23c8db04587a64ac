//! Combinations not measured yet, ordered by their gain if knobs were independent.

use std::collections::{BTreeMap, BTreeSet};

use super::Promising;
use crate::space::Candidate;

/// More are not enumerated: with that many, a model finds its way by itself.
const MOST: usize = 10_000;

pub(super) struct Untried {
    /// The most promising last.
    combinations: Vec<Candidate>,
    tried: BTreeSet<Candidate>,
    most_knobs: usize,
}

impl Untried {
    pub(super) fn new(
        knobs: &BTreeMap<usize, Vec<usize>>,
        promising: &[Promising],
        baseline: &Candidate,
        most_knobs: usize,
    ) -> Self {
        let mut combinations = vec![baseline.clone()];
        for (&knob, levels) in knobs {
            if combinations.len() * levels.len() > MOST {
                break;
            }
            let with =
                |one: &Candidate| levels.iter().map(|&level| one.with(knob, level)).collect::<Vec<_>>();
            combinations = combinations.iter().flat_map(with).collect();
        }
        let gain = |candidate: &Candidate| -> f64 {
            let set = |one: &&Promising| candidate.0[one.knob] == one.level;
            promising.iter().filter(set).map(|one| one.mean).sum()
        };
        // Single knobs have been measured already.
        combinations.retain(|candidate| (2..=most_knobs).contains(&candidate.set().count()));
        combinations.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
        Self { combinations, tried: BTreeSet::new(), most_knobs }
    }

    /// The proposal if it is informative, otherwise the most promising combination that is; `None` if none is.
    pub(super) fn or_next(&mut self, proposed: Candidate) -> Option<Candidate> {
        let fits = (2..=self.most_knobs).contains(&proposed.set().count());
        // The combination of everything that helps comes first, whatever is proposed.
        let chosen = if fits && !self.tried.is_empty() && !self.tried.contains(&proposed) {
            proposed
        } else {
            self.next()?
        };
        self.tried.insert(chosen.clone());
        Some(chosen)
    }

    fn next(&mut self) -> Option<Candidate> {
        while let Some(candidate) = self.combinations.pop() {
            if !self.tried.contains(&candidate) {
                return Some(candidate);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_not_tried_again() {
        let promising = [(0, 1, 0.1), (1, 1, 0.05), (1, 2, 0.08), (2, 1, 0.01)]
            .map(|(knob, level, mean)| Promising { knob, level, mean });
        let knobs = BTreeMap::from([(0, vec![0, 1]), (1, vec![0, 1, 2]), (2, vec![0, 1])]);
        let baseline = Candidate(vec![0; 3]);
        let mut untried = Untried::new(&knobs, &promising, &baseline, 2);
        let mut tried = Vec::new();
        while let Some(candidate) = untried.or_next(baseline.clone()) {
            tried.push(candidate.0);
        }
        assert_eq!(tried, [[1, 2, 0], [1, 1, 0], [1, 0, 1], [0, 2, 1], [0, 1, 1]]);
        assert_eq!(untried.or_next(Candidate(vec![1, 2, 0])), None);
    }
}
