//! V8's pages, known by their headers.

use std::hash::{BuildHasher, Hasher};

use crate::bytes::word;
use crate::image::Image;

pub(crate) const PAGE_BITS: u32 = 18;
const PAGE: u64 = 1 << PAGE_BITS;
/// The header of a page is smaller than this.
const HEADER: u64 = 0x2000;
const LARGEST: u64 = 1 << 36;
/// V8 asks the system for whole pages of memory.
const MAPPED: u64 = 4096;
/// An eighth of a page.
const HINT_BITS: u32 = 12;
/// The half of the young generation that is empty between two collections.
const FROM_PAGE: u64 = 1 << 3;

/// The part of a page in which objects lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    /// Where V8 keeps what it knows of the page.
    pub(crate) header: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) flags: u64,
    /// V8's heap that the page belongs to; 0 if it belongs to none.
    pub(crate) heap: u64,
    /// V8's space that it belongs to; 0 for those that are only read.
    pub(crate) owner: u64,
    /// Where `start` is in the file.
    pub(crate) offset: usize,
    /// The number of the first word, counted over all pages.
    pub(crate) first_word: u32,
}

impl Page {
    pub(crate) fn is_from_space(&self) -> bool {
        self.flags & FROM_PAGE != 0
    }
}

#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) list: Vec<Page>,
    blocks: Blocks,
    /// For each so many words, the page of the first.
    hints: Vec<u32>,
    pub(crate) words: u32,
    /// What the headers promise and the file does not hold.
    pub(crate) missing: u64,
}

impl Pages {
    pub(crate) fn find(image: &Image<'_>) -> Option<Self> {
        let mut pages =
            Self { list: Vec::new(), blocks: Blocks::default(), hints: Vec::new(), words: 0, missing: 0 };
        for segment in &image.segments {
            let mut base = segment.start.next_multiple_of(PAGE);
            while base.saturating_add(128) <= segment.end {
                let area = header(image, base).filter(|area| (area.start | area.end) & 7 == 0);
                base = match area {
                    Some(area) => pages.add(base, area, segment)?,
                    None => base + PAGE,
                };
            }
        }
        pages.hint();
        Some(pages)
    }

    /// The heaps that pages belong to, by their addresses.
    pub(crate) fn heaps(&self) -> Vec<u64> {
        let mut heaps: Vec<u64> = self.list.iter().map(|page| page.heap).filter(|&heap| heap != 0).collect();
        heaps.sort_unstable();
        heaps.dedup();
        heaps
    }

    fn hint(&mut self) {
        let mut page = 0;
        for number in (0..self.words).step_by(1 << HINT_BITS) {
            while self.list.get(page + 1).is_some_and(|next| next.first_word <= number) {
                page += 1;
            }
            self.hints.push(page as u32);
        }
    }

    /// Adds a page and returns where the next one can begin; nothing if there are too many.
    fn add(&mut self, base: u64, area: Area, segment: &crate::image::Segment) -> Option<u64> {
        let Area { header, start, end: promised, flags, heap, owner } = area;
        let end = promised.min(segment.end & !7);
        self.missing += promised.saturating_sub(end.max(start));
        let next = end.max(base + 1).next_multiple_of(PAGE);
        if start >= end {
            return Some(next);
        }
        let index = u32::try_from(self.list.len()).ok()?;
        let offset = segment.offset + (start - segment.start) as usize;
        self.list.push(Page { header, start, end, flags, heap, owner, offset, first_word: self.words });
        // Whole words of bits for each page.
        let words = u32::try_from((end - start) / 8).ok()?.checked_next_multiple_of(64)?;
        self.words = self.words.checked_add(words)?;
        for block in (base >> PAGE_BITS)..(((end - 1) >> PAGE_BITS) + 1) {
            self.blocks.insert(block, index);
        }
        Some(next)
    }

    /// The page whose objects' part has an address, and its number.
    pub(crate) fn of(&self, address: u64) -> Option<(usize, &Page)> {
        let index = self.blocks.get(address >> PAGE_BITS)? as usize;
        let page = &self.list[index];
        (page.start <= address && address < page.end).then_some((index, page))
    }

    pub(crate) fn has_block(&self, address: u64) -> bool {
        self.blocks.get(address >> PAGE_BITS).is_some()
    }

    /// The number of a word that is in a page.
    pub(crate) fn number(&self, address: u64) -> Option<u32> {
        let (_, page) = self.of(address)?;
        Some(page.first_word + ((address - page.start) / 8) as u32)
    }

    /// The address of a word with a number.
    pub(crate) fn address(&self, number: u32) -> u64 {
        let page = self.of_number(number);
        page.start + u64::from(number - page.first_word) * 8
    }

    /// Where in the file the word with a number is, and the end of its page there.
    pub(crate) fn offset(&self, number: u32) -> (usize, usize) {
        let page = self.of_number(number);
        let end = page.offset + (page.end - page.start) as usize;
        (page.offset + (number - page.first_word) as usize * 8, end)
    }

    fn of_number(&self, number: u32) -> &Page {
        let mut index = self.hints.get((number >> HINT_BITS) as usize).map_or(0, |&hint| hint as usize);
        while self.list.get(index + 1).is_some_and(|next| next.first_word <= number) {
            index += 1;
        }
        &self.list[index]
    }
}

/// The page of each block, in a flat table: a look-up is made for every word of the heap.
#[derive(Debug, Default)]
struct Blocks {
    /// A power of two of places; the second number is [`FREE`] where there is none.
    table: Vec<(u64, u32)>,
    count: usize,
}

const FREE: u32 = u32::MAX;

impl Blocks {
    fn place(&self, block: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.table[at].1 != FREE && self.table[at].0 != block {
            at = (at + 1) & mask;
        }
        at
    }

    fn get(&self, block: u64) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        Some(self.table[self.place(block)].1).filter(|&index| index != FREE)
    }

    fn insert(&mut self, block: u64, index: u32) {
        // At most a quarter is in use, so that most look-ups end where they begin.
        if self.count * 4 >= self.table.len() {
            let larger = vec![(0, FREE); (self.table.len() * 2).max(64)];
            for (block, index) in std::mem::replace(&mut self.table, larger) {
                if index != FREE {
                    let at = self.place(block);
                    self.table[at] = (block, index);
                }
            }
        }
        let at = self.place(block);
        self.count += usize::from(self.table[at].1 == FREE);
        self.table[at] = (block, index);
    }
}

/// Where objects begin and end, and what else a page's header says.
#[derive(Clone, Copy)]
struct Area {
    header: u64,
    start: u64,
    end: u64,
    flags: u64,
    heap: u64,
    owner: u64,
}

/// If a page of V8 begins here.
fn header(image: &Image<'_>, base: u64) -> Option<Area> {
    let bytes = image.at(base, 128);
    let at = |index: usize| word(bytes, index * 8);
    let begins = |start: u64| base < start && start - base < HEADER;
    let is_size = |size: u64| (1..=LARGEST).contains(&size) && size.is_multiple_of(MAPPED);
    // Node 18 and 20: size, flags, heap, start, end. A table of pointers of malloc would look like it, but for the size.
    if is_size(at(0)) && begins(at(3)) && at(3) < at(4) && at(4) - base <= at(0) && at(1) >> 32 == 0 {
        return Some(Area {
            header: base,
            start: at(3),
            end: at(4),
            flags: at(1),
            heap: at(2),
            owner: at(8),
        });
    }
    // Node 22: flags, itself, size, heap, start, end.
    if at(1) == base && is_size(at(2)) && begins(at(4)) && at(4) < at(5) && at(5) - base <= at(2) {
        return Some(Area {
            header: base,
            start: at(4),
            end: at(5),
            flags: at(0),
            heap: at(3),
            owner: at(9),
        });
    }
    // Node 24 and 26: flags, and the rest elsewhere: itself, size, …, size, end, heap, start.
    if at(0) == 0 || at(0) >> 32 != 0 {
        return None;
    }
    let header = at(1);
    let bytes = image.at(header, 96);
    let at2 = |index: usize| word(bytes, index * 8);
    let fits = begins(at2(9)) && at2(9) < at2(7) && at2(6) >= at2(7) - base - 1 && at2(7) - base < LARGEST;
    fits.then(|| Area { header, start: at2(9), end: at2(7), flags: at(0), heap: at2(8), owner: at2(10) })
}

/// Addresses need no more mixing than a multiplication.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Multiply;

#[derive(Debug)]
pub(crate) struct Product(u64);

impl BuildHasher for Multiply {
    type Hasher = Product;

    fn build_hasher(&self) -> Product {
        Product(0)
    }
}

impl Hasher for Product {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 29;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core file with these words at an address.
    fn core(base: u64, words: &[u64]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[16], file[18], file[32], file[56], file[64]) = (4, 62, 64, 1, 1);
        let size = (PAGE * 2).to_le_bytes();
        for (at, bytes) in [(8, 120_u64.to_le_bytes()), (16, base.to_le_bytes()), (32, size), (40, size)] {
            file[64 + at..72 + at].copy_from_slice(&bytes);
        }
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        file.resize(120 + 2 * PAGE as usize, 0);
        file
    }

    fn found(base: u64, words: &[u64]) -> usize {
        Pages::find(&Image::parse(&core(base, words)).unwrap()).unwrap().list.len()
    }

    #[test]
    fn a_page_is_known_by_its_header_and_pointers_are_none() {
        let base = 0xf30_0000;
        assert_eq!(found(base, &[PAGE, 4, 0x800_0000, base + 0x100, base + PAGE]), 1);
        assert_eq!(found(base, &[4, base, PAGE, 0x800_0000, base + 0x100, base + PAGE]), 1);
        // Of a program whose own memory is low, as malloc had it in Node 22.
        let pointers = [0xf30_0420, 0xf2f_f800, 0xf30_0740, 0xf30_0360, 0xf30_04e0, 0xf2f_f8c0];
        assert_eq!(found(base, &pointers), 0);
    }
}
