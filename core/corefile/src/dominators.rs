//! Who alone holds what: dominators by the semi-NCA algorithm (Georgiadis, 2005), in compact numbers.

use crate::graph::{Graph, Keep};
use crate::maps::NONE;

/// The objects that are alive, in the order of a depth-first search; number 0 stands for all roots.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// The object with a number.
    pub(crate) objects: Vec<u32>,
    /// The number of an object; [`NONE`] if nothing holds it.
    pub(crate) numbers: Vec<u32>,
    /// The number of the one that dominates.
    pub(crate) by: Vec<u32>,
}

impl Dominators {
    /// Objects that live through others and count as roots all the same are those that `also` tells. The edges of the graph are
    /// forgotten as soon as they are not needed, but for what is to be kept.
    pub(crate) fn of(graph: &mut Graph, also: impl Fn(u32) -> bool, keep: Keep) -> Self {
        let mut found = Self { objects: vec![NONE], numbers: vec![NONE; graph.len()], by: vec![0] };
        found.search(graph);
        // As if the search had come to them last from the root: it has been there.
        let also: Vec<u32> =
            (1..found.objects.len() as u32).filter(|&number| also(found.objects[number as usize])).collect();
        let (first, from) = found.predecessors(graph, &also);
        graph.keep(keep);
        let semi = found.semidominators(&first, &from);
        for (number, &semi) in semi.iter().enumerate().skip(1) {
            let mut by = found.by[number];
            while by > semi {
                by = found.by[by as usize];
            }
            found.by[number] = by;
        }
        found
    }

    /// `by` holds the parents in the tree of the search.
    fn semidominators(&self, first: &[u32], from: &[u32]) -> Vec<u32> {
        let mut semi = vec![0; self.objects.len()];
        let mut forest: Vec<Link> =
            self.by.iter().map(|&parent| Link { ancestor: parent, least: 0 }).collect();
        let mut path = Vec::new();
        for number in (1..self.objects.len()).rev() {
            let mut least = self.by[number];
            for &before in &from[first[number + 1] as usize..first[number + 2] as usize] {
                // Nothing is less than the root.
                if least == 0 {
                    break;
                }
                let before = match before as usize <= number {
                    true => before,
                    false => evaluate(before, number as u32, &mut forest, &mut path),
                };
                least = least.min(before);
            }
            semi[number] = least;
            forest[number].least = least;
        }
        semi
    }

    fn search(&mut self, graph: &Graph) {
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for &(root, _) in &graph.roots {
            self.enter(root, 0, &mut stack);
            while let Some((object, next)) = stack.last_mut() {
                let (edges, object) = (graph.of_object(*object), *object);
                let unseen = edges[*next as usize..].iter().position(|&to| self.numbers[to as usize] == NONE);
                match unseen {
                    Some(skip) => {
                        *next += skip as u32 + 1;
                        let to = edges[*next as usize - 1];
                        self.enter(to, self.numbers[object as usize], &mut stack);
                    }
                    None => _ = stack.pop(),
                }
            }
        }
    }

    fn enter(&mut self, object: u32, parent: u32, stack: &mut Vec<(u32, u32)>) {
        if self.numbers[object as usize] != NONE {
            return;
        }
        self.numbers[object as usize] = self.objects.len() as u32;
        self.objects.push(object);
        self.by.push(parent);
        stack.push((object, 0));
    }

    /// Those of a number are in the second list, from `first[number + 1]` to `first[number + 2]`.
    fn predecessors(&self, graph: &Graph, also: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let count = self.objects.len();
        let mut first = vec![0_u32; count + 1];
        self.edges(graph, also, |_, to| first[to as usize + 1] += 1);
        for number in 0..count {
            first[number + 1] += first[number];
        }
        let mut from = vec![0; first[count] as usize];
        // Filled from each one's end, which turns into its start.
        first.push(first[count]);
        self.edges(graph, also, |number, to| {
            let next = &mut first[to as usize + 1];
            *next -= 1;
            from[*next as usize] = number;
        });
        (first, from)
    }

    /// Calls for every edge but those from parents in the tree of the search, which are known already.
    fn edges(&self, graph: &Graph, also: &[u32], mut each: impl FnMut(u32, u32)) {
        let mut edge = |number: u32, to: u32| {
            if self.by[to as usize] != number && to != number {
                each(number, to);
            }
        };
        graph.roots.iter().for_each(|&(root, _)| edge(0, self.numbers[root as usize]));
        also.iter().for_each(|&number| edge(0, number));
        for (number, &object) in self.objects.iter().enumerate().skip(1) {
            graph.of_object(object).iter().for_each(|&to| edge(number as u32, self.numbers[to as usize]));
        }
    }

    /// What an object keeps in a part of it, such as its array of elements, is its own: those who are dominated by a part come to
    /// who dominates the part, but for those that are parts themselves.
    pub(crate) fn lift(&mut self, is_part: impl Fn(u32) -> bool, stays: impl Fn(u32) -> bool) {
        for number in 1..self.objects.len() {
            let mut by = self.by[number];
            if by == 0 || !is_part(self.objects[by as usize]) || stays(self.objects[number]) {
                continue;
            }
            while by != 0 && is_part(self.objects[by as usize]) {
                by = self.by[by as usize];
            }
            self.by[number] = by;
        }
    }

    /// The bytes that would be free without each.
    pub(crate) fn retained(&self, sizes: &[u32]) -> Vec<u64> {
        let own = |&object: &u32| sizes.get(object as usize).map_or(0, |&size| u64::from(size));
        let mut retained: Vec<u64> = self.objects.iter().map(own).collect();
        for number in (1..retained.len()).rev() {
            retained[self.by[number] as usize] += retained[number];
        }
        retained
    }
}

/// A node of the forest of those that were processed: an ancestor, and the least semidominator on the way there, its own included, the ancestor's not.
#[derive(Clone, Copy)]
struct Link {
    ancestor: u32,
    least: u32,
}

/// The least semidominator on the way from `node` up to those that were processed, `last` not included.
fn evaluate(node: u32, last: u32, forest: &mut [Link], path: &mut Vec<u32>) -> u32 {
    let mut at = node;
    while forest[at as usize].ancestor > last {
        path.push(at);
        at = forest[at as usize].ancestor;
    }
    let mut above = forest[at as usize];
    while let Some(below) = path.pop() {
        let link = &mut forest[below as usize];
        link.ancestor = above.ancestor;
        link.least = link.least.min(above.least);
        above = *link;
    }
    above.least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition: without its dominator, an object cannot be reached.
    fn reached_without(graph: &Graph, without: u32) -> Vec<bool> {
        let mut seen = vec![false; graph.len()];
        let mut stack: Vec<u32> = graph.roots.iter().map(|&(root, _)| root).collect();
        while let Some(object) = stack.pop() {
            if object != without && !std::mem::replace(&mut seen[object as usize], true) {
                stack.extend(graph.of_object(object));
            }
        }
        seen
    }

    #[test]
    fn a_dominator_is_on_every_path_and_the_last_such() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let count = 2 + random(14);
            let edges: Vec<Vec<u32>> =
                (0..count).map(|_| (0..random(4)).map(|_| random(count) as u32).collect()).collect();
            let mut graph = Graph::from_edges(&edges, vec![0, random(count) as u32]);
            let found = Dominators::of(&mut graph, |_| false, Keep::Edges);
            for number in 1..found.objects.len() {
                let object = found.objects[number];
                let mut dominators: Vec<u32> = (0..count as u32)
                    .filter(|&other| other != object && !reached_without(&graph, other)[object as usize])
                    .collect();
                let mut chain = Vec::new();
                let mut by = found.by[number];
                while by != 0 {
                    chain.push(found.objects[by as usize]);
                    by = found.by[by as usize];
                }
                chain.sort_unstable();
                dominators.sort_unstable();
                assert_eq!(chain, dominators, "object {object} of {edges:?}");
            }
        }
    }
}
