//! One set: which blocks it holds, and which one leaves when another comes.
//!
//! The policy is S3-FIFO, within the set. A new block enters a small queue; if it is used again before it reaches the
//! end, it moves to the main queue, and otherwise it leaves soon, so that a scan passes through without displacing what
//! is used. What left the small queue recently is remembered, and comes back into the main queue. Any bytes decode to a
//! set: what they say may be wrong, and then the checksum of the block is, too.

use crate::key::Tag;

/// Blocks of a set.
pub const WAYS: usize = 32;
/// Bytes of an encoded set: a head, what it remembers, and the ways.
pub const BYTES: usize = HEAD + 4 * WAYS + WAY * WAYS;

const HEAD: usize = 64;
const WAY: usize = 32;
/// The part of a set that new blocks get before others must leave.
const SMALL: usize = 3;
/// Uses are counted up to here.
const MOST_USES: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The next position in the queues.
    order: u32,
    ghost_at: u32,
    ghosts: [u32; WAYS],
    ways: [Way; WAYS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    /// Zero: free.
    tag: [u64; 2],
    sum: u64,
    order: u32,
    uses: u8,
    is_main: bool,
}

impl Way {
    const FREE: Self = Self { tag: [0; 2], sum: 0, order: 0, uses: 0, is_main: false };
}

impl Set {
    #[must_use]
    pub const fn empty() -> Self {
        Self { order: 0, ghost_at: 0, ghosts: [0; WAYS], ways: [Way::FREE; WAYS] }
    }

    #[must_use]
    pub fn decode(bytes: &[u8; BYTES]) -> Self {
        let mut set = Self::empty();
        set.decode_from(bytes);
        set
    }

    /// The same in place: a set is too large to be moved about on a small stack.
    pub(crate) fn decode_from(&mut self, bytes: &[u8; BYTES]) {
        (self.order, self.ghost_at) = (four(bytes, 0), four(bytes, 4));
        for (i, ghost) in self.ghosts.iter_mut().enumerate() {
            *ghost = four(bytes, HEAD + 4 * i);
        }
        for (i, way) in self.ways.iter_mut().enumerate() {
            let at = Self::way(i);
            *way = Way {
                tag: [eight(bytes, at), eight(bytes, at + 8)],
                sum: eight(bytes, at + 16),
                order: four(bytes, at + 24),
                uses: bytes[at + 28].min(MOST_USES),
                is_main: bytes[at + 29] & 1 == 1,
            };
        }
    }

    #[must_use]
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        self.encode_into(&mut bytes);
        bytes
    }

    pub(crate) fn encode_into(&self, bytes: &mut [u8; BYTES]) {
        bytes.fill(0);
        bytes[..4].copy_from_slice(&self.order.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.ghost_at.to_le_bytes());
        for (i, ghost) in self.ghosts.iter().enumerate() {
            bytes[HEAD + 4 * i..][..4].copy_from_slice(&ghost.to_le_bytes());
        }
        for (i, way) in self.ways.iter().enumerate() {
            let at = Self::way(i);
            bytes[at..][..8].copy_from_slice(&way.tag[0].to_le_bytes());
            bytes[at + 8..][..8].copy_from_slice(&way.tag[1].to_le_bytes());
            bytes[at + 16..][..8].copy_from_slice(&way.sum.to_le_bytes());
            bytes[at + 24..][..4].copy_from_slice(&way.order.to_le_bytes());
            bytes[at + 28] = way.uses;
            bytes[at + 29] = u8::from(way.is_main);
        }
    }

    /// The way of a block in an encoded set, and its checksum; without decoding, because most looks find it.
    pub(crate) fn find_in(bytes: &[u8; BYTES], tag: Tag) -> Option<(usize, u64)> {
        let is_here = |way: &usize| {
            let at = Self::way(*way);
            eight(bytes, at) == tag.0[0] && eight(bytes, at + 8) == tag.0[1]
        };
        (0..WAYS).find(is_here).map(|way| (way, eight(bytes, Self::way(way) + 16)))
    }

    /// The count of a way's uses in an encoded set after one more use: where it is, and what it becomes; `None` once it
    /// is at its highest.
    pub(crate) fn used_in(bytes: &[u8; BYTES], way: usize) -> Option<(usize, u8)> {
        let at = Self::way(way) + 28;
        (bytes[at] < MOST_USES).then(|| (at, bytes[at] + 1))
    }

    /// Where an encoded set has a way.
    pub(crate) const fn way(way: usize) -> usize {
        HEAD + 4 * WAYS + WAY * way
    }

    /// Whether the set has a block.
    #[must_use]
    pub fn has(&self, tag: Tag) -> bool {
        self.ways.iter().any(|way| way.tag == tag.0)
    }

    /// Counts a use of a block.
    pub fn touch(&mut self, tag: Tag) {
        if let Some(way) = self.ways.iter_mut().find(|way| way.tag == tag.0) {
            way.uses = (way.uses + 1).min(MOST_USES);
        }
    }

    /// Makes room for a block that is not there; returns its way.
    pub(crate) fn admit(&mut self, tag: Tag, sum: u64) -> usize {
        let fingerprint = tag.fingerprint();
        let is_main = match self.ghosts.iter_mut().find(|ghost| **ghost == fingerprint) {
            Some(ghost) => {
                *ghost = 0;
                true
            }
            None => false,
        };
        let way = self.free().unwrap_or_else(|| self.evict());
        self.ways[way] = Way { tag: tag.0, sum, order: self.next(), uses: 0, is_main };
        way
    }

    pub(crate) fn remove(&mut self, tag: Tag) {
        if let Some(way) = self.ways.iter_mut().find(|way| way.tag == tag.0) {
            *way = Way::FREE;
        }
    }

    fn free(&self) -> Option<usize> {
        self.ways.iter().position(|way| way.tag == [0; 2])
    }

    fn evict(&mut self) -> usize {
        // Each turn takes a use or moves a block to the main queue, so they end; foreign bytes end them here.
        for _ in 0..WAYS * (usize::from(MOST_USES) + 2) {
            let small = self.ways.iter().filter(|way| !way.is_main).count();
            let from_main = small <= SMALL;
            let oldest = self.oldest(from_main);
            let next = self.next();
            let way = &mut self.ways[oldest];
            if way.uses == 0 {
                if !from_main {
                    let fingerprint = Tag(way.tag).fingerprint();
                    self.ghosts[self.ghost_at as usize % WAYS] = fingerprint;
                    self.ghost_at = self.ghost_at.wrapping_add(1);
                }
                return oldest;
            }
            way.uses = if from_main { way.uses - 1 } else { 0 };
            way.is_main = true;
            way.order = next;
        }
        self.order as usize % WAYS
    }

    /// The first of a queue; positions may have wrapped.
    fn oldest(&self, is_main: bool) -> usize {
        let age = |way: &Way| self.order.wrapping_sub(way.order);
        let queue = (0..WAYS).filter(|i| self.ways[*i].is_main == is_main);
        queue.max_by_key(|i| age(&self.ways[*i])).unwrap_or(0)
    }

    fn next(&mut self) -> u32 {
        self.order = self.order.wrapping_add(1);
        self.order
    }
}

fn eight(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from(four(bytes, at)) | u64::from(four(bytes, at + 4)) << 32
}

fn four(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(number: u64) -> Tag {
        crate::FileTag([1, 2]).block(number)
    }

    fn with(blocks: impl Iterator<Item = u64>) -> Set {
        let mut set = Set::empty();
        blocks.for_each(|block| {
            set.admit(tag(block), block);
        });
        set
    }

    #[test]
    fn a_scan_passes_without_displacing_what_is_used() {
        let mut set = with(0..20);
        for block in 0..20 {
            set.touch(tag(block));
            set.touch(tag(block));
        }
        for block in 1000..3000 {
            set.admit(tag(block), 0);
        }
        let kept = (0..20).filter(|block| set.has(tag(*block))).count();
        assert_eq!(kept, 20);
    }

    #[test]
    fn what_comes_back_soon_stays() {
        let mut set = with(0..32);
        for block in 32..40 {
            set.admit(tag(block), 0);
        }
        assert!(!set.has(tag(0)), "the first to come is the first to leave");
        set.admit(tag(0), 0);
        for block in 100..200 {
            set.admit(tag(block), 0);
        }
        assert!(set.has(tag(0)));
    }

    #[test]
    fn a_removed_block_leaves_room() {
        let mut set = with(0..32);
        set.remove(tag(5));
        let before: Vec<_> = (0..32).filter(|block| set.has(tag(*block))).collect();
        set.admit(tag(99), 0);
        assert!(before.into_iter().all(|block| set.has(tag(block))));
    }

    #[test]
    fn positions_may_wrap() {
        let mut set = with(0..32);
        set.order = u32::MAX - 40;
        for (i, way) in set.ways.iter_mut().enumerate() {
            way.order = u32::MAX - 80 + i as u32;
        }
        for block in 100..164 {
            set.admit(tag(block), 0);
        }
        assert!((0..32).all(|block| !set.has(tag(block))), "all of the first have left");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_set(bytes in proptest::collection::vec(any::<u8>(), BYTES), block: u64) {
            let bytes: [u8; BYTES] = bytes.try_into().expect("that many");
            let mut set = Set::decode(&bytes);
            prop_assert_eq!(Set::decode(&set.encode()), set.clone());
            let way = set.admit(tag(block), 7);
            prop_assert!(way < WAYS && set.has(tag(block)));
            prop_assert_eq!(Set::find_in(&set.encode(), tag(block)), Some((way, 7)));
        }
    }
}
