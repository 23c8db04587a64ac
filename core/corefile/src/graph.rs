//! What points to what, and what is held by the program itself.

use std::collections::HashSet;

use crate::bits::Bits;
use crate::bytes::word;
use crate::error::CoreError;
use crate::image::Image;
use crate::layout::{FIRST_NON_STRING, InstanceType, Layout};
use crate::maps::{Map, Maps, NONE};
use crate::objects::View;
use crate::pages::Pages;
use crate::roots::{self, Holder};
use crate::rule::Rule;
use crate::walk::{Objects, Walker, outside};

/// As far from a stack's top as its roots may be.
const STACK: u64 = 8 << 20;
/// With more of them nothing is told anyway.
const UNKNOWN: usize = 1 << 26;
/// A hash table of pairs: the header of an array, and three numbers.
const FIRST_PAIR: usize = 40;
/// Where an object of JavaScript keeps its properties and its elements.
const PROPERTIES: usize = 8;
const ELEMENTS: usize = 16;
/// After so many objects the pages of the file are given back.
const RELIEF: usize = 1 << 20;
const NOT_INTERNALIZED: InstanceType = 1 << 5;

/// Edges of all objects, those of object `i` from `first[i]` to `first[i + 1]`.
#[derive(Debug)]
pub(crate) struct Graph {
    first: Vec<u32>,
    to: Vec<u32>,
    count: usize,
    references: usize,
    /// What can be reached, entries of weak maps included.
    pub(crate) alive: Bits,
    /// Objects of JavaScript whose first edge after that to the map leads to their properties; and those with one to their
    /// elements, which comes next.
    properties: Bits,
    elements: Bits,
    /// In order of importance; one object may have several holders.
    pub(crate) roots: Vec<(u32, Holder)>,
    /// Entries of living weak maps, in the order of their keys; the edges from key to value come last among the key's.
    pub(crate) pairs: Vec<Pair>,
    /// The type of weak maps' tables.
    pub(crate) pairs_type: InstanceType,
    /// What is missing from the roots: sizes that depend on them are not known then.
    pub(crate) missing: Vec<&'static str>,
    /// For each word that looks like a pointer to an object, and is none, the object that it is in. The dead have many.
    unknown: Vec<u32>,
}

/// What of a graph is asked for when the dominators are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    Nothing,
    /// How many edges each object has.
    Degrees,
    Edges,
}

/// An entry of a weak map: the value lives as long as both the table and the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) key: u32,
    pub(crate) value: u32,
    pub(crate) table: u32,
}

/// Where the objects of a map keep their pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointers {
    /// Nowhere; the maps of such objects are among the roots.
    None,
    /// In every word but these, whose references are weak by the type of the object.
    Except(usize, usize),
    /// In the first bytes only.
    Head(usize),
    /// In pairs of a weak key and a value that depends on it.
    Pairs,
    /// As `Except`, but for the next realm.
    NativeContext,
}

impl Pointers {
    pub(crate) fn of(map: &Map, layout: &Layout, pairs: InstanceType) -> Self {
        match layout.name(map.kind) {
            _ if map.kind == pairs => Self::Pairs,
            "BYTECODE_ARRAY" => Self::Head(layout.bytecode_header as usize),
            "INSTRUCTION_STREAM" => Self::Head(32),
            "CODE" if layout.major < 20 => Self::Head(40),
            _ if Rule::is_raw(map.kind, layout) => Self::None,
            "JS_WEAK_REF" => Self::Except(24, 24),
            "WEAK_CELL" => Self::Except(16, 24),
            // The list of all sites.
            "ALLOCATION_SITE" if map.size == 48 => Self::Except(40, 40),
            _ if Some(map.kind) == layout.native_context => Self::NativeContext,
            _ => Self::Except(0, 0),
        }
    }

    /// Calls for every word of an object that holds a strong reference, with its offset.
    fn each(self, bytes: &[u8], mut call: impl FnMut(usize, u64)) {
        let (end, weak) = match self {
            Self::None => (0, (0, 0)),
            Self::Pairs => (FIRST_PAIR, (0, 0)),
            Self::Head(end) => (end, (0, 0)),
            Self::Except(first, second) => (bytes.len(), (first, second)),
            Self::NativeContext => (bytes.len(), (0, 0)),
        };
        // The first word is the map.
        for at in (0..bytes.len().min(end)).step_by(8) {
            let tagged = word(bytes, at);
            // Smis, raw numbers and weak references have other bits.
            if tagged & 7 == 1 && (at == 0 || at != weak.0 && at != weak.1) {
                call(at, tagged);
            }
        }
    }
}

/// What all objects of a map have in common.
struct Shape {
    pointers: Pointers,
    is_receiver: bool,
    /// The map as an object.
    map: u32,
}

impl Shape {
    fn of(map: &Map, walker: &Walker<'_>, objects: &Objects, pairs: InstanceType) -> Self {
        Self {
            pointers: Pointers::of(map, walker.layout, pairs),
            is_receiver: walker.layout.is_receiver(map.kind),
            map: objects.of(walker.pages, map.address),
        }
    }
}

impl Graph {
    pub(crate) fn of(walker: &Walker<'_>, objects: &Objects) -> Result<Self, CoreError> {
        let mut graph = Self {
            first: Vec::with_capacity(objects.len() + 1),
            to: Vec::new(),
            count: objects.len(),
            references: 0,
            alive: Bits::default(),
            properties: Bits::new(objects.len()),
            elements: Bits::new(objects.len()),
            roots: Vec::new(),
            pairs: Vec::new(),
            pairs_type: pairs_type(walker, objects),
            missing: Vec::new(),
            unknown: Vec::new(),
        };
        let shapes: Vec<Shape> =
            walker.maps.list.iter().map(|map| Shape::of(map, walker, objects, graph.pairs_type)).collect();
        for (index, &number) in objects.words.iter().enumerate() {
            if index % RELIEF == 0 {
                walker.image.relieve();
            }
            graph.first.push(graph.to.len() as u32);
            let (offset, _) = walker.pages.offset(number);
            let bytes = walker.image.bytes.get(offset..offset + objects.sizes[index] as usize).unwrap_or(&[]);
            graph.edges(walker, objects, index as u32, bytes, &shapes[objects.maps[index] as usize]);
            if graph.to.len() > (NONE >> 1) as usize {
                return Err(CoreError::TooLarge { what: "references", limit: NONE >> 1 });
            }
        }
        graph.first.push(graph.to.len() as u32);
        let found = roots::find(walker, objects);
        graph.missing = found.missing;
        graph.roots = found.list;
        if !graph.missing.is_empty() {
            let mut read: HashSet<u64> = HashSet::new();
            for thread in &walker.image.threads {
                // In a damaged file all threads may be on one stack.
                let segment = walker.image.segment(thread.sp).map_or(0, |segment| segment.start);
                if !read.insert(segment) {
                    continue;
                }
                let stack = on_stack(walker.image, walker.pages, objects, thread.sp);
                graph.roots.extend(stack.into_iter().map(|object| (object, Holder::Stack)));
            }
        }
        graph.roots.sort_unstable_by_key(|&(object, holder)| (holder, object));
        graph.roots.dedup();
        let mut live = Live::new(graph.len(), std::mem::take(&mut graph.pairs));
        live.mark(&graph);
        if !graph.missing.is_empty() {
            graph.find_more(walker, objects, &mut live);
        }
        graph.add_pairs(live);
        Ok(graph)
    }

    fn edges(&mut self, walker: &Walker<'_>, objects: &Objects, from: u32, bytes: &[u8], shape: &Shape) {
        let (pages, pointers) = (walker.pages, shape.pointers);
        let object = |at: usize, tagged| if at == 0 { shape.map } else { objects.of(pages, tagged) };
        pointers.each(bytes, |at, tagged| match object(at, tagged) {
            NONE if pages.has_block(tagged) && self.unknown.len() < UNKNOWN => self.unknown.push(from),
            NONE => {}
            to if pointers == Pointers::NativeContext
                && is_native(walker.layout, &walker.maps, objects, to) => {}
            to => {
                self.to.push(to);
                if shape.is_receiver && (at == PROPERTIES || at == ELEMENTS) && shape.map != NONE {
                    (if at == PROPERTIES { &mut self.properties } else { &mut self.elements }).add(from);
                }
            }
        });
        if pointers == Pointers::Pairs {
            for pair in bytes.get(FIRST_PAIR..).unwrap_or(&[]).chunks_exact(16) {
                let [key, value] = [0, 8].map(|at| objects.of(pages, word(pair, at)));
                if key != NONE && value != NONE {
                    self.pairs.push(Pair { key, value, table: from });
                }
            }
        }
    }

    /// Calls for every reference in the bytes of an object but those of weak maps, in the order of `of_object`, with its offset.
    /// The first is that to its map, which is known; those to `told` are left out behind the fields that all objects of JavaScript have.
    pub(crate) fn each_word(
        &self,
        view: &View<'_>,
        objects: &Objects,
        (pointers, map): (Pointers, u32),
        (bytes, told): (&[u8], &[u64]),
        mut call: impl FnMut(usize, u32),
    ) {
        pointers.each(bytes, |at, tagged| {
            let to = match at {
                0 => map,
                // To look an object up takes longer than to compare some words.
                _ if at > ELEMENTS && told.contains(&tagged) => NONE,
                _ => objects.of(view.pages, tagged),
            };
            let other_realm =
                || pointers == Pointers::NativeContext && is_native(view.layout, view.maps, objects, to);
            if to != NONE && !other_realm() {
                call(at, to);
            }
        });
    }

    pub(crate) fn of_object(&self, object: u32) -> &[u32] {
        &self.to[self.first[object as usize] as usize..self.first[object as usize + 1] as usize]
    }

    /// The entries of weak maps whose key is this object.
    pub(crate) fn pairs_of(&self, key: u32) -> &[Pair] {
        range_of(&self.pairs, key)
    }

    /// Words of living objects that look like pointers to objects, and are none.
    pub(crate) fn unknown_words(&self, lives: impl Fn(u32) -> bool) -> u64 {
        self.unknown.iter().filter(|&&object| lives(object)).count() as u64
    }

    pub(crate) fn references(&self) -> usize {
        self.references
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// What an object of JavaScript keeps its properties and its elements in.
    pub(crate) fn parts_of(&self, object: u32) -> &[u32] {
        let count = usize::from(self.properties.has(object)) + usize::from(self.elements.has(object));
        // The map comes first.
        self.of_object(object).get(1..1 + count).unwrap_or(&[])
    }

    /// How many edges an object has, for as long as that is known.
    pub(crate) fn degree(&self, object: u32) -> u32 {
        self.first[object as usize + 1] - self.first[object as usize]
    }

    /// Forgets what nobody will ask for: edges take most of the memory.
    pub(crate) fn keep(&mut self, what: Keep) {
        if what < Keep::Edges {
            self.to = Vec::new();
        }
        if what < Keep::Degrees {
            self.first = Vec::new();
        }
    }

    /// Where roots are missing: of words outside the heap those that point to what nothing else reaches.
    fn find_more(&mut self, walker: &Walker<'_>, objects: &Objects, live: &mut Live) {
        let mut candidates: Vec<u32> = (0..objects.len() as u32)
            .filter(|&object| is_native(walker.layout, &walker.maps, objects, object))
            .collect();
        let first = candidates.len();
        outside(walker.image, walker.pages, |bytes| match objects.of(walker.pages, word(bytes, 0)) {
            NONE => {}
            object => candidates.push(object),
        });
        candidates[first..].sort_unstable();
        candidates.dedup();
        for root in candidates {
            if !live.seen.has(root) {
                self.roots.push((root, Holder::Anywhere));
                live.reach(self, root);
            }
        }
    }

    /// Makes edges of the living entries of weak maps. The lists of edges are moved up from the last on.
    fn add_pairs(&mut self, live: Live) {
        let Live { seen, mut by_key, .. } = live;
        by_key.retain(|pair| seen.has(pair.key) && seen.has(pair.table));
        self.alive = seen;
        self.pairs = by_key;
        let mut to = self.to.len() + self.pairs.len();
        self.references = to;
        self.to.reserve_exact(self.pairs.len());
        self.to.resize(to, 0);
        let mut pairs = self.pairs.len();
        let mut end = *self.first.last().unwrap_or(&0) as usize;
        if let Some(last) = self.first.last_mut() {
            *last = to as u32;
        }
        for object in (0..self.first.len() - 1).rev() {
            if pairs == 0 {
                break;
            }
            while pairs > 0 && self.pairs[pairs - 1].key as usize == object {
                (to, pairs) = (to - 1, pairs - 1);
                self.to[to] = self.pairs[pairs].value;
            }
            let start = self.first[object] as usize;
            to -= end - start;
            self.to.copy_within(start..end, to);
            end = start;
            self.first[object] = to as u32;
        }
    }
}

fn range_of(pairs: &[Pair], key: u32) -> &[Pair] {
    let start = pairs.partition_point(|pair| pair.key < key);
    let count = pairs[start..].partition_point(|pair| pair.key == key);
    &pairs[start..start + count]
}

fn is_native(layout: &Layout, maps: &Maps, objects: &Objects, object: u32) -> bool {
    let map = &maps.list[objects.maps[object as usize] as usize];
    Some(map.kind) == layout.native_context
}

/// No symbol names the type of the tables of weak maps; every weak map has one.
fn pairs_type(walker: &Walker<'_>, objects: &Objects) -> InstanceType {
    let weak = |map: &Map| matches!(walker.layout.name(map.kind), "JS_WEAK_MAP" | "JS_WEAK_SET");
    let found = (0..objects.len()).find_map(|index| {
        let map = &walker.maps.list[objects.maps[index] as usize];
        let table = weak(map).then(|| walker.image.word(walker.pages.address(objects.words[index]) + 24))?;
        let table = objects.of(walker.pages, table);
        let map = objects.maps.get(table as usize)?;
        Some(walker.maps.list[*map as usize].kind)
    });
    // The least of all types is a string's.
    found.filter(|&kind| kind >= FIRST_NON_STRING).unwrap_or(0)
}

/// Names, and strings whose characters are elsewhere: V8 keeps tables of them.
pub(crate) fn in_a_table(kind: InstanceType) -> bool {
    kind < FIRST_NON_STRING && (kind & NOT_INTERNALIZED == 0 || kind & 7 == 2)
}

/// What can be reached, entries of weak maps included.
struct Live {
    seen: Bits,
    /// Keys and tables: few of all objects are.
    weak: Bits,
    by_key: Vec<Pair>,
    by_table: Vec<Pair>,
    stack: Vec<u32>,
}

impl Live {
    fn new(objects: usize, pairs: Vec<Pair>) -> Self {
        let mut by_key = pairs.clone();
        by_key.sort_unstable();
        let mut weak = Bits::new(objects);
        for pair in &pairs {
            weak.add(pair.key);
            weak.add(pair.table);
        }
        Self { seen: Bits::new(objects), weak, by_key, by_table: pairs, stack: Vec::new() }
    }

    fn mark(&mut self, graph: &Graph) {
        for &(root, _) in &graph.roots {
            self.reach(graph, root);
        }
    }

    fn reach(&mut self, graph: &Graph, root: u32) {
        self.enter(root);
        while let Some(object) = self.stack.pop() {
            graph.of_object(object).iter().for_each(|&to| self.enter(to));
            if !self.weak.has(object) {
                continue;
            }
            let start = self.by_key.partition_point(|pair| pair.key < object);
            for index in start..self.by_key.len() {
                let pair = self.by_key[index];
                if pair.key != object {
                    break;
                }
                if self.seen.has(pair.table) {
                    self.enter(pair.value);
                }
            }
            let start = self.by_table.partition_point(|pair| pair.table < object);
            for index in start..self.by_table.len() {
                let pair = self.by_table[index];
                if pair.table != object {
                    break;
                }
                if self.seen.has(pair.key) {
                    self.enter(pair.value);
                }
            }
        }
    }

    fn enter(&mut self, object: u32) {
        if self.seen.add(object) {
            self.stack.push(object);
        }
    }
}

fn on_stack(image: &Image<'_>, pages: &Pages, objects: &Objects, sp: u64) -> Vec<u32> {
    let Some(segment) = image.segment(sp) else { return Vec::new() };
    let length = (segment.end - sp).min(STACK) as usize;
    let words = image.at(sp & !7, length).chunks_exact(8);
    words.map(|bytes| objects.of(pages, word(bytes, 0))).filter(|&object| object != NONE).collect()
}

#[cfg(test)]
impl Graph {
    pub(crate) fn from_edges(edges: &[Vec<u32>], roots: Vec<u32>) -> Self {
        let mut graph = Self {
            first: vec![0],
            to: Vec::new(),
            count: edges.len(),
            references: edges.iter().map(Vec::len).sum(),
            alive: Bits::default(),
            properties: Bits::new(edges.len()),
            elements: Bits::new(edges.len()),
            roots: roots.into_iter().map(|root| (root, Holder::Table)).collect(),
            pairs: Vec::new(),
            pairs_type: 0,
            missing: Vec::new(),
            unknown: Vec::new(),
        };
        for to in edges {
            graph.to.extend(to);
            graph.first.push(graph.to.len() as u32);
        }
        graph
    }
}
