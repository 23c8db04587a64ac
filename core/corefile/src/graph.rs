//! What points to what, and what is held by the program itself.

use crate::bytes::word;
use crate::error::CoreError;
use crate::image::Image;
use crate::layout::{InstanceType, Layout};
use crate::maps::NONE;
use crate::pages::Pages;
use crate::rule::Rule;
use crate::walk::{Objects, Walker, outside};

/// As far from a stack's top as its roots may be.
const STACK: u64 = 8 << 20;
/// With more of them nothing is told anyway.
const UNKNOWN: usize = 1 << 26;

/// Edges of all objects, those of object `i` from `first[i]` to `first[i + 1]`.
#[derive(Debug)]
pub(crate) struct Graph {
    first: Vec<u32>,
    to: Vec<u32>,
    pub(crate) roots: Vec<u32>,
    /// For each word that looks like a pointer to an object, and is none, the object that it is in. The dead have many.
    unknown: Vec<u32>,
}

impl Graph {
    pub(crate) fn of(walker: &Walker<'_>, objects: &Objects) -> Result<Self, CoreError> {
        let mut graph = Self {
            first: Vec::with_capacity(objects.len() + 1),
            to: Vec::new(),
            roots: Vec::new(),
            unknown: Vec::new(),
        };
        let weak: Vec<Option<usize>> =
            walker.maps.list.iter().map(|map| weak_word(walker.layout, map.kind)).collect();
        let mut page = walker.pages.list.iter();
        let mut current = page.next();
        for index in 0..objects.len() {
            let number = objects.words[index];
            while let Some(at) = current
                && u64::from(number - at.first_word) * 8 >= at.end - at.start
            {
                current = page.next();
            }
            let Some(at) = current else { break };
            graph.first.push(graph.to.len() as u32);
            let offset = at.offset + (number - at.first_word) as usize * 8;
            let bytes = walker.image.bytes.get(offset..offset + objects.sizes[index] as usize).unwrap_or(&[]);
            if let Some(weak) = weak[objects.maps[index] as usize] {
                graph.edges(walker.pages, objects, index as u32, bytes, weak);
            }
            if graph.to.len() > (NONE >> 1) as usize {
                return Err(CoreError::TooLarge { what: "references", limit: NONE >> 1 });
            }
        }
        graph.first.push(graph.to.len() as u32);
        graph.roots = graph.find_roots(walker, objects);
        Ok(graph)
    }

    fn edges(&mut self, pages: &Pages, objects: &Objects, from: u32, bytes: &[u8], weak: usize) {
        for at in (8..bytes.len()).step_by(8) {
            let tagged = word(bytes, at);
            // Smis, raw numbers and weak references have other bits.
            if tagged & 7 != 1 || at == weak {
                continue;
            }
            match objects.of(pages, tagged) {
                NONE if pages.has_block(tagged) && self.unknown.len() < UNKNOWN => self.unknown.push(from),
                NONE => {}
                to => self.to.push(to),
            }
        }
    }

    pub(crate) fn of_object(&self, object: u32) -> &[u32] {
        &self.to[self.first[object as usize] as usize..self.first[object as usize + 1] as usize]
    }

    /// Words of living objects that look like pointers to objects, and are none.
    pub(crate) fn unknown_words(&self, lives: impl Fn(u32) -> bool) -> u64 {
        self.unknown.iter().filter(|&&object| lives(object)).count() as u64
    }

    pub(crate) fn references(&self) -> usize {
        self.to.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Native contexts and stacks first; of other words outside the heap only what nothing else reaches.
    fn find_roots(&self, walker: &Walker<'_>, objects: &Objects) -> Vec<u32> {
        let mut candidates = strong(walker, objects);
        let strong = candidates.len();
        outside(walker.image, walker.pages, |bytes| match objects.of(walker.pages, word(bytes, 0)) {
            NONE => {}
            object => candidates.push(object),
        });
        candidates[strong..].sort_unstable();
        candidates.dedup();
        let mut seen = vec![false; self.len()];
        let (mut roots, mut stack) = (Vec::new(), Vec::new());
        for (index, &root) in candidates.iter().enumerate() {
            if seen[root as usize] {
                // A strong root stays one, whoever else holds it.
                if index < strong {
                    roots.push(root);
                }
                continue;
            }
            seen[root as usize] = true;
            roots.push(root);
            stack.push(root);
            while let Some(object) = stack.pop() {
                for &to in self.of_object(object) {
                    if !std::mem::replace(&mut seen[to as usize], true) {
                        stack.push(to);
                    }
                }
            }
        }
        roots
    }
}

fn strong(walker: &Walker<'_>, objects: &Objects) -> Vec<u32> {
    let is_native = |index: &usize| {
        let map = &walker.maps.list[objects.maps[*index] as usize];
        walker.layout.is_context(map.kind) && objects.sizes[*index] > 1600
    };
    let mut strong: Vec<u32> = (0..objects.len()).filter(is_native).map(|index| index as u32).collect();
    for thread in &walker.image.threads {
        strong.extend(on_stack(walker.image, walker.pages, objects, thread.sp));
    }
    strong.sort_unstable();
    strong.dedup();
    strong
}

fn on_stack(image: &Image<'_>, pages: &Pages, objects: &Objects, sp: u64) -> Vec<u32> {
    let Some(segment) = image.segment(sp) else { return Vec::new() };
    let length = (segment.end - sp).min(STACK) as usize;
    let words = image.at(sp & !7, length).chunks_exact(8);
    words.map(|bytes| objects.of(pages, word(bytes, 0))).filter(|&object| object != NONE).collect()
}

/// The word of a type's objects that keeps nothing alive, which the collector knows by the type: 0 if there is none; nothing
/// for objects that hold no pointers at all.
pub(crate) fn weak_word(layout: &Layout, kind: InstanceType) -> Option<usize> {
    match layout.name(kind) {
        _ if Rule::is_raw(kind, layout) => None,
        "JS_WEAK_REF" => Some(24),
        "WEAK_CELL" => Some(16),
        _ => Some(0),
    }
}

#[cfg(test)]
impl Graph {
    pub(crate) fn from_edges(edges: &[Vec<u32>], roots: Vec<u32>) -> Self {
        let mut graph = Self { first: vec![0], to: Vec::new(), roots, unknown: Vec::new() };
        for to in edges {
            graph.to.extend(to);
            graph.first.push(graph.to.len() as u32);
        }
        graph
    }
}
