//! JavaScript's frames on the stack of a thread, known by their shape.

use crate::exits::Exits;
use crate::image::Thread;
use crate::inlined::{self, Part};
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

const INTERPRETED: &str = "interpreted";
const BUILTIN: &str = "builtin";
/// Baseline code, or optimised code of which no more is known.
const COMPILED: &str = "compiled";
const OPTIMISED: &str = "optimised";
/// It has no frame of its own.
pub(crate) const INLINED: &str = "optimised, inlined";

/// A function that was called, by its frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) fp: u64,
    pub(crate) shared: u64,
    /// Up to here the stack belongs to what it has called.
    below: u64,
    arguments: u64,
}

impl Call {
    /// Known by its shape: below the caller's frame pointer a frame keeps the context and the function.
    pub(crate) fn at(view: &View<'_>, fp: u64, below: u64) -> Option<Self> {
        let word = |offset: i64| view.image.word(fp.wrapping_add_signed(offset));
        let function = word(-16);
        let is_function = view.map(function).is_some_and(|map| view.layout.is_function(map.kind));
        let has_context = view.map(word(-8)).is_some_and(|map| view.layout.is_context(map.kind));
        let arguments = match word(-24) {
            count if count < 64 => count.saturating_sub(1).min(ARGUMENTS),
            _ => 0,
        };
        let shared = || view.field(function, view.layout.function_shared);
        (is_function && has_context).then(|| Self { fp, shared: shared(), below, arguments })
    }

    fn shown(&self, view: &View<'_>, redact: bool) -> Vec<String> {
        self.arguments(view).into_iter().map(|value| view.show(value, redact)).collect()
    }

    pub(crate) fn arguments(&self, view: &View<'_>) -> Vec<u64> {
        (0..self.arguments).map(|index| view.image.word(self.fp.wrapping_add(24 + 8 * index))).collect()
    }
}

/// From the top down: of JavaScript, and the native ones around.
pub(crate) fn frames(
    view: &View<'_>,
    optimised: &inlined::Frames<'_>,
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
    let of_call = |call: &Call| {
        let whole = frame(view, call, redact);
        let parts = (whole.kind == COMPILED).then(|| optimised.parts(call.fp, call.below, call.shared));
        let frames = match parts.flatten() {
            Some(parts) => taken_apart(view, call, &parts, redact),
            None => vec![whole],
        };
        let at = call.fp;
        frames.into_iter().map(move |frame| (at, frame))
    };
    let mut frames: Vec<(u64, Frame)> = calls.iter().flat_map(of_call).collect();
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
pub(crate) fn calls(view: &View<'_>, exits: &Exits, thread: &Thread, words: &mut u64) -> Vec<Call> {
    let Some(segment) = view.image.segment(thread.sp) else { return Vec::new() };
    let top = segment.end.min(thread.sp.saturating_add(STACK));
    let Some(mut at) = exits.lowest(view, thread, top) else { return Vec::new() };
    let mut calls = Vec::new();
    let mut below = thread.sp & !7;
    while at.saturating_add(16) < top && calls.len() < FRAMES && *words > 0 {
        *words -= 1;
        let caller = view.image.word(at);
        let is_frame = caller & 7 == 0 && at < caller && caller < top;
        match is_frame.then(|| Call::at(view, at, below)).flatten() {
            Some(call) => {
                calls.push(call);
                below = at;
                at = caller;
            }
            None => at += 8,
        }
    }
    calls
}

/// The functions in an optimised frame, the innermost first. The arguments of those that are inlined may be nowhere.
fn taken_apart(view: &View<'_>, call: &Call, parts: &[Part], redact: bool) -> Vec<Frame> {
    let last = parts.len().saturating_sub(1);
    let of_part = |(index, part): (usize, &Part)| {
        let frame = match part.shared {
            Some(shared) => {
                let bytecode = part.offset.zip(view.bytecode(shared));
                placed(view, shared, bytecode.and_then(|(offset, bytecode)| view.position(bytecode, offset)))
            }
            None => Frame { function: "(builtin)".to_owned(), ..Frame::default() },
        };
        let kind = match index == last {
            true => OPTIMISED,
            false => INLINED,
        };
        let arguments = if index == last { call.shown(view, redact) } else { Vec::new() };
        Frame { kind, arguments, ..frame }
    };
    parts.iter().enumerate().map(of_part).collect()
}

fn frame(view: &View<'_>, call: &Call, redact: bool) -> Frame {
    let word = |offset: i64| view.image.word(call.fp.wrapping_add_signed(offset));
    let (bytecode, offset) = (word(view.layout.frame_bytecode), word(view.layout.frame_offset));
    let interpreted = view.is_bytecode(bytecode) && offset as u32 == 0;
    let position = interpreted
        .then(|| view.position(bytecode, (offset >> 32).wrapping_sub(view.layout.bytecode_header - 1)))
        .flatten();
    let frame = placed(view, call.shared, position);
    let kind = if interpreted { INTERPRETED } else { frame.kind };
    Frame { kind, arguments: call.shown(view, redact), ..frame }
}

/// A function, where it stands or begins.
fn placed(view: &View<'_>, shared: u64, position: Option<u32>) -> Frame {
    let (script, line, column) = view.place(shared, position).unwrap_or_default();
    let name = view.function_name(shared);
    Frame {
        function: if name.is_empty() { "(anonymous)".to_owned() } else { name },
        line,
        column,
        kind: if script.is_empty() { BUILTIN } else { COMPILED },
        exact: position.is_some(),
        script,
        arguments: Vec::new(),
    }
}
