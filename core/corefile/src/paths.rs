//! How an object is held: a shortest path of references from a root.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use crate::graph::Graph;
use crate::layout::InstanceType;
use crate::maps::NONE;
use crate::references::{Name, References};
use crate::roots::Holder;

/// Between an object and its property: a table, and a cell.
const PARTS: usize = 2;
/// Held by a root.
const ROOT: u32 = NONE - 1;

/// One object on the way from a root, and how the one before holds it.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// `.name`, `[index]`, or a word in parentheses; of the first one, which root.
    pub reference: String,
    pub name: String,
    pub address: String,
}

/// For each object, the one that holds it on a shortest path.
#[derive(Debug)]
pub(crate) struct Paths {
    from: Vec<u32>,
    roots: HashMap<u32, Holder>,
}

impl Paths {
    /// Maps hold much that nobody asks for: a way through one counts only where there is no other.
    pub(crate) fn of(graph: &Graph, map: InstanceType, kind: impl Fn(u32) -> InstanceType) -> Self {
        let mut from = vec![NONE; graph.len()];
        let (mut queue, mut later) = (Vec::new(), Vec::new());
        for &(root, _) in &graph.roots {
            if from[root as usize] == NONE {
                from[root as usize] = ROOT;
                queue.push(root);
            }
        }
        while !queue.is_empty() {
            let mut next = 0;
            while let Some(&object) = queue.get(next) {
                next += 1;
                for &to in graph.of_object(object) {
                    if from[to as usize] != NONE {
                        continue;
                    }
                    from[to as usize] = object;
                    match kind(to) == map {
                        true => later.push(to),
                        false => queue.push(to),
                    }
                }
            }
            queue = std::mem::take(&mut later);
        }
        // Of several holders the one that comes first.
        Self { from, roots: graph.roots.iter().rev().copied().collect() }
    }

    /// From the root's object to the one that is asked for; nothing if no root leads there.
    pub(crate) fn to(&self, object: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = object;
        while at < ROOT {
            path.push(at);
            at = self.from[at as usize];
        }
        path.reverse();
        if at == ROOT { path } else { Vec::new() }
    }

    /// The same in words; `name` gives an object's name and address.
    pub(crate) fn steps(
        &self,
        object: u32,
        references: &mut References<'_>,
        name: impl Fn(u32) -> (String, String),
    ) -> Vec<Step> {
        let path = self.to(object);
        let Some(first) = path.first() else { return Vec::new() };
        let root = self.roots.get(first).map_or("", |holder| holder.name()).to_owned();
        let step = |reference, at| {
            let (name, address) = name(at);
            Step { reference, name, address }
        };
        let mut steps = vec![step(root, *first)];
        let (mut at, mut found) = (0, Vec::new());
        while at + 1 < path.len() {
            found.clear();
            references.each(path[at], |name, to| found.push((name, to)));
            let next = seen(&found, &path, at).unwrap_or(at + 1);
            steps.push(step(called(&found, path[next], &references.names), path[next]));
            at = next;
        }
        steps
    }
}

/// Where the way goes on in the eyes of JavaScript: an array of properties, or a table and a cell of it, is no object of its own.
fn seen(found: &[(Name, u32)], path: &[u32], at: usize) -> Option<usize> {
    let is_seen = |to: u32| {
        found.iter().any(|(name, found)| *found == to && matches!(name, Name::Property(_) | Name::Index(_)))
    };
    (at + 1..path.len().min(at + 2 + PARTS)).rev().find(|&next| is_seen(path[next]))
}

fn called(found: &[(Name, u32)], to: u32, names: &[Rc<str>]) -> String {
    // What JavaScript sees comes first.
    match found.iter().find(|(_, found)| *found == to) {
        Some((Name::Property(name), _)) => format!(".{}", names[*name as usize]),
        Some((Name::Index(index), _)) => format!("[{index}]"),
        Some((Name::Internal(name), _)) => format!("({name})"),
        Some((Name::Hidden(word), _)) => format!("(word {word})"),
        // The value of an entry whose key this is.
        None => "(weak map)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_shortest_one_and_avoids_maps() {
        // 0 is the root; 1 is a map, which holds 3 at once; 2 and 4 lead there, too. Nothing leads to 5.
        let graph = Graph::from_edges(&[vec![1, 2], vec![3], vec![4], vec![], vec![3], vec![3]], vec![0]);
        let kinds = [9, 1, 9, 9, 9, 9];
        let paths = Paths::of(&graph, 1, |object| kinds[object as usize]);
        assert_eq!(paths.to(3), [0, 2, 4, 3]);
        assert_eq!(paths.to(1), [0, 1]);
        assert!(paths.to(5).is_empty());
    }
}
