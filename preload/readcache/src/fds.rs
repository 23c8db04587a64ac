//! Which descriptors are worth a look.
//!
//! This is a hint and never evidence. A number may have become another file's without our knowledge: then a look shows
//! what it is, or a file is read without the cache that could have been in it.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const COUNT: usize = 1 << 16;
/// Pages that nobody touches cost nothing.
static MARKS: [AtomicU8; COUNT] = [const { AtomicU8::new(0) }; COUNT];

/// Why a descriptor is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    const NAMED: u8 = 1;
    const STABLE: u8 = 2;

    pub(crate) fn new(is_named: bool) -> Self {
        Self(if is_named { Self::NAMED } else { Self::STABLE })
    }

    /// By its name, and not only if it has not changed for a while.
    pub(crate) fn is_named(self) -> bool {
        self.0 == Self::NAMED
    }
}

#[inline]
pub(crate) fn mark_of(fd: i32) -> Option<Mark> {
    let mark = MARKS.get(fd as usize)?.load(Relaxed);
    (mark != 0).then_some(Mark(mark))
}

pub(crate) fn set(fd: i32, mark: Option<Mark>) {
    if let Some(place) = MARKS.get(fd as usize) {
        place.store(mark.map_or(0, |mark| mark.0), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stays_until_it_is_replaced() {
        assert_eq!((mark_of(-1), mark_of(7), mark_of(i32::MAX)), (None, None, None));
        set(7, Some(Mark::new(true)));
        assert!(mark_of(7).is_some_and(Mark::is_named));
        set(7, Some(Mark::new(false)));
        assert!(mark_of(7).is_some_and(|mark| !mark.is_named()));
        set(7, None);
        set(-1, Some(Mark::new(true)));
        assert_eq!((mark_of(-1), mark_of(7)), (None, None));
    }
}
