//! The memory of one stream: regions from its owner's allocator, used as one array of bytes.

use core::ptr::{self, NonNull};
use core::slice;

use crate::pool::{self, Scratch};

/// zlib makes five requests to its allocator.
pub const MAX_REGIONS: usize = 8;

/// A part of the owner's memory.
#[derive(Clone, Copy, Debug)]
struct Region {
    address: NonNull<u8>,
    len: usize,
}

/// Bytes 0 to [`Store::len`], in as few pieces as the allocations permit. An allocator that serves from an arena
/// returns neighbours, which become one piece.
#[derive(Debug, Default)]
pub struct Store {
    regions: [Option<Region>; MAX_REGIONS],
    len: usize,
}

// SAFETY: the store is the only user of its regions, whichever thread it is on.
unsafe impl Send for Store {}

impl Store {
    /// # Safety
    ///
    /// Each region must stay valid for reads and writes, and be used by nobody else, for as long as the store is used.
    pub unsafe fn new(regions: impl IntoIterator<Item = (NonNull<u8>, usize)>) -> Self {
        let mut store = Self::default();
        let mut count = 0_usize;
        for (address, len) in regions.into_iter().take(MAX_REGIONS) {
            store.len += len;
            match count.checked_sub(1).and_then(|last| store.regions[last].as_mut()) {
                Some(last) if last.address.as_ptr().wrapping_add(last.len) == address.as_ptr() => {
                    last.len += len;
                }
                _ => {
                    store.regions[count] = Some(Region { address, len });
                    count += 1;
                }
            }
        }
        store
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `bytes` to `offset`; they must fit.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let mut rest = bytes;
        self.pieces(offset, bytes.len(), |address, len| {
            let (now, later) = rest.split_at(len);
            // SAFETY: `pieces` stays inside the regions, which are ours alone; `bytes` may lie in them too, hence
            // `copy`.
            unsafe { ptr::copy(now.as_ptr(), address, len) };
            rest = later;
        });
    }

    /// Copies from `offset` until `bytes` is full.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let mut done = 0;
        self.pieces(offset, bytes.len(), |address, len| {
            // SAFETY: `pieces` stays inside the regions; `bytes` is exclusively borrowed, so it does not overlap them.
            unsafe { ptr::copy_nonoverlapping(address, bytes.as_mut_ptr().add(done), len) };
            done += len;
        });
    }

    /// The bytes from `offset`, borrowed in place if they are contiguous, else as a copy; `None` if there is no memory
    /// for that. They must have been written: allocated memory is not initialised.
    pub fn get(&self, offset: usize, len: usize) -> Option<Bytes<'_>> {
        let mut whole = None;
        self.pieces(offset, len, |address, piece| {
            if piece == len {
                whole = Some(address);
            }
        });
        Some(match whole {
            // SAFETY: the piece is inside a region, and the borrow of `self` keeps writers out.
            Some(address) => Bytes::Here(unsafe { slice::from_raw_parts(address, len) }),
            None if len == 0 => Bytes::Here(&[]),
            None => {
                let mut copy = pool::scratch(len)?;
                self.read(offset, &mut copy[..len]);
                Bytes::Copied(copy, len)
            }
        })
    }

    /// Copies the first `len` bytes of another store.
    pub fn copy_from(&mut self, other: &Self, len: usize) {
        let mut done = 0;
        other.pieces(0, len, |address, piece| {
            // SAFETY: `pieces` stays inside the regions, whose first `len` bytes were written.
            self.write(done, unsafe { slice::from_raw_parts(address, piece) });
            done += piece;
        });
    }

    /// Moves `len` bytes to the beginning.
    pub fn move_to_front(&mut self, from: usize, len: usize) {
        if from == 0 || len == 0 {
            return;
        }
        if let Some(Region { address, .. }) = self.regions[0].filter(|first| from + len <= first.len) {
            // SAFETY: both ranges are in the first region, which is ours alone.
            unsafe { ptr::copy(address.as_ptr().add(from), address.as_ptr(), len) };
            return;
        }
        // Piece by piece, forwards: a destination is always before its source.
        let mut buffer = [0; 256];
        let mut done = 0;
        while done < len {
            let step = buffer.len().min(len - done);
            self.read(from + done, &mut buffer[..step]);
            self.write(done, &buffer[..step]);
            done += step;
        }
    }

    /// `len` bytes of one piece, aligned to 16, that lie entirely in `from..`, and the offset at which they end.
    pub fn place(&self, from: usize, len: usize) -> Option<(NonNull<u8>, usize)> {
        let mut start = 0;
        for region in self.regions.iter().flatten() {
            let skip = from.saturating_sub(start).min(region.len);
            let address = region.address.as_ptr().wrapping_add(skip);
            let offset = skip + address.align_offset(16);
            if offset + len <= region.len {
                // SAFETY: the result is inside the region, as just compared.
                return Some((unsafe { region.address.add(offset) }, start + offset + len));
            }
            start += region.len;
        }
        None
    }

    /// The regions' parts that make up `offset..offset + len`, in order.
    fn pieces(&self, offset: usize, len: usize, mut each: impl FnMut(*mut u8, usize)) {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "outside the stream's memory");
        let (mut offset, mut len) = (offset, len);
        for region in self.regions.iter().flatten() {
            if len == 0 {
                break;
            }
            if offset < region.len {
                let step = len.min(region.len - offset);
                each(region.address.as_ptr().wrapping_add(offset), step);
                len -= step;
                offset = 0;
            } else {
                offset -= region.len;
            }
        }
    }
}

/// Bytes of a store.
#[derive(Debug)]
pub enum Bytes<'a> {
    Here(&'a [u8]),
    Copied(Scratch, usize),
}

impl core::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::Copied(copy, len) => &copy[..*len],
        }
    }
}
