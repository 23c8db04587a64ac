//! Memory for a read. A thread's stack may be small, and so may that of a signal handler, which may call `read`, so the
//! buffers are not there. Nor are they allocated: the handler may have interrupted the allocator.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

use hasten_blocks::{BLOCK, Cursor};

/// What a read needs besides the program's own buffer.
pub(crate) struct Room {
    pub(crate) cursor: Cursor,
    pub(crate) edges: Edges,
    /// A block to be kept.
    pub(crate) block: [u8; BLOCK],
}

/// What the program did not want of the first and the last block. Aligned, because the kernel may read past the page cache.
#[repr(C, align(4096))]
pub(crate) struct Edges {
    pub(crate) head: [u8; BLOCK],
    pub(crate) tail: [u8; BLOCK],
}

const COUNT: usize = u64::BITS as usize;

/// Rooms that nobody has used yet take no memory.
static ROOMS: Rooms = Rooms([const { UnsafeCell::new(Room::new()) }; COUNT]);
/// One bit for each.
static TAKEN: AtomicU64 = AtomicU64::new(0);

struct Rooms([UnsafeCell<Room>; COUNT]);

// SAFETY: a room is reached only through a `Taken`, of which each has a bit of its own.
unsafe impl Sync for Rooms {}

/// A room that nobody else has. One that a thread had when another forked stays taken in the child.
pub(crate) struct Taken(usize);

/// A free room; `None` if so many reads are going on.
pub(crate) fn take() -> Option<Taken> {
    let free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
    let before = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, free).ok()?;
    let mut room = Taken(before.trailing_ones() as usize);
    room.cursor.reset();
    Some(room)
}

impl Drop for Taken {
    fn drop(&mut self) {
        TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
    }
}

impl Deref for Taken {
    type Target = Room;

    fn deref(&self) -> &Room {
        // SAFETY: the bit was free and is ours until the drop, so nobody else has a reference.
        unsafe { &*ROOMS.0[self.0].get() }
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Room {
        // SAFETY: as above, and this reference excludes others through the same value.
        unsafe { &mut *ROOMS.0[self.0].get() }
    }
}

impl Room {
    const fn new() -> Self {
        let edges = Edges { head: [0; BLOCK], tail: [0; BLOCK] };
        Self { cursor: Cursor::new(), edges, block: [0; BLOCK] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn nobody_shares_a_room() {
        let rooms: Vec<_> = std::iter::from_fn(take).collect();
        let places: HashSet<_> = rooms.iter().map(|room| core::ptr::from_ref::<Room>(room)).collect();
        assert_eq!((rooms.len(), places.len()), (COUNT, COUNT));
        assert!(take().is_none());
        drop(rooms);
        assert!(take().is_some_and(|room| room.0 == 0));
    }
}
