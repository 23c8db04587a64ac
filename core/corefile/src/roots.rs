//! What V8 itself holds on to: the roots of each isolate.
//!
//! No symbol tells where an isolate keeps them, and releases differ. Each structure is known by what has to be true of it: an
//! object that the isolate points to points back, a node of a block of handles carries its own index. What cannot be proven is not
//! taken; what is missing is told, so that nobody weighs a heap whose roots are incomplete.

use crate::bytes::{int, word};
use crate::chains;
use crate::image::Image;
use crate::maps::NONE;
use crate::pages::Pages;
use crate::walk::{Objects, Walker};

/// The heap is a part of the isolate, and not far from its start.
const BEFORE_HEAP: u64 = 160 << 10;
const AFTER_HEAP: u64 = 64 << 10;
/// The bytes of an object of V8 that are looked at.
const PART: u64 = 512;
/// Handles in one block of the scopes for handles, and in one of global or eternal ones.
const SCOPE_BLOCK: u64 = 1022;
const BLOCK: u64 = 256;
const GLOBAL_NODE: usize = 32;
/// A damaged file may claim more, and lists in it may be circles.
const MOST: u64 = 1 << 24;
/// Words of all lists together.
const ALL: u64 = 1 << 26;

/// Who holds a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// V8's table of strong roots, its builtins and the fields of the isolate.
    Table,
    /// Local handles of native code.
    Handle,
    /// Persistent handles of native code, Node.js and add-ons.
    Global,
    Eternal,
    /// Callbacks of promises that wait for their turn.
    Microtask,
    Cache,
    Stack,
    /// Names and external strings, which V8's own snapshots count as held by the tables of strings.
    Strings,
    /// A word outside the heap, where the roots are not known exactly.
    Anywhere,
}

impl Holder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "(strong roots)",
            Self::Handle => "(handle scopes)",
            Self::Global => "(global handles)",
            Self::Eternal => "(eternal handles)",
            Self::Microtask => "(microtasks)",
            Self::Cache => "(caches)",
            Self::Stack => "(stack)",
            Self::Strings => "(tables of strings)",
            Self::Anywhere => "(native memory)",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// Objects, with who holds them.
    pub(crate) list: Vec<(u32, Holder)>,
    /// What every isolate has, and was not found.
    pub(crate) missing: Vec<&'static str>,
    pub(crate) isolates: usize,
    /// Words of lists that were looked at.
    words: u64,
}

impl Roots {
    /// Whether so many words more may be looked at.
    fn spend(&mut self, words: u64) -> bool {
        self.words = self.words.saturating_add(words);
        self.words <= ALL
    }
}

/// Finds the roots of every isolate that has pages.
pub(crate) fn find(walker: &Walker<'_>, objects: &Objects) -> Roots {
    let mut roots = Roots::default();
    for isolate in isolates(walker.image, walker.pages) {
        let heap = isolate.heap;
        roots.isolates += 1;
        Finder { image: walker.image, pages: walker.pages, objects, isolate, found: &mut roots }.all();
        for part in chains::parts(walker.image, walker.layout, (isolate.start, heap)) {
            let words = walker.image.at(part.start, (part.end - part.start) as usize).chunks_exact(8);
            let held = words.map(|bytes| objects.of(walker.pages, word(bytes, 0)));
            roots.list.extend(held.filter(|&object| object != NONE).map(|object| (object, Holder::Stack)));
        }
    }
    if roots.isolates == 0 {
        roots.missing.push("the isolate");
    }
    if roots.words > ALL {
        roots.missing.push("end of its lists");
    }
    roots.list.sort_unstable();
    roots.list.dedup();
    roots
}

/// Those that have pages, and are proven.
pub(crate) fn isolates(image: &Image<'_>, pages: &Pages) -> impl Iterator<Item = Isolate> {
    let mut heaps: Vec<u64> = pages.list.iter().map(|page| page.heap).filter(|&heap| heap != 0).collect();
    heaps.sort_unstable();
    heaps.dedup();
    heaps.into_iter().filter_map(move |heap| Isolate::of(image, pages, heap))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Isolate {
    start: u64,
    pub(crate) heap: u64,
    end: u64,
    /// Where its global handles are.
    globals: u64,
    /// The blocks of those.
    space: u64,
}

impl Isolate {
    /// Of all that an isolate points to, global handles are told most surely: they point back to it, and their blocks point
    /// back to them.
    fn of(image: &Image<'_>, pages: &Pages, heap: u64) -> Option<Self> {
        let first = heap.saturating_sub(BEFORE_HEAP);
        let end = heap.saturating_add(AFTER_HEAP);
        (first & !7..end).step_by(8).find_map(|at| {
            let globals = outside(pages, image.word(at))?;
            let start = image.word(globals);
            if start & 7 != 0 || start < first || start >= heap.min(at) {
                return None;
            }
            let space = [8, 16].map(|field| image.word(globals.wrapping_add(field)));
            let space = space.into_iter().find(|&space| {
                image.word(space) == globals && GlobalBlock::at(image, image.word(space + 8), space).is_some()
            })?;
            // The size of what malloc gave, and the state of its neighbours in three bits.
            let given = start.saturating_add(image.word(start - 8) & !7);
            let end = if given > heap && given < end { given } else { end };
            Some(Self { start, heap, end, globals, space })
        })
    }
}

/// An address of the program's own memory.
fn outside(pages: &Pages, address: u64) -> Option<u64> {
    (address & 7 == 0 && address > 4096 && !pages.has_block(address)).then_some(address)
}

/// 256 nodes of an object, a class, their own index, flags and two words; and the next block.
struct GlobalBlock<'a> {
    nodes: &'a [u8],
    next: u64,
}

impl<'a> GlobalBlock<'a> {
    fn at(image: &Image<'a>, at: u64, space: u64) -> Option<Self> {
        let (nodes, rest) =
            image.at(at, BLOCK as usize * GLOBAL_NODE + 24).split_at_checked(BLOCK as usize * GLOBAL_NODE)?;
        let indexed = nodes.chunks_exact(GLOBAL_NODE).zip(0..=u8::MAX).all(|(node, index)| node[10] == index);
        (indexed && word(rest, 16) == space).then(|| Self { nodes, next: word(rest, 0) })
    }
}

struct Finder<'a> {
    image: &'a Image<'a>,
    pages: &'a Pages,
    objects: &'a Objects,
    isolate: Isolate,
    found: &'a mut Roots,
}

impl Finder<'_> {
    fn all(&mut self) {
        let Isolate { start, heap, .. } = self.isolate;
        // What follows is the heap itself, whose lists of contexts and allocation sites hold nothing.
        self.words(start, (heap - start) / 8, Holder::Table);
        if !self.global_handles() {
            self.found.missing.push("global handles");
        }
        let (mut scopes, mut eternal) = (false, false);
        let words = self.image.at(start, (self.isolate.end - start) as usize);
        for at in (0..words.len()).step_by(8) {
            self.cache(&words[at..]);
            let Some(part) = outside(self.pages, word(words, at)) else { continue };
            if part == self.isolate.globals || (start..self.isolate.end).contains(&part) {
                continue;
            }
            eternal |= self.eternal(part);
            self.microtasks(part);
            if self.image.word(part) == start {
                scopes |= self.scopes(part, words);
                self.part(part);
            }
        }
        if !scopes {
            self.found.missing.push("handle scopes");
        }
        if !eternal {
            self.found.missing.push("eternal handles");
        }
    }

    fn word(&mut self, tagged: u64, holder: Holder) {
        match self.objects.of(self.pages, tagged) {
            NONE => {}
            object => self.found.list.push((object, holder)),
        }
    }

    fn words(&mut self, at: u64, count: u64, holder: Holder) {
        let bytes = self.image.at(at, count.min(MOST) as usize * 8);
        if !self.found.spend(bytes.len() as u64 / 8) {
            return;
        }
        for index in 0..bytes.len() / 8 {
            self.word(word(bytes, index * 8), holder);
        }
    }

    /// Those that are in use, and not weak.
    fn global_handles(&mut self) -> bool {
        let mut next = self.image.word(self.isolate.space + 8);
        for _ in 0..MOST / BLOCK {
            if next == 0 {
                return true;
            }
            let Some(block) = GlobalBlock::at(self.image, next, self.isolate.space) else { return false };
            if !self.found.spend(BLOCK) {
                return false;
            }
            for node in block.nodes.chunks_exact(GLOBAL_NODE).filter(|node| node[11] & 3 == 1) {
                self.word(word(node, 0), Holder::Global);
            }
            next = block.next;
        }
        false
    }

    /// A number, and blocks of 256 handles for as many.
    fn eternal(&mut self, part: u64) -> bool {
        let head = self.image.at(part, 32);
        let (size, blocks) = (u64::from(int(head, 0)), (word(head, 8), word(head, 16), word(head, 24)));
        let Some(count) = vector(blocks) else { return false };
        if int(head, 4) != 0 || size == 0 || size > MOST || count != size.div_ceil(BLOCK) {
            return false;
        }
        let list = self.image.at(blocks.0, count as usize * 8);
        if !self.found.spend(2 * size) {
            return false;
        }
        let block = |index: u64| word(list, (index / BLOCK) as usize * 8).wrapping_add(index % BLOCK * 8);
        let tagged = |index: u64| self.objects.of(self.pages, self.image.word(block(index))) != NONE;
        if !(0..size).all(tagged) {
            return false;
        }
        (0..size).for_each(|index| self.word(self.image.word(block(index)), Holder::Eternal));
        true
    }

    /// The scopes' blocks, full ones and a last one that is used up to where the isolate says.
    fn scopes(&mut self, part: u64, isolate: &[u8]) -> bool {
        let head = self.image.at(part, 128);
        let (data, capacity, size) = (word(head, 8), word(head, 16), word(head, 24));
        if size == 0 || size > capacity || capacity > MOST || outside(self.pages, data).is_none() {
            return false;
        }
        let list = self.image.at(data, size as usize * 8);
        if !self.found.spend(size) {
            return false;
        }
        let last = word(list, (size as usize - 1) * 8);
        let within = last..=last.saturating_add(SCOPE_BLOCK * 8);
        // The next free handle and the end of the block, or of a sealed scope.
        let next = (0..isolate.len().saturating_sub(16)).step_by(8).find_map(|at| {
            let (next, limit) = (word(isolate, at), word(isolate, at + 8));
            (next <= limit && within.contains(&next) && within.contains(&limit)).then_some(next)
        });
        let Some(next) = next else { return false };
        for index in 0..size as usize - 1 {
            self.words(word(list, index * 8), SCOPE_BLOCK, Holder::Handle);
        }
        self.words(last, (next - last) / 8, Holder::Handle);
        // Contexts that were entered, and those to return to.
        for at in [32, 40, 48, 56, 64, 72, 80] {
            let (data, capacity, size) = (word(head, at), word(head, at + 8), word(head, at + 16));
            if outside(self.pages, data).is_some() && size > 0 && size <= capacity && capacity < 1 << 16 {
                self.words(data, size, Holder::Handle);
            }
        }
        true
    }

    /// Every queue of the ring that the isolate's own one is in.
    fn microtasks(&mut self, part: u64) {
        let mut queue = part;
        for _ in 0..BLOCK {
            let head = self.image.at(queue, 64);
            let (size, capacity, start, ring) =
                (word(head, 8), word(head, 16), word(head, 24), word(head, 32));
            let (next, before) = (word(head, 48), word(head, 56));
            let fits = size <= capacity && capacity < MOST && capacity != 0 && start < capacity;
            if !fits || !capacity.is_power_of_two() || self.image.word(next.wrapping_add(56)) != queue {
                return;
            }
            if self.image.word(before.wrapping_add(48)) != queue || outside(self.pages, ring).is_none() {
                return;
            }
            if !self.found.spend(size) {
                return;
            }
            for index in 0..size {
                let tagged = self.image.word(ring.wrapping_add((start + index) % capacity * 8));
                self.word(tagged, Holder::Microtask);
            }
            queue = next;
            if queue == part {
                return;
            }
        }
    }

    /// Tables of the compilation cache, extensions and such, inside an object that points back to the isolate.
    fn part(&mut self, part: u64) {
        let given = (self.image.word(part - 8) & !7).saturating_sub(8);
        self.words(part, given.min(PART) / 8, Holder::Cache);
    }

    /// The caches of objects that come from the start-up snapshot: vectors of nothing but objects. That of external strings
    /// looks the same and holds nothing.
    fn cache(&mut self, words: &[u8]) {
        let bounds = (word(words, 0), word(words, 8), word(words, 16));
        let Some(count) = vector(bounds).filter(|&count| count > 1) else { return };
        if outside(self.pages, bounds.0).is_none() {
            return;
        }
        let bytes = self.image.at(bounds.0, count as usize * 8);
        // Most are no vectors of objects, which the first word tells.
        if self.objects.of(self.pages, word(bytes, 0)) == NONE || !self.found.spend(count) {
            return;
        }
        let objects = || bytes.chunks_exact(8).map(|bytes| self.objects.of(self.pages, word(bytes, 0)));
        if bytes.len() as u64 == count * 8 && objects().all(|object| object != NONE) {
            self.words(bounds.0, count, Holder::Cache);
        }
    }
}

/// The number of words in a vector of C++, by its begin, end and capacity.
fn vector((begin, end, capacity): (u64, u64, u64)) -> Option<u64> {
    let fits = begin > 4096 && begin & 7 == 0 && begin < end && end <= capacity;
    Some(end.checked_sub(begin)? / 8).filter(|&count| fits && count <= MOST && (end | capacity) & 7 == 0)
}
