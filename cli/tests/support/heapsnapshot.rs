//! A small reader of `.heapsnapshot` files, and dominators as Chrome DevTools computes them, by the plainest algorithm.

use std::collections::HashMap;

use serde_json::Value;

pub(crate) struct Snapshot {
    pub(crate) kinds: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) retained: Vec<u64>,
}

impl Snapshot {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let file: Value = serde_json::from_slice(bytes).unwrap();
        let words = |name: &str| -> Vec<usize> {
            file[name].as_array().unwrap().iter().map(|word| word.as_u64().unwrap() as usize).collect()
        };
        let meta = &file["snapshot"]["meta"];
        let names_of = |list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let (node_kinds, edge_kinds) = (names_of(&meta["node_types"][0]), names_of(&meta["edge_types"][0]));
        let fields = meta["node_fields"].as_array().unwrap().len();
        let (nodes, edges, strings) = (words("nodes"), words("edges"), names_of(&file["strings"]));
        let kinds: Vec<String> = nodes.chunks(fields).map(|node| node_kinds[node[0]].clone()).collect();
        // Bytes outside the heap are of no interest here.
        let outside = |kind: &str| kind == "native" || kind == "synthetic";
        let sizes: Vec<u64> = nodes
            .chunks(fields)
            .zip(&kinds)
            .map(|(node, kind)| if outside(kind) { 0 } else { node[3] as u64 })
            .collect();
        let mut next = edges.chunks(3);
        let essential = |index: usize, node: &[usize], edge: &[usize]| {
            let (kind, to) = (&*edge_kinds[edge[0]], edge[2] / fields);
            // The value of a weak map counts as held by its key.
            let of_table = format!("(table @{})", node[2]);
            let by_table = kind == "internal" && strings[edge[1]].ends_with(&of_table);
            let kept = kind != "weak" && to != index && (kind != "shortcut" || index == 0) && !by_table;
            kept.then_some(to)
        };
        let graph: Vec<Vec<usize>> = nodes
            .chunks(fields)
            .enumerate()
            .map(|(index, node)| {
                next.by_ref().take(node[4]).filter_map(|edge| essential(index, node, edge)).collect()
            })
            .collect();
        Self {
            retained: retained(&graph, &sizes),
            names: nodes.chunks(fields).map(|node| strings[node[1]].clone()).collect(),
            kinds,
            sizes,
        }
    }

    /// How many objects of a constructor there are, and the bytes that they retain.
    pub(crate) fn of(&self, name: &str) -> (u64, u64) {
        let all =
            (0..self.names.len()).filter(|&node| self.kinds[node] == "object" && self.names[node] == name);
        all.fold((0, 0), |(count, bytes), node| (count + 1, bytes + self.retained[node]))
    }

    /// Sizes of the objects that retain most: their own, and what they retain. Strings may be outside the heap.
    pub(crate) fn largest(&self, count: usize) -> Vec<(u64, u64)> {
        let inside = |&node: &usize| self.sizes[node] > 0 && !self.kinds[node].contains("string");
        let mut all: Vec<(u64, u64)> = (0..self.names.len())
            .filter(inside)
            .map(|node| (self.sizes[node], self.retained[node]))
            .collect();
        all.sort_by_key(|&(_, retained)| std::cmp::Reverse(retained));
        all.truncate(count);
        all
    }
}

/// Dominators by iteration (Cooper, Harvey, Kennedy, 2001).
fn retained(graph: &[Vec<usize>], sizes: &[u64]) -> Vec<u64> {
    const NONE: usize = usize::MAX;
    let mut order = Vec::new();
    let mut seen = vec![false; graph.len()];
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((node, next)) = stack.last_mut() {
        match graph[*node].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    let rank: HashMap<usize, usize> = order.iter().enumerate().map(|(rank, &node)| (node, rank)).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for (from, &node) in order.iter().enumerate() {
        graph[node].iter().for_each(|to| before[rank[to]].push(from));
    }
    let root = order.len() - 1;
    let mut by = vec![NONE; order.len()];
    by[root] = root;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for node in (0..root).rev() {
            let known = before[node].iter().copied().filter(|&from| by[from] != NONE);
            let found = known.reduce(|mut a, mut b| {
                while a != b {
                    while a < b {
                        a = by[a];
                    }
                    while b < a {
                        b = by[b];
                    }
                }
                a
            });
            let found = found.unwrap_or(NONE);
            changed |= std::mem::replace(&mut by[node], found) != found;
        }
    }
    let mut bytes: Vec<u64> = order.iter().map(|&node| sizes[node]).collect();
    for node in 0..root {
        bytes[by[node]] += bytes[node];
    }
    let mut retained = vec![0; graph.len()];
    order.iter().zip(bytes).for_each(|(&node, bytes)| retained[node] = bytes);
    retained
}
