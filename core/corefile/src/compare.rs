//! Two core files of one process: what has grown between them.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::report::{Report, Retainer};

/// From an earlier core file to a later one.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub before: String,
    pub after: String,
    pub node: String,
    pub live_bytes: [u64; 2],
    pub live_objects: [u64; 2],
    pub external_bytes: [u64; 2],
    /// Constructors whose numbers or bytes changed, the largest growth first.
    pub growth: Vec<Growth>,
    /// Of the later one's largest objects, those that were not among the earlier one's or have grown.
    pub retainers: Vec<Grown>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Growth {
    pub name: String,
    pub count: [u64; 2],
    pub shallow_bytes: [u64; 2],
    /// None where one of the two has no retained sizes.
    pub retained_bytes: Option<[u64; 2]>,
}

impl Growth {
    /// In bytes: of what they retain where that is known, else of themselves.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        let [before, after] = self.retained_bytes.unwrap_or(self.shallow_bytes);
        after.cast_signed() - before.cast_signed()
    }
}

#[derive(Debug, Serialize)]
pub struct Grown {
    #[serde(flatten)]
    pub retainer: Retainer,
    /// None if it was not among the largest before.
    pub retained_before: Option<u64>,
}

impl Comparison {
    #[must_use]
    pub fn of(before: &Report, after: &Report) -> Self {
        let mut notes = Vec::new();
        let process = |report: &Report| report.threads.first().map(|thread| thread.id);
        if before.node != after.node {
            notes.push(format!("the releases differ: {} and {}", before.node, after.node));
        } else if process(before) != process(after) {
            notes.push("these are two processes: only numbers can be compared, not objects".to_owned());
        }
        for (report, which) in [(before, "earlier"), (after, "later")] {
            if let Some(why) = &report.refused {
                notes.push(format!("no retained sizes of the {which} one: {why}"));
            }
        }
        let pair = |of: fn(&Report) -> u64| [of(before), of(after)];
        let (live_bytes, live_objects) =
            (pair(|report| report.heap.live_bytes), pair(|report| report.heap.live_objects));
        Self {
            live_bytes,
            live_objects,
            external_bytes: pair(|report| report.heap.external_bytes),
            growth: growth(before, after),
            retainers: grown(before, &after.retainers),
            before: before.file.display().to_string(),
            after: after.file.display().to_string(),
            node: after.node.clone(),
            notes,
        }
    }
}

fn growth(before: &Report, after: &Report) -> Vec<Growth> {
    let mut growth: HashMap<&str, Growth> = HashMap::new();
    for (index, report) in [before, after].into_iter().enumerate() {
        for entry in &report.histogram {
            let grown = growth.entry(&entry.name).or_insert_with(|| Growth {
                name: entry.name.clone(),
                count: [0; 2],
                shallow_bytes: [0; 2],
                retained_bytes: (before.refused.is_none() && after.refused.is_none()).then_some([0; 2]),
            });
            grown.count[index] = entry.count;
            grown.shallow_bytes[index] = entry.shallow_bytes;
            if let (Some(both), Some(bytes)) = (&mut grown.retained_bytes, entry.retained_bytes) {
                both[index] = bytes;
            }
        }
    }
    let mut growth: Vec<Growth> = growth.into_values().collect();
    growth.retain(|growth| growth.bytes() != 0 || growth.count[0] != growth.count[1]);
    growth.sort_by(|a, b| (Reverse(a.bytes()), &a.name).cmp(&(Reverse(b.bytes()), &b.name)));
    growth
}

/// Old objects keep their address, unless a collection has compacted their page; then it is their name and holders that tell.
fn grown(before: &Report, after: &[Retainer]) -> Vec<Grown> {
    let names = |retainer: &Retainer| -> Vec<String> {
        let name = |by: &String| by.split(" @").next().unwrap_or_default().to_owned();
        std::iter::once(retainer.name.clone()).chain(retainer.held_by.iter().map(name)).collect()
    };
    let with = after.iter().map(|retainer| {
        let same = |old: &&Retainer| old.address == retainer.address && old.name == retainer.name;
        let alike = |old: &&Retainer| names(old) == names(retainer);
        let old = &before.retainers;
        let old = old.iter().find(same).or_else(|| old.iter().find(alike));
        Grown { retained_before: old.map(|old| old.retained_bytes), retainer: retainer.clone() }
    });
    let mut grown: Vec<Grown> = with
        .filter(|grown| grown.retained_before.is_none_or(|before| grown.retainer.retained_bytes > before))
        .collect();
    let bytes = |grown: &Grown| grown.retainer.retained_bytes - grown.retained_before.unwrap_or(0);
    grown.sort_by_key(|grown| Reverse(bytes(grown)));
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Entry;

    fn report(entries: &[(&str, u64, u64)], retainers: &[(&str, &str, u64, &str)]) -> Report {
        let entry = |&(name, count, bytes): &(&str, u64, u64)| Entry {
            name: name.to_owned(),
            count,
            shallow_bytes: bytes / 2,
            retained_bytes: Some(bytes),
        };
        let retainer = |&(address, name, bytes, by): &(&str, &str, u64, &str)| Retainer {
            address: address.to_owned(),
            name: name.to_owned(),
            retained_bytes: bytes,
            held_by: vec![by.to_owned()],
        };
        Report {
            histogram: entries.iter().map(entry).collect(),
            retainers: retainers.iter().map(retainer).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn what_has_grown_comes_first_and_what_has_moved_is_known_again() {
        let before = report(
            &[("Session", 10, 1000), ("Gone", 5, 300), ("Same", 1, 7)],
            &[("a1", "Map", 1000, "Cache @b1"), ("a2", "Array", 500, "Log @b2")],
        );
        let after = report(
            &[("Session", 90, 9000), ("Same", 1, 7), ("New", 2, 50)],
            &[
                ("a9", "Map", 9000, "Cache @b9"),
                ("a2", "Array", 500, "Log @b2"),
                ("c1", "Set", 80, "(stack)"),
            ],
        );
        let compared = Comparison::of(&before, &after);
        let names: Vec<_> = compared.growth.iter().map(|growth| (&*growth.name, growth.bytes())).collect();
        assert_eq!(names, [("Session", 8000), ("New", 50), ("Gone", -300)]);
        let grown: Vec<_> =
            compared.retainers.iter().map(|grown| (&*grown.retainer.name, grown.retained_before)).collect();
        assert_eq!(grown, [("Map", Some(1000)), ("Set", None)]);
    }

    #[test]
    fn without_retained_sizes_of_both_there_are_none() {
        let (mut before, after) = (report(&[("A", 1, 10)], &[]), report(&[("A", 3, 30)], &[]));
        before.refused = Some("for a reason".to_owned());
        before.histogram[0].retained_bytes = None;
        let compared = Comparison::of(&before, &after);
        assert_eq!((compared.growth[0].retained_bytes, compared.growth[0].bytes()), (None, 10));
        assert!(compared.notes[0].contains("earlier one: for a reason"), "{:?}", compared.notes);
    }
}
