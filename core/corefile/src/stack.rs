//! JavaScript's frames on the stack of a thread, known by their shape.

use crate::image::Thread;
use crate::objects::View;
use crate::report::Frame;

/// More would be an endless recursion, whose end is on top.
const FRAMES: usize = 400;
/// Of all threads, in a file that may be damaged: words that are looked at.
pub(crate) const WORDS: u64 = 1 << 24;
const ARGUMENTS: u64 = 8;
const STACK: u64 = 8 << 20;

/// From the top down. A frame keeps, below the caller's frame pointer, the context and the function.
pub(crate) fn frames(view: &View<'_>, thread: &Thread, words: &mut u64, redact: bool) -> Vec<Frame> {
    let Some(segment) = view.image.segment(thread.sp) else { return Vec::new() };
    let top = segment.end.min(thread.sp.saturating_add(STACK));
    let mut frames = Vec::new();
    let mut at = thread.sp & !7;
    while at.saturating_add(16) < top && frames.len() < FRAMES && *words > 0 {
        *words -= 1;
        let caller = view.image.word(at);
        let is_frame = caller & 7 == 0 && at < caller && caller < top;
        match is_frame.then(|| frame(view, at, redact)).flatten() {
            Some(frame) => {
                frames.push(frame);
                at = caller;
            }
            None => at += 8,
        }
    }
    frames
}

fn frame(view: &View<'_>, fp: u64, redact: bool) -> Option<Frame> {
    let word = |offset: i64| view.image.word(fp.wrapping_add_signed(offset));
    let function = word(-16);
    let is_function = view.map(function).is_some_and(|map| view.layout.is_function(map.kind));
    let has_context = view.map(word(-8)).is_some_and(|map| view.layout.is_context(map.kind));
    if !is_function || !has_context {
        return None;
    }
    let shared = view.field(function, view.layout.function_shared);
    let (bytecode, offset) = (word(view.layout.frame_bytecode), word(view.layout.frame_offset));
    let interpreted = view.is_bytecode(bytecode) && offset as u32 == 0;
    let position = interpreted
        .then(|| view.position(bytecode, (offset >> 32).wrapping_sub(view.layout.bytecode_header - 1)))
        .flatten();
    let (script, line, column) = view.place(shared, position).unwrap_or_default();
    let name = view.function_name(shared);
    let count = match word(-24) {
        count if count < 64 => count.saturating_sub(1).min(ARGUMENTS),
        _ => 0,
    };
    Some(Frame {
        function: if name.is_empty() { "(anonymous)".to_owned() } else { name },
        line,
        column,
        kind: if interpreted {
            "interpreted"
        } else if script.is_empty() {
            "builtin"
        } else {
            "compiled"
        },
        exact: position.is_some(),
        script,
        arguments: (0..count).map(|index| view.show(word(24 + 8 * index.cast_signed()), redact)).collect(),
    })
}
