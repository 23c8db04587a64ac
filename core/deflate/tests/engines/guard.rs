//! Assembly does not know slices: buffers here are followed by an inaccessible page.

use std::ptr;

use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings, bound};
use hasten_deflate::{pool, verify};

use crate::text::text;

const PAGE: usize = 4096;

/// Memory that ends where access ends.
struct Guarded {
    start: *mut u8,
    mapped: usize,
    length: usize,
}

impl Guarded {
    fn new(length: usize) -> Self {
        let mapped = length.next_multiple_of(PAGE) + PAGE;
        // SAFETY: a new mapping; its last page is made inaccessible while nobody knows it.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(ptr::null_mut(), mapped, access, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.byte_add(mapped - PAGE), PAGE, libc::PROT_NONE), 0);
            start.cast::<u8>()
        };
        Self { start, mapped, length }
    }

    fn with(bytes: &[u8]) -> Self {
        let mut guarded = Self::new(bytes.len());
        guarded.bytes().copy_from_slice(bytes);
        guarded
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: these bytes are mapped, initialized by the kernel, and borrowed as long as `self` is.
        unsafe {
            let start = self.start.add(self.mapped - PAGE - self.length);
            std::slice::from_raw_parts_mut(start, self.length)
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.mapped) };
    }
}

#[test]
fn nothing_is_touched_behind_a_buffer() {
    let plain = text(80_000, 9);
    for kind in EngineKind::ALL {
        for level in 1..=9 {
            for (history, length) in [(0, 1), (0, 9), (0, 700), (0, 40_000), (300, 5), (32_768, 40_000)] {
                for last in [true, false] {
                    let mut history = Guarded::with(&plain[..history]);
                    let mut input = Guarded::with(&plain[32_768..32_768 + length]);
                    let settings = Settings { level, ..Settings::default() };
                    let chunk = Chunk {
                        before: Bits::new(1, 1),
                        history: history.bytes(),
                        input: input.bytes(),
                        last,
                    };
                    let mut out = Guarded::new(bound(length));
                    let Some(written) = pool::compress(kind, &settings, &chunk, out.bytes()) else {
                        continue;
                    };
                    assert!(verify::matches(&settings, &chunk, out.bytes(), &written));

                    // And with no more room than the result needs.
                    let mut exact = Guarded::new(written.bytes);
                    if let Some(again) = pool::compress(kind, &settings, &chunk, exact.bytes()) {
                        assert_eq!(again, written);
                        assert!(exact.bytes() == &out.bytes()[..written.bytes]);
                    }
                }
            }
        }
    }
}
