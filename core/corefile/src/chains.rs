//! The parts of stacks that belong to JavaScript.
//!
//! Code that V8 compiles keeps frame pointers, from the frame that enters JavaScript to the one that leaves it. In the frames of native
//! code between such parts there are only left-overs, which hold nothing: what that code needs is in its handles.

use std::cell::Cell;

use crate::image::Image;
use crate::layout::Layout;

/// More frames, of all parts, would be an endless recursion.
const FRAMES: u32 = 1 << 22;
const PARTS: usize = 4096;
/// An entry frame keeps the last exit before it within so many words below its frame pointer.
const SAVED: u64 = 16;

/// From the lowest word to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// All parts of the stack that an isolate runs on: from the exit frame that one of its words points to, else from where a thread
/// is in compiled code.
pub(crate) fn parts(image: &Image<'_>, layout: &Layout, isolate: (u64, u64)) -> Vec<Part> {
    let chains = Chains { image, layout, left: Cell::new(FRAMES) };
    let words = image.at(isolate.0, (isolate.1 - isolate.0) as usize).chunks_exact(8);
    let mut exits = words.map(|bytes| crate::bytes::word(bytes, 0)).filter_map(|fp| chains.exit(fp));
    let mut found = Vec::new();
    let mut next = exits.next().or_else(|| chains.running());
    while let Some(part) = next {
        if found.contains(&part) || found.len() > PARTS {
            break;
        }
        found.push(part);
        let saved = (1..=SAVED).map(|index| image.word(part.end.wrapping_sub(8 * index)));
        next = saved.filter(|&fp| fp > part.end).find_map(|fp| chains.exit(fp));
    }
    found
}

struct Chains<'a> {
    image: &'a Image<'a>,
    layout: &'a Layout,
    left: Cell<u32>,
}

impl Chains<'_> {
    /// The part that ends with an exit frame.
    fn exit(&self, fp: u64) -> Option<Part> {
        if fp & 7 != 0 || fp < 4096 || !self.layout.exit_frames.contains(&self.image.word(fp - 8)) {
            return None;
        }
        self.chain(fp).map(|end| Part { start: fp, end })
    }

    /// The part that ends where a thread is.
    fn running(&self) -> Option<Part> {
        self.image.threads.iter().find_map(|thread| {
            let near = thread.sp <= thread.fp && thread.fp & 7 == 0;
            let end = near.then(|| self.chain(thread.fp)).flatten()?;
            Some(Part { start: thread.sp & !7, end })
        })
    }

    /// From frame to frame to the one that entered JavaScript.
    fn chain(&self, from: u64) -> Option<u64> {
        let segment = self.image.segment(from).filter(|segment| segment.writable)?;
        let mut fp = from;
        while self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            let mark = self.image.word(fp.checked_sub(8)?);
            if self.layout.entry_frames.contains(&mark) {
                return Some(fp);
            }
            // The type of the frame, or a context.
            let is_frame = mark & 7 == 1 || mark & 1 == 0 && mark < 256;
            let caller = self.image.word(fp);
            if !is_frame || caller <= fp || caller >= segment.end || caller & 7 != 0 {
                return None;
            }
            fp = caller;
        }
        None
    }
}
