//! All objects of the heap, page by page, each by the exact rule for its size; and what was not understood.

use std::collections::HashMap;
use std::ops::Range;

use crate::bytes::word;
use crate::error::CoreError;
use crate::image::Image;
use crate::layout::{InstanceType, Layout};
use crate::maps::{Maps, NONE};
use crate::pages::{Multiply, Page, Pages};
use crate::rule::{HEAD, Rule, candidates};

/// A rule that holds for so many objects of a type, and fails for none, is taken for proven.
const SAMPLES: usize = 200;
const WITNESSES: usize = 4;
const ROUNDS: usize = 4;
/// After so many pages those of the file are given back.
pub(crate) const RELIEF: usize = 256;

/// The objects of the heap in the order of their addresses.
#[derive(Debug)]
pub(crate) struct Objects {
    /// The number of the word at which each begins.
    pub(crate) words: Vec<u32>,
    pub(crate) maps: Vec<u32>,
    pub(crate) sizes: Vec<u32>,
    /// One bit for each word: an object begins here; and for each 64 of them, how many were before.
    starts: Vec<u64>,
    ranks: Vec<u32>,
    pub(crate) walked: u64,
    /// Bytes that are no object of a known size.
    pub(crate) skipped: u64,
}

impl Objects {
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The object that a tagged pointer points to, or [`NONE`].
    pub(crate) fn of(&self, pages: &Pages, tagged: u64) -> u32 {
        if tagged & 7 != 1 {
            return NONE;
        }
        pages.number(tagged - 1).map_or(NONE, |number| self.at(number))
    }

    fn at(&self, number: u32) -> u32 {
        let (block, bit) = ((number / 64) as usize, number % 64);
        if self.starts[block] >> bit & 1 == 0 {
            return NONE;
        }
        self.ranks[block] + (self.starts[block] & ((1 << bit) - 1)).count_ones()
    }

    fn add(&mut self, number: u32, map: u32, size: u64) {
        self.starts[(number / 64) as usize] |= 1 << (number % 64);
        self.words.push(number);
        self.maps.push(map);
        self.sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// The objects of a page that was understood.
    fn copy(&mut self, from: &Self, range: Range<usize>, known: PageWalk) -> PageWalk {
        for &number in &from.words[range.clone()] {
            self.starts[(number / 64) as usize] |= 1 << (number % 64);
        }
        self.words.extend_from_slice(&from.words[range.clone()]);
        self.maps.extend_from_slice(&from.maps[range.clone()]);
        self.sizes.extend_from_slice(&from.sizes[range]);
        known
    }

    fn rank(&mut self) {
        let mut before = 0;
        let rank = |bits: &u64| {
            let rank = before;
            before += bits.count_ones();
            rank
        };
        self.ranks = self.starts.iter().map(rank).collect();
    }
}

/// What all walks share.
pub(crate) struct Walker<'a> {
    pub(crate) image: &'a Image<'a>,
    pub(crate) pages: &'a Pages,
    pub(crate) layout: &'a Layout,
    pub(crate) maps: Maps,
    /// By the number of the map.
    rules: Vec<Rule>,
    proven: HashMap<InstanceType, Rule>,
    /// The parts of pages that are being filled: from the top to the limit there is nothing yet.
    buffers: HashMap<u64, u64, Multiply>,
    /// The end of the buffer that the walk is in, or was last.
    open: u64,
    samples: HashMap<InstanceType, Vec<u64>>,
    /// Pages that a collection has left.
    pub(crate) stale: u64,
}

/// What the walk of a page came to.
#[derive(Debug, Clone, Copy, Default)]
struct PageWalk {
    count: usize,
    walked: u64,
    skipped: u64,
    stale: u64,
    /// One more rule might change it.
    unsure: bool,
}

/// The objects so far, without ranks, and of each page how many.
type Found = (Objects, Vec<PageWalk>);

enum Step {
    Object { map: u32, size: u64, sure: bool },
    Empty(u64),
    Skip(u64),
    End,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(image: &'a Image<'a>, pages: &'a Pages, layout: &'a Layout) -> Self {
        Self {
            image,
            pages,
            layout,
            maps: Maps::default(),
            rules: Vec::new(),
            proven: HashMap::new(),
            buffers: buffers(image, pages),
            open: 0,
            samples: HashMap::new(),
            stale: 0,
        }
    }

    pub(crate) fn walk(&mut self) -> Result<Objects, CoreError> {
        let mut found = self.collect(None)?;
        for _ in 0..ROUNDS {
            if !self.learn() {
                break;
            }
            found = self.collect(Some(found))?;
        }
        self.stale = found.1.iter().map(|page| page.stale).sum();
        let mut objects = found.0;
        objects.rank();
        Ok(objects)
    }

    fn map(&mut self, tagged: u64) -> u32 {
        let number = self.maps.number(self.image, self.pages, self.layout, tagged);
        while self.rules.len() < self.maps.list.len() {
            let map = self.maps.list[self.rules.len()];
            let rule = match Rule::of(&map, self.layout) {
                Rule::Unknown => self.proven.get(&map.kind).copied().unwrap_or(Rule::Unknown),
                rule => rule,
            };
            self.rules.push(rule);
        }
        number
    }

    /// Whether a rule was found for one more type.
    fn learn(&mut self) -> bool {
        let before = self.proven.len();
        for (kind, samples) in std::mem::take(&mut self.samples) {
            if let Some(rule) = candidates().find(|&rule| self.holds(rule, &samples)) {
                self.proven.insert(kind, rule);
            }
        }
        self.rules.clear();
        self.map(0);
        self.proven.len() > before
    }

    fn holds(&mut self, rule: Rule, samples: &[u64]) -> bool {
        samples.iter().all(|&at| {
            let size = rule.size(self.image.at(at, HEAD));
            let Some((_, &page)) = self.pages.of(at) else { return false };
            let leads = size >= 8 && at + size <= page.end && self.begins(&page, at + size);
            // With few witnesses a long leap lands on an object by chance.
            leads && (samples.len() >= WITNESSES || size == self.distance(&page, at))
        })
    }

    /// Whether an object may end here.
    fn begins(&mut self, page: &Page, at: u64) -> bool {
        if at == page.end || self.buffers.contains_key(&at) {
            return true;
        }
        let next = self.image.word(at);
        next != 0 && self.map(next) != NONE
    }

    /// Walks all pages, or those again that were not understood with the rules of before.
    fn collect(&mut self, before: Option<Found>) -> Result<Found, CoreError> {
        self.samples.clear();
        let (last, pages) = before.map_or((None, Vec::new()), |(objects, pages)| (Some(objects), pages));
        let mut objects = Objects {
            words: Vec::new(),
            maps: Vec::new(),
            sizes: Vec::new(),
            starts: vec![0; self.pages.words.div_ceil(64) as usize],
            ranks: Vec::new(),
            walked: 0,
            // What a whole core leaves out was not there; if somebody points to it, that counts as unknown.
            skipped: if self.image.missing > 0 { self.pages.missing } else { 0 },
        };
        let (mut found, mut copied) = (Vec::with_capacity(self.pages.list.len()), 0);
        for index in 0..self.pages.list.len() {
            let page = self.pages.list[index];
            let walked = match (&last, pages.get(index)) {
                (Some(last), Some(&known)) => {
                    let range = copied..copied + known.count;
                    copied += known.count;
                    match known.unsure {
                        true => self.collect_page(&page, &mut objects),
                        false => objects.copy(last, range, known),
                    }
                }
                _ => self.collect_page(&page, &mut objects),
            };
            objects.walked += walked.walked;
            objects.skipped += walked.skipped;
            found.push(walked);
            if objects.len() >= NONE as usize - 2 {
                return Err(CoreError::TooLarge { what: "objects", limit: NONE - 2 });
            }
            if index % RELIEF == RELIEF - 1 {
                self.image.relieve();
            }
        }
        Ok((objects, found))
    }

    fn collect_page(&mut self, page: &Page, objects: &mut Objects) -> PageWalk {
        let before = objects.len();
        let mut found = PageWalk::default();
        let mut moved = false;
        let mut at = page.start;
        self.open = 0;
        while at < page.end {
            match self.step(page, at) {
                Step::Object { map, size, sure } => {
                    let number = page.first_word + ((at - page.start) / 8) as u32;
                    objects.add(number, map, size);
                    *(if sure { &mut found.walked } else { &mut found.skipped }) += size;
                    if !sure {
                        found.unsure = true;
                        self.sample(map, at);
                    }
                    at += size;
                }
                Step::Empty(size) => at += size,
                Step::Skip(size) => {
                    // In place of the map, where the object is now.
                    let first = self.image.word(at);
                    moved |= first & 7 == 0 && self.pages.of(first).is_some();
                    found.skipped += size;
                    found.unsure = true;
                    at += size;
                }
                Step::End => break,
            }
        }
        // What lies within a buffer and is of an unknown size counts as empty.
        found.unsure |= self.open != 0;
        // The half that was left by the last collection holds what is elsewhere now.
        if found.skipped > 0 && (page.is_from_space() || moved) {
            found.stale = page.end - page.start;
            for number in objects.words.drain(before..) {
                objects.starts[(number / 64) as usize] &= !(1 << (number % 64));
            }
            objects.maps.truncate(before);
            objects.sizes.truncate(before);
            (found.walked, found.skipped) = (0, 0);
        }
        found.count = objects.len() - before;
        found
    }

    /// Some objects of each type whose rule is not known.
    fn sample(&mut self, map: u32, at: u64) {
        if self.rules[map as usize] == Rule::Unknown {
            let samples = self.samples.entry(self.maps.list[map as usize].kind).or_default();
            if samples.len() < SAMPLES {
                samples.push(at);
            }
        }
    }

    fn step(&mut self, page: &Page, at: u64) -> Step {
        // Two copies of a buffer's bounds may differ in age: what looks like an object is one, until something does not.
        if let Some(&limit) = self.buffers.get(&at) {
            self.open = limit;
        }
        let empty = (at < self.open && self.open <= page.end).then(|| self.open - at);
        let bytes = self.image.bytes;
        let offset = page.offset + (at - page.start) as usize;
        let end = page.offset + (page.end - page.start) as usize;
        let first = word(bytes, offset);
        if first == 0 {
            let zeros = bytes[offset..end].chunks_exact(8).take_while(|word| **word == [0; 8]).count();
            return if offset + zeros * 8 >= end { Step::End } else { Step::Empty(zeros as u64 * 8) };
        }
        let map = self.map(first);
        if map == NONE {
            return empty.map_or_else(|| Step::Skip(self.distance(page, at)), Step::Empty);
        }
        let head = &bytes[offset..end.min(offset + HEAD)];
        let rule = self.rules[map as usize];
        let size = rule.size(head);
        if let Some(empty) = empty.filter(|&empty| size < 8 || size > empty) {
            return Step::Empty(empty);
        }
        if size >= 8 && at + size <= page.end {
            return Step::Object { map, size, sure: true };
        }
        let size = self.distance(page, at);
        Step::Object { map, size, sure: rule == Rule::ToNext }
    }

    /// How far the next object is, by the look of it.
    fn distance(&mut self, page: &Page, from: u64) -> u64 {
        let mut at = from + 8;
        while at < page.end {
            let offset = page.offset + (at - page.start) as usize;
            let next = word(self.image.bytes, offset);
            if self.buffers.contains_key(&at) || next & 7 == 1 && self.map(next) != NONE {
                break;
            }
            at += 8;
        }
        at - from
    }
}

/// V8 keeps the start, the top and the limit of each buffer it allocates from in three consecutive words.
fn buffers(image: &Image<'_>, pages: &Pages) -> HashMap<u64, u64, Multiply> {
    let mut buffers = HashMap::default();
    outside(image, pages, |bytes| {
        let (start, top, limit) = (word(bytes, 0), word(bytes, 8), word(bytes, 16));
        if (start | top | limit) & 7 != 0 || start > top || top >= limit {
            return;
        }
        if let Some((_, page)) = pages.of(top)
            && page.start <= start
            && limit <= page.end
        {
            buffers.insert(top, limit);
        }
    });
    buffers
}

/// Every word of writable memory that is not in V8's pages, with the bytes from there on.
pub(crate) fn outside(image: &Image<'_>, pages: &Pages, mut each: impl FnMut(&[u8])) {
    for segment in image.segments.iter().filter(|segment| segment.writable) {
        let mut at = segment.start.next_multiple_of(8);
        while at.saturating_add(8) <= segment.end {
            if pages.has_block(at) {
                at = (at | 0x3_ffff) + 1;
                continue;
            }
            let until = ((at | 0x3_ffff) + 1).min(segment.end);
            let bytes = &image.bytes[segment.offset + (at - segment.start) as usize..];
            for index in 0..(until - at) as usize / 8 {
                let bytes = &bytes[index * 8..];
                if word(bytes, 0) != 0 {
                    each(bytes);
                }
            }
            at = until.next_multiple_of(8);
        }
    }
}
