//! Which combination to try next.

use std::collections::{BTreeMap, HashMap};

use optimizer::parameter::{IntParam, ParamValue, Parameter};
use optimizer::sampler::tpe::TpeSampler;
use optimizer::{Direction, Study};

use crate::space::Candidate;

pub(super) trait Proposer {
    fn propose(&mut self) -> Candidate;

    /// Lower is better.
    fn learn(&mut self, candidate: &Candidate, cost: f64);
}

/// Tree-structured Parzen estimator: searches where good results are denser than bad ones.
pub(super) struct Tpe {
    study: Study<f64>,
    knobs: Vec<Knob>,
    baseline: Candidate,
}

struct Knob {
    index: usize,
    levels: Vec<usize>,
    /// The position in `levels`, offset by a number unique to the knob: the sampler distinguishes parameters only by
    /// their range.
    place: IntParam,
    first: i64,
}

impl Tpe {
    pub(super) fn new(knobs: &BTreeMap<usize, Vec<usize>>, baseline: &Candidate, seed: u64) -> Self {
        let sampler =
            TpeSampler::builder().seed(seed).n_startup_trials(4).build().expect("the defaults are valid");
        Self {
            study: Study::with_sampler(Direction::Minimize, sampler),
            knobs: knobs.iter().map(|(&index, levels)| Knob::new(index, levels)).collect(),
            baseline: baseline.clone(),
        }
    }
}

impl Knob {
    fn new(index: usize, levels: &[usize]) -> Self {
        let first = index as i64 * 1000;
        let place = IntParam::new(first, first + levels.len() as i64 - 1);
        Self { index, levels: levels.to_vec(), place, first }
    }

    fn level(&self, place: i64) -> usize {
        usize::try_from(place - self.first)
            .ok()
            .and_then(|place| self.levels.get(place))
            .copied()
            .unwrap_or(0)
    }

    fn place_of(&self, level: usize) -> ParamValue {
        let place = self.levels.iter().position(|&known| known == level).unwrap_or(0);
        ParamValue::Int(self.first + place as i64)
    }
}

impl Proposer for Tpe {
    fn propose(&mut self) -> Candidate {
        let mut trial = self.study.ask();
        let mut candidate = self.baseline.clone();
        for knob in &self.knobs {
            let place = knob.place.suggest(&mut trial).unwrap_or(knob.first);
            candidate = candidate.with(knob.index, knob.level(place));
        }
        // `learn` reports the outcome, possibly for a modified candidate.
        candidate
    }

    fn learn(&mut self, candidate: &Candidate, cost: f64) {
        let place = |knob: &Knob| (knob.place.id(), knob.place_of(candidate.0[knob.index]));
        self.study.enqueue(self.knobs.iter().map(place).collect::<HashMap<_, _>>());
        let mut trial = self.study.ask();
        for knob in &self.knobs {
            let _ = knob.place.suggest(&mut trial);
        }
        self.study.tell(trial, Ok::<_, String>(cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_is_cheap() {
        let knobs = BTreeMap::from([(0, vec![0, 1]), (2, vec![0, 3, 5]), (3, vec![0, 1])]);
        let mut tpe = Tpe::new(&knobs, &Candidate(vec![0; 4]), 7);
        let cost = |candidate: &Candidate| match candidate.0[..] {
            [1, 0, 5, 0] => -0.3,
            [1, ..] => -0.1,
            _ => 0.0,
        };
        let mut found = 0;
        for _ in 0..60 {
            let candidate = tpe.propose();
            assert_eq!(candidate.0[1], 0, "a knob that is not searched is left alone");
            found += usize::from(cost(&candidate) == -0.3);
            tpe.learn(&candidate, cost(&candidate));
        }
        assert!(found > 15, "at random it would be 5: {found}");
    }
}
