//! Where JavaScript's frames begin on a stack. A function that has returned leaves its frame behind, and one of native code may
//! have room there that it never writes to, as libuv has for events: by its shape alone such a frame is not told from one of a
//! function that still runs.
//!
//! V8 keeps in its isolate where JavaScript was left for native code; that is the frame of an exit, from which each leads to its
//! caller's. Where native code calls JavaScript again, the frame of that entry keeps where it was left before.

use std::collections::HashSet;

use crate::bytes::word;
use crate::image::{Image, Thread};
use crate::objects::View;
use crate::pages::Pages;
use crate::roots;
use crate::stack::Call;

/// An isolate's own fields, before its heap. Most are tables of V8's functions.
const FIELDS: u64 = 256 << 10;
/// So far below its frame pointer an entry keeps where JavaScript was left before.
const ENTRY: u64 = 96;
/// Of one thread, in a file that may be damaged.
const MOST: usize = 4096;

/// What isolates keep that may be an address on a stack.
#[derive(Debug)]
pub(crate) struct Exits(Vec<u64>);

impl Exits {
    pub(crate) fn of(image: &Image<'_>, pages: &Pages) -> Self {
        let stack = |address: &u64| {
            let is_on = |thread: &Thread| {
                image.segment(thread.sp).is_some_and(|stack| (thread.sp..stack.end).contains(address))
            };
            address & 7 == 0 && image.threads.iter().any(is_on)
        };
        let of_isolate = |isolate: roots::Isolate| {
            let bytes = image.at(isolate.start, (isolate.heap - isolate.start).min(FIELDS) as usize);
            bytes.chunks_exact(8).map(|bytes| word(bytes, 0)).collect::<Vec<_>>()
        };
        let words = roots::isolates(image, pages).into_iter().flat_map(of_isolate);
        Self(words.filter(stack).collect())
    }

    /// The lowest of the frames of JavaScript that still run, below the end of the stack.
    pub(crate) fn lowest(&self, view: &View<'_>, thread: &Thread, end: u64) -> Option<u64> {
        let is_within = |address: u64| address & 7 == 0 && (thread.sp..end).contains(&address);
        let mut starts: Vec<u64> = self.0.iter().copied().filter(|&address| is_within(address)).collect();
        if !is_in_library(view.image, thread.pc) {
            starts.push(thread.fp);
        }
        let (mut lowest, mut seen) = (None, HashSet::new());
        while let Some(start) = starts.pop() {
            let mut at = start;
            while is_within(at) && seen.len() < MOST && seen.insert(at) {
                if Call::at(view, at, at).is_some() {
                    lowest = Some(lowest.map_or(at, |known: u64| known.min(at)));
                } else {
                    let kept = (8..=ENTRY).step_by(8).map(|below| view.image.word(at.wrapping_sub(below)));
                    starts.extend(kept.filter(|&kept| kept > at && is_within(kept)));
                }
                let caller = view.image.word(at);
                at = if caller > at { caller } else { 0 };
            }
        }
        lowest
    }
}

/// There, the frame pointer is a register like any other.
fn is_in_library(image: &Image<'_>, pc: u64) -> bool {
    image.files.iter().any(|file| (file.start..file.end).contains(&pc) && file.path.contains(".so"))
}
