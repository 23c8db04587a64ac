//! Where a block ends: where the input becomes different.

use super::tokens::{FIRST_MATCH, Tokens};

/// How many tokens come between two looks.
pub(super) const INTERVAL: usize = 512;

/// A block, and what is left behind it, has at least this many bytes.
const LEAST: usize = 5000;

/// Classes of tokens: literals by two of their bits and their parity, and matches by length.
const CLASSES: usize = 10;
/// Matches shorter than this many bytes above the shortest form a class of their own.
const SHORT: usize = 6;

/// Compares the latest tokens of a block with those before. Nothing is counted for it: the frequencies that the codes
/// are made of show what has been added since the last look.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// All counts at the last look.
    counted: [u32; CLASSES],
    /// How many tokens there were.
    tokens: usize,
    /// The counts that are known to belong together.
    block: [u32; CLASSES],
    total: u32,
}

impl Split {
    /// Whether the block should end here, `length` bytes behind its beginning and `left` before the input's end.
    pub(super) fn ends(&mut self, tokens: &Tokens, length: usize, left: usize) -> bool {
        if length < LEAST || left < LEAST {
            return false;
        }
        let counts = census(&tokens.frequencies);
        let mut latest = counts;
        latest.iter_mut().zip(&self.counted).for_each(|(latest, before)| *latest -= before);
        let added = (tokens.len() - self.tokens) as u32;
        (self.counted, self.tokens) = (counts, tokens.len());
        if self.total > 0 && self.differs(&latest, added, length) {
            return true;
        }
        self.block.iter_mut().zip(&latest).for_each(|(block, latest)| *block += latest);
        self.total += added;
        false
    }

    /// Whether the shares of the classes differ by more than a new header costs. The longer the block, the less it takes.
    fn differs(&self, latest: &[u32; CLASSES], added: u32, length: usize) -> bool {
        /// Of 512.
        const SHARE: u64 = 200;
        const SHORT_BLOCK: usize = 10_000;
        const MANY: u64 = 8192;
        let (total, added) = (u64::from(self.total), u64::from(added));
        let distance: u64 = self
            .block
            .iter()
            .zip(latest)
            .map(|(block, latest)| (u64::from(*block) * added).abs_diff(u64::from(*latest) * total))
            .sum();
        let mut limit = added * SHARE / 512 * total;
        if length < SHORT_BLOCK && total + added < MANY {
            limit += limit * (MANY - total - added) / MANY;
        }
        distance + (length as u64 >> 12) * total >= limit
    }
}

/// How many tokens there are of each class.
fn census(frequencies: &[u32; 512]) -> [u32; CLASSES] {
    let mut classes = [0; CLASSES];
    for (group, literals) in frequencies[..256].chunks_exact(64).enumerate() {
        let mut sums = [0; 2];
        for pair in literals.chunks_exact(2) {
            sums[0] += pair[0];
            sums[1] += pair[1];
        }
        [classes[2 * group], classes[2 * group + 1]] = sums;
    }
    let (short, long) = frequencies[FIRST_MATCH as usize..].split_at(SHORT);
    classes[CLASSES - 2] = short.iter().sum();
    classes[CLASSES - 1] = long.iter().sum();
    classes
}
