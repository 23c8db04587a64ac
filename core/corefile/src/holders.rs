//! Who alone holds much: the largest objects, classes that one object holds, and the tree of all.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::dominators::Dominators;
use crate::graph::Graph;
use crate::maps::NONE;
use crate::pages::Pages;
use crate::report::Retainer;
use crate::roots::Holder;
use crate::walk::Objects;

const LARGEST: usize = 20;
const CHAIN: usize = 12;
/// So many objects of one class, most of which one object holds, may be a leak.
const MANY: u64 = 1000;
/// If no object alone holds them, such a part of everything is told nevertheless: two arrays lead to each object while one grows.
const PART: u64 = 4;
const SUSPECTS: usize = 5;
/// The tree's boxes: so small a share of everything is not told, and so many are enough for any eye.
const SMALLEST: u64 = 2000;
const BOXES: usize = 1500;
const DEPTH: usize = 24;

/// Many objects of one class that live through one other object, or are a large part of the heap.
#[derive(Debug, Clone, Serialize)]
pub struct Suspect {
    pub name: String,
    pub count: u64,
    pub retained_bytes: u64,
    /// Of the objects of the class, those that this one holds.
    pub share: f64,
    /// From the object that holds them to the root; nothing, if several lead to each of them.
    pub held_by: Vec<String>,
    /// One of them.
    pub example: String,
}

/// A box of the tree of who alone holds what: an object, or several small ones of one class.
#[derive(Debug, Clone, Serialize)]
pub struct TreeBox {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    pub count: u64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<TreeBox>,
}

/// What is known of a heap whose sizes are told.
pub(crate) struct Holders<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) pages: &'a Pages,
    pub(crate) objects: &'a Objects,
    pub(crate) live: &'a Dominators,
    /// Of the objects of each map.
    pub(crate) names: &'a [String],
    pub(crate) retained: &'a [u64],
}

impl Holders<'_> {
    fn map(&self, number: u32) -> u32 {
        self.objects.maps[self.live.objects[number as usize] as usize]
    }

    fn name(&self, number: u32) -> &str {
        &self.names[self.map(number) as usize]
    }

    fn address(&self, number: u32) -> String {
        let word = self.objects.words[self.live.objects[number as usize] as usize];
        format!("{:x}", self.pages.address(word) + 1)
    }

    /// From the nearest to the farthest, and the root where the chain reaches it.
    fn chain(&self, roots: &HashMap<u32, Holder>, number: u32) -> Vec<String> {
        let by = |number: &u32| Some(self.live.by[*number as usize]).filter(|&by| by != 0);
        let chain: Vec<u32> = std::iter::successors(by(&number), by).take(CHAIN).collect();
        let last = self.live.objects[chain.last().copied().unwrap_or(number) as usize];
        let root = roots.get(&last).filter(|_| chain.len() < CHAIN).map(|holder| holder.name().to_owned());
        let told = |by| format!("{} @{}", self.name(by), self.address(by));
        chain.into_iter().map(told).chain(root).collect()
    }

    /// Of several holders the one that comes first.
    fn roots(&self) -> HashMap<u32, Holder> {
        self.graph.roots.iter().rev().copied().collect()
    }

    pub(crate) fn largest(&self) -> Vec<Retainer> {
        let mut numbers: Vec<u32> = (1..self.live.objects.len() as u32).collect();
        let size = |number: &u32| Reverse(self.retained[*number as usize]);
        if numbers.len() > LARGEST {
            numbers.select_nth_unstable_by_key(LARGEST, size);
            numbers.truncate(LARGEST);
        }
        numbers.sort_by_key(|number| (size(number), *number));
        let roots = self.roots();
        numbers
            .into_iter()
            .map(|number| Retainer {
                address: self.address(number),
                name: self.name(number).to_owned(),
                retained_bytes: self.retained[number as usize],
                held_by: self.chain(&roots, number),
            })
            .collect()
    }

    /// Classes of JavaScript most of whose objects one other holds, and those that fill much of the heap though several do.
    pub(crate) fn suspects(&self) -> Vec<Suspect> {
        let mut classes: HashMap<&str, u32> = HashMap::new();
        let of_map: Vec<u32> = self
            .names
            .iter()
            .map(|name| {
                let next = classes.len() as u32;
                if name.starts_with('(') { NONE } else { *classes.entry(name).or_insert(next) }
            })
            .collect();
        let class = |number: u32| of_map[self.map(number) as usize];
        let numbers = || (1..self.live.objects.len() as u32).filter(|&number| class(number) != NONE);
        // By majority: who is named most often is left over, if anybody is named for more than half.
        let mut votes = vec![(0_u32, 0_u32); classes.len()];
        for number in numbers() {
            let by = self.live.by[number as usize];
            match &mut votes[class(number) as usize] {
                (named, votes) if *named == by => *votes += 1,
                (named, votes @ 0) => (*named, *votes) = (by, 1),
                (_, votes) => *votes -= 1,
            }
        }
        let mut found = vec![Held::default(); classes.len()];
        for number in numbers() {
            let held = &mut found[class(number) as usize];
            held.all += 1;
            if self.live.by[number as usize] == votes[class(number) as usize].0 {
                held.count += 1;
                held.bytes += self.retained[number as usize];
                held.example = number;
            }
        }
        let mut suspects: Vec<(&Held, u32)> = found.iter().zip(votes.iter().map(|vote| vote.0)).collect();
        suspects.retain(|(held, by)| {
            let is_told = *by != 0 || held.bytes > self.retained[0] / PART;
            is_told && held.count >= MANY && held.count * 2 > held.all
        });
        suspects.sort_by_key(|(held, by)| (Reverse(held.bytes), *by));
        suspects.truncate(SUSPECTS);
        let roots = self.roots();
        let told = |(held, by): (&Held, u32)| Suspect {
            name: self.name(held.example).to_owned(),
            count: held.count,
            retained_bytes: held.bytes,
            share: held.count as f64 / held.all as f64,
            held_by: match by {
                0 => Vec::new(),
                _ => std::iter::once(format!("{} @{}", self.name(by), self.address(by)))
                    .chain(self.chain(&roots, by))
                    .collect(),
            },
            example: self.address(held.example),
        };
        suspects.into_iter().map(told).collect()
    }

    /// The largest boxes of the tree, those in others inside of them.
    pub(crate) fn tree(&self) -> TreeBox {
        let (mut below, mut beside) =
            (vec![0_u32; self.live.objects.len()], vec![0_u32; self.live.objects.len()]);
        for number in (1..self.live.objects.len()).rev() {
            let by = self.live.by[number] as usize;
            beside[number] = std::mem::replace(&mut below[by], number as u32);
        }
        let tree = Tree { holders: self, below, beside, smallest: self.retained[0] / SMALLEST };
        let mut left = BOXES;
        let inside = tree.inside(0, DEPTH, &mut left);
        let (name, bytes) = ("everything".to_owned(), self.retained[0]);
        TreeBox { name, address: String::new(), count: self.live.objects.len() as u64 - 1, bytes, inside }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    all: u64,
    count: u64,
    bytes: u64,
    example: u32,
}

/// The tree of dominators as lists: the first below each, and the next beside it.
struct Tree<'a> {
    holders: &'a Holders<'a>,
    below: Vec<u32>,
    beside: Vec<u32>,
    smallest: u64,
}

impl Tree<'_> {
    fn inside(&self, number: u32, depth: usize, left: &mut usize) -> Vec<TreeBox> {
        let holders = self.holders;
        let mut large: Vec<u32> = Vec::new();
        // Small ones by class: a map of a million sessions is one box.
        let mut small: HashMap<&str, (u64, u64)> = HashMap::new();
        let mut at = self.below[number as usize];
        while at != 0 {
            let bytes = holders.retained[at as usize];
            if bytes > self.smallest && depth > 0 {
                large.push(at);
            } else {
                let (count, all) = small.entry(holders.name(at)).or_default();
                (*count, *all) = (*count + 1, *all + bytes);
            }
            at = self.beside[at as usize];
        }
        large.sort_unstable_by_key(|&number| (Reverse(holders.retained[number as usize]), number));
        large.truncate(*left);
        *left -= large.len();
        let mut boxes: Vec<TreeBox> = Vec::new();
        for number in large {
            boxes.push(TreeBox {
                name: holders.name(number).to_owned(),
                address: holders.address(number),
                count: 1,
                bytes: holders.retained[number as usize],
                inside: self.inside(number, depth - 1, left),
            });
        }
        let mut groups: Vec<_> = small.into_iter().filter(|(_, (_, bytes))| *bytes > self.smallest).collect();
        groups.sort_unstable_by_key(|(name, (_, bytes))| (Reverse(*bytes), *name));
        groups.truncate(*left);
        *left -= groups.len();
        boxes.extend(groups.into_iter().map(|(name, (count, bytes))| TreeBox {
            name: name.to_owned(),
            address: String::new(),
            count,
            bytes,
            inside: Vec::new(),
        }));
        boxes
    }
}
