//! The possible settings as a search sees them: knobs with a few levels each.

use serde::{Deserialize, Serialize};

/// All knobs that apply to the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    pub dimensions: Vec<Dimension>,
    /// Settings by knob and level, the most promising first; unnamed ones come last.
    #[serde(default)]
    pub order: Vec<(usize, usize)>,
}

/// One knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    pub name: String,
    /// Its possible values; the first is how the service runs without it.
    pub levels: Vec<String>,
    /// Whether neighbouring levels are similar, as sizes are and names are not.
    pub ordered: bool,
}

/// One level of each knob, by index; all zero is the service as its owner runs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Candidate(pub Vec<usize>);

impl Space {
    /// The service as its owner runs it.
    #[must_use]
    pub fn baseline(&self) -> Candidate {
        Candidate(vec![0; self.dimensions.len()])
    }

    /// Every setting, in the order in which they are tried.
    #[must_use]
    pub fn in_order(&self) -> Vec<(usize, usize)> {
        let levels = |(knob, dimension): (usize, &Dimension)| {
            (1..dimension.levels.len()).map(move |level| (knob, level))
        };
        let all: Vec<_> = self.dimensions.iter().enumerate().flat_map(levels).collect();
        let named = self.order.iter().filter(|setting| all.contains(setting)).copied();
        let rest = all.iter().filter(|setting| !self.order.contains(setting)).copied();
        named.chain(rest).collect()
    }

    /// `knob=level` of every knob that is set.
    #[must_use]
    pub fn describe(&self, candidate: &Candidate) -> String {
        let set: Vec<_> = candidate
            .set()
            .map(|(knob, level)| {
                let dimension = &self.dimensions[knob];
                format!("{}={}", dimension.name, dimension.levels[level])
            })
            .collect();
        if set.is_empty() { "stock".to_owned() } else { set.join(" ") }
    }
}

impl Candidate {
    /// The same with one knob at `level`.
    #[must_use]
    pub fn with(&self, knob: usize, level: usize) -> Self {
        let mut changed = self.clone();
        changed.0[knob] = level;
        changed
    }

    /// Knobs that are set, with their levels.
    pub fn set(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().copied().enumerate().filter(|&(_, level)| level != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_described_by_what_differs_from_stock() {
        let dimension = |name: &str, levels: [&str; 2]| Dimension {
            name: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
            ordered: false,
        };
        let space = Space {
            dimensions: vec![dimension("tls", ["off", "on"]), dimension("gzip", ["off", "on"])],
            order: vec![(1, 1), (7, 1)],
        };
        assert_eq!(space.in_order(), [(1, 1), (0, 1)]);
        assert_eq!(space.describe(&space.baseline()), "stock");
        assert_eq!(space.describe(&space.baseline().with(1, 1)), "gzip=on");
    }
}
