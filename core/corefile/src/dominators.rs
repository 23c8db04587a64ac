//! Who alone holds what: dominators by the semi-NCA algorithm (Georgiadis, 2005), in compact numbers.

use crate::graph::Graph;
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
    /// Objects that live through others and count as roots all the same are those that `also` tells.
    pub(crate) fn of(graph: &Graph, also: impl Fn(u32) -> bool) -> Self {
        let mut found = Self { objects: vec![NONE], numbers: vec![NONE; graph.len()], by: vec![0] };
        found.search(graph);
        // As if the search had come to them last from the root: it has been there.
        let also: Vec<u32> =
            (1..found.objects.len() as u32).filter(|&number| also(found.objects[number as usize])).collect();
        let (first, from) = found.predecessors(graph, &also);
        let parents = found.by.clone();
        let mut semi: Vec<u32> = (0..found.objects.len() as u32).collect();
        let mut label = semi.clone();
        let mut ancestor = parents.clone();
        let mut path = Vec::new();
        for number in (1..found.objects.len()).rev() {
            let mut least = parents[number];
            for &before in &from[first[number] as usize..first[number + 1] as usize] {
                let before = match before as usize <= number {
                    true => before,
                    false => {
                        semi[evaluate(before, number as u32, &mut ancestor, &mut label, &semi, &mut path)
                            as usize]
                    }
                };
                least = least.min(before);
            }
            semi[number] = least;
        }
        for number in 1..found.objects.len() {
            let mut by = parents[number];
            while by > semi[number] {
                by = found.by[by as usize];
            }
            found.by[number] = by;
        }
        found
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

    fn predecessors(&self, graph: &Graph, also: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![0_u32; self.objects.len() + 1];
        let edges = |each: &mut dyn FnMut(u32, u32)| {
            graph.roots.iter().for_each(|&(root, _)| each(0, self.numbers[root as usize]));
            also.iter().for_each(|&number| each(0, number));
            for (number, &object) in self.objects.iter().enumerate().skip(1) {
                for &to in graph.of_object(object) {
                    each(number as u32, self.numbers[to as usize]);
                }
            }
        };
        edges(&mut |_, to| first[to as usize + 1] += 1);
        for number in 0..self.objects.len() {
            first[number + 1] += first[number];
        }
        let mut from = vec![0; first[self.objects.len()] as usize];
        // Filled from each one's end, which turns into its start.
        let mut next: Vec<u32> = first[1..].to_vec();
        edges(&mut |number, to| {
            next[to as usize] -= 1;
            from[next[to as usize] as usize] = number;
        });
        (first, from)
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

/// The node with the least semidominator on the way from `node` up to those that were processed, `last` included.
fn evaluate(
    node: u32,
    last: u32,
    ancestor: &mut [u32],
    label: &mut [u32],
    semi: &[u32],
    path: &mut Vec<u32>,
) -> u32 {
    let mut at = node;
    while ancestor[at as usize] > last {
        path.push(at);
        at = ancestor[at as usize];
    }
    let top = ancestor[at as usize];
    while let Some(below) = path.pop() {
        let above = ancestor[below as usize];
        if semi[label[above as usize] as usize] < semi[label[below as usize] as usize] {
            label[below as usize] = label[above as usize];
        }
        ancestor[below as usize] = top;
    }
    label[node as usize]
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
            let graph = Graph::from_edges(&edges, vec![0, random(count) as u32]);
            let found = Dominators::of(&graph, |_| false);
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
