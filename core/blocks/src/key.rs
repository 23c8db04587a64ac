//! What a block is found by.

use crate::sum;

/// Everything that identifies the content of a file: if it is unchanged, so is every byte, provided that nobody could
/// write while this was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// The inode's generation: inode numbers are used again.
    pub generation: u64,
    pub size: u64,
    /// Seconds and nanoseconds of the last change of the content.
    pub modified: (i64, i64),
    /// Of the last change of content or inode, which no program can set.
    pub changed: (i64, i64),
}

/// A file with a certain content, by 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileTag(pub(crate) [u64; 2]);

/// A block of such a file, by 128 bits; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(pub(crate) [u64; 2]);

impl Identity {
    fn words(&self) -> [u64; 8] {
        let (modified, changed) = (self.modified, self.changed);
        [
            self.device,
            self.inode,
            self.generation,
            self.size,
            modified.0 as u64,
            modified.1 as u64,
            changed.0 as u64,
            changed.1 as u64,
        ]
    }

    /// Its tag in a store with this secret, which is another one after each start of the machine.
    #[must_use]
    pub fn tag(&self, secret: [u64; 2]) -> FileTag {
        FileTag(secret.map(|seed| sum::of_words(seed, &self.words())))
    }
}

impl FileTag {
    /// The bits, for tables of files.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    #[must_use]
    pub fn block(self, number: u64) -> Tag {
        let [first, second] = self.0;
        let words = [first, second, number];
        Tag([sum::of_words(0x5bd1, &words) | 1, sum::of_words(0xe995, &words)])
    }

    /// Which set a block belongs to: neighbours share one, so that a read of several needs one look.
    pub(crate) fn place(self, number: u64) -> u64 {
        sum::of_words(self.0[0], &[self.0[1], number / NEIGHBOURS])
    }
}

/// The number of consecutive blocks in one set.
const NEIGHBOURS: u64 = 4;

impl Tag {
    pub(crate) fn sum(self, block: &[u8]) -> u64 {
        sum::of_bytes(self.0[0] ^ self.0[1].rotate_left(32), block)
    }

    /// What is remembered of a block that was evicted; never zero.
    pub(crate) fn fingerprint(self) -> u32 {
        (self.0[1] >> 32) as u32 | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_identity_counts() {
        let base =
            Identity { device: 1, inode: 2, generation: 3, size: 4, modified: (5, 6), changed: (7, 8) };
        let others = [
            Identity { device: 9, ..base },
            Identity { inode: 9, ..base },
            Identity { generation: 9, ..base },
            Identity { size: 9, ..base },
            Identity { modified: (9, 6), ..base },
            Identity { modified: (5, 9), ..base },
            Identity { changed: (9, 8), ..base },
            Identity { changed: (7, 9), ..base },
        ];
        let secret = [11, 12];
        for other in others {
            let (tag, base) = (other.tag(secret), base.tag(secret));
            assert!(tag.0[0] != base.0[0] && tag.0[1] != base.0[1], "{other:?}");
        }
        assert_ne!(base.tag([11, 12]), base.tag([12, 11]));
        assert_ne!(base.tag(secret).block(0), base.tag(secret).block(1));
    }
}
