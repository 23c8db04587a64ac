//! JavaScript's frames on the stack of a thread, known by their shape.

use crate::image::Thread;
use crate::native::{Function, Names, Place};
use crate::objects::View;
use crate::report::Frame;

/// More would be an endless recursion, whose end is on top.
const FRAMES: usize = 400;
/// Of all threads, in a file that may be damaged: words that are looked at.
pub(crate) const WORDS: u64 = 1 << 24;
const ARGUMENTS: u64 = 8;
const STACK: u64 = 8 << 20;
/// The kind of a frame that is not of JavaScript; its script is a program or a library.
pub(crate) const NATIVE: &str = "native";

/// A function that was called, by its frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) fp: u64,
    pub(crate) shared: u64,
    arguments: u64,
}

impl Call {
    /// Known by its shape: below the caller's frame pointer a frame keeps the context and the function.
    fn at(view: &View<'_>, fp: u64) -> Option<Self> {
        let word = |offset: i64| view.image.word(fp.wrapping_add_signed(offset));
        let function = word(-16);
        let is_function = view.map(function).is_some_and(|map| view.layout.is_function(map.kind));
        let has_context = view.map(word(-8)).is_some_and(|map| view.layout.is_context(map.kind));
        let arguments = match word(-24) {
            count if count < 64 => count.saturating_sub(1).min(ARGUMENTS),
            _ => 0,
        };
        let shared = || view.field(function, view.layout.function_shared);
        (is_function && has_context).then(|| Self { fp, shared: shared(), arguments })
    }

    pub(crate) fn arguments(&self, view: &View<'_>) -> Vec<u64> {
        (0..self.arguments).map(|index| view.image.word(self.fp.wrapping_add(24 + 8 * index))).collect()
    }
}

/// From the top down: of JavaScript, and the native ones around.
pub(crate) fn frames(
    view: &View<'_>,
    calls: &[Call],
    places: &[Place],
    names: &Names,
    redact: bool,
) -> Vec<Frame> {
    let native = places.iter().enumerate().filter_map(|(index, place)| {
        let function = names.get(place.pc)?;
        // V8's own pieces of code between are no functions of anybody.
        let is_call = index == 0 || function.follows_call;
        let is_frame = is_call
            && !function.name.starts_with("Builtins_")
            && calls.iter().all(|call| call.fp != place.at);
        is_frame.then(|| (place.at, native(function, !place.is_guess)))
    });
    let mut frames: Vec<(u64, Frame)> =
        calls.iter().map(|call| (call.fp, frame(view, call, redact))).collect();
    frames.extend(native);
    frames.sort_by_key(|(at, _)| *at);
    frames.into_iter().map(|(_, frame)| frame).collect()
}

fn native(function: &Function, exact: bool) -> Frame {
    Frame {
        function: function.name.clone(),
        script: function.file.clone(),
        line: 0,
        column: 0,
        kind: NATIVE,
        exact,
        arguments: Vec::new(),
    }
}

/// The functions of JavaScript, from the top down.
pub(crate) fn calls(view: &View<'_>, thread: &Thread, words: &mut u64) -> Vec<Call> {
    let Some(segment) = view.image.segment(thread.sp) else { return Vec::new() };
    let top = segment.end.min(thread.sp.saturating_add(STACK));
    let mut calls = Vec::new();
    let mut at = thread.sp & !7;
    while at.saturating_add(16) < top && calls.len() < FRAMES && *words > 0 {
        *words -= 1;
        let caller = view.image.word(at);
        let is_frame = caller & 7 == 0 && at < caller && caller < top;
        match is_frame.then(|| Call::at(view, at)).flatten() {
            Some(call) => {
                calls.push(call);
                at = caller;
            }
            None => at += 8,
        }
    }
    calls
}

fn frame(view: &View<'_>, call: &Call, redact: bool) -> Frame {
    let word = |offset: i64| view.image.word(call.fp.wrapping_add_signed(offset));
    let (bytecode, offset) = (word(view.layout.frame_bytecode), word(view.layout.frame_offset));
    let interpreted = view.is_bytecode(bytecode) && offset as u32 == 0;
    let position = interpreted
        .then(|| view.position(bytecode, (offset >> 32).wrapping_sub(view.layout.bytecode_header - 1)))
        .flatten();
    let (script, line, column) = view.place(call.shared, position).unwrap_or_default();
    let name = view.function_name(call.shared);
    Frame {
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
        arguments: call.arguments(view).into_iter().map(|value| view.show(value, redact)).collect(),
    }
}
