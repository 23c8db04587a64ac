//! Exceptions that nobody had caught: those that V8 keeps, those that native code holds, and those in its messages.
//!
//! Where an isolate keeps them differs from release to release, but two words around tell: the isolate's own address, and the
//! first `v8::TryCatch` before it, which begins with that address, too.

use std::ops::Range;

use serde::Serialize;

use crate::bytes::{int, word};
use crate::exits::Exits;
use crate::image::Thread;
use crate::objects::View;
use crate::roots::Isolate;
use crate::stack;

/// Of all isolates.
const MOST: usize = 16;
/// The part of an isolate in which a thread's state is: before the table of roots, and in Node 18 behind it.
const STATE: Range<usize> = 0x100..0x300;
const STATE_OF_18: Range<usize> = 0x100..0x8000;
/// Nested `v8::TryCatch`.
const NESTED: usize = 64;
/// Local handles in one block.
const HANDLES: u64 = 1022;
const LEVELS: u32 = 1 << 16;
const SCOPES: usize = 16;
/// Fields of errors, messages and sites of calls are the same in Node 18 to 26, but for one word since Node 22.
const ARGUMENT: u64 = 32;
const CALLS: u64 = 64;
const MESSAGE: usize = 2000;
const STACK: usize = 16_000;

const HELD: &str = "held by native code that handles it";
const PENDING_AND_HELD: &str = "pending, and held by native code that handles it";

/// An exception that was on its way.
#[derive(Debug, Serialize)]
pub struct Thrown {
    /// How it was found.
    pub how: String,
    pub address: String,
    pub name: String,
    pub message: String,
    /// One line for each call: as V8 has formatted it, or from what it has noted.
    pub stack: Vec<String>,
}

/// The exceptions of all isolates, the most certain ones first, each once.
pub(crate) fn of(view: &View<'_>, isolates: &[Isolate], redact: bool) -> Vec<Thrown> {
    let mut found: Vec<(String, u64)> = Vec::new();
    for isolate in isolates {
        let State { pending, held, message } = State::of(view, isolate);
        let mut add = |how: &str, value: u64| {
            if found.len() < MOST && is_thrown(view, value) && !found.iter().any(|(_, known)| *known == value)
            {
                found.push((how.to_owned(), value));
            }
        };
        // Since Node 22 what a handler holds is pending until the handler is gone.
        let how = |value: u64| if held.contains(&value) { PENDING_AND_HELD } else { "pending" };
        pending.into_iter().for_each(|value| add(how(value), value));
        held.into_iter().for_each(|value| add(HELD, value));
        let message = std::iter::once(message).chain(handles(view, isolate));
        for message in message.filter(|&tagged| view.is(tagged, "JS_MESSAGE_OBJECT")) {
            add("not caught: V8 has made a message of it", view.field(message, ARGUMENT));
        }
    }
    let (exits, mut words) = (Exits::of(view.image, view.pages), stack::WORDS);
    for thread in &view.image.threads {
        for (function, value) in passed(view, &exits, thread, &mut words) {
            if found.len() < MOST && !found.iter().any(|(_, known)| *known == value) {
                found.push((format!("an argument of {function}"), value));
            }
        }
    }
    found.into_iter().map(|(how, value)| describe(view, how, value, redact)).collect()
}

/// The words of an isolate that tell of exceptions.
#[derive(Debug, Default)]
struct State {
    /// On its way to the next handler; until Node 20 another one that native code has asked for.
    pending: [u64; 2],
    /// By `v8::TryCatch`, the innermost first.
    held: Vec<u64>,
    /// What V8 would print.
    message: u64,
}

impl State {
    fn of(view: &View<'_>, isolate: &Isolate) -> Self {
        let image = view.image;
        let range = if view.layout.major < 20 { STATE_OF_18 } else { STATE };
        let bytes = image.at(isolate.start, range.end + 128);
        let is_context = |at| view.map(word(bytes, at)).is_some_and(|map| view.layout.is_context(map.kind));
        // In Node 18 the isolate's address is elsewhere, too; here the current context follows.
        let is_own =
            |at: usize| word(bytes, at) == isolate.start && (view.layout.major >= 20 || is_context(at + 8));
        let Some(own) = range.step_by(8).find(|&at| is_own(at)) else {
            return Self::default();
        };
        let (pending, message) = match view.layout.major {
            ..22 => ([own + 24, own + 104], own + 88),
            _ => ([own - 56; 2], own + 32),
        };
        let mut held = Vec::new();
        let mut block = word(bytes, own - 8);
        for _ in 0..NESTED {
            let fields = image.at(block, 32);
            if block & 7 != 0 || fields.len() < 32 || word(fields, 0) != isolate.start {
                break;
            }
            held.push(word(fields, 16));
            block = word(fields, 8);
        }
        Self { pending: pending.map(|at| word(bytes, at)), held, message: word(bytes, message) }
    }
}

/// A value, and not the mark that there is none.
fn is_thrown(view: &View<'_>, value: u64) -> bool {
    view.map(value).is_some_and(|map| !["", "HOLE", "ODDBALL"].contains(&view.layout.name(map.kind)))
}

/// The local handles of the blocks that are in use, the newest first. What looks like the bounds of a block and is none has no
/// messages either.
fn handles(view: &View<'_>, isolate: &Isolate) -> Vec<u64> {
    let words = view.image.at(isolate.start, isolate.end.saturating_sub(isolate.start) as usize);
    let scopes = (STATE.start..words.len()).step_by(8).filter_map(|at| {
        let (next, limit) = (word(words, at), word(words, at + 8));
        let (level, sealed) = (int(words, at + 16), int(words, at + 20));
        let fits = (next | limit) & 7 == 0 && next <= limit && limit - next <= 8 * HANDLES;
        let is_scope = fits && (1..LEVELS).contains(&level) && sealed <= level;
        (is_scope && next > 4096 && !view.pages.has_block(next)).then_some((next, limit))
    });
    let blocks = scopes.take(SCOPES).map(|(next, limit)| {
        let from = limit.saturating_sub(8 * HANDLES).min(next);
        view.image.at(from, (next - from) as usize)
    });
    blocks.flat_map(|bytes| bytes.chunks_exact(8).rev().map(|bytes| word(bytes, 0))).collect()
}

/// Errors that functions on the stack were called with: those of handlers, which were told of them.
fn passed(view: &View<'_>, exits: &Exits, thread: &Thread, words: &mut u64) -> Vec<(String, u64)> {
    let calls = stack::calls(view, exits, thread, words);
    let errors = calls.into_iter().flat_map(|call| {
        let name = view.function_name(call.shared);
        let name = if name.is_empty() { "(anonymous)".to_owned() } else { name };
        let errors: Vec<u64> =
            call.arguments(view).into_iter().filter(|&value| view.is(value, "JS_ERROR")).collect();
        errors.into_iter().map(move |value| (name.clone(), value))
    });
    errors.take(MOST).collect()
}

fn describe(view: &View<'_>, how: String, value: u64, redact: bool) -> Thrown {
    let is_object = view.map(value).is_some_and(|map| view.layout.is_receiver(map.kind));
    let name = match view.map(value) {
        Some(map) if is_object => view.class(&map, value),
        _ => view.show(value, redact),
    };
    let properties = if is_object { view.properties(value) } else { Vec::new() };
    let message = properties.iter().find(|(name, _)| name == "message");
    let message = message.and_then(|(_, value)| view.name(*value, MESSAGE)).unwrap_or_default();
    let stack = if is_object { kept_stack(view, value) } else { Vec::new() };
    Thrown {
        how,
        address: format!("{value:x}"),
        name,
        message: if redact && !message.is_empty() { "(string)".to_owned() } else { message },
        // What comes before the first call is the message again.
        stack: stack.into_iter().filter(|line| line.starts_with("at ")).collect(),
    }
}

/// Under a symbol of V8 that has no name: the text, if somebody has asked for it, or else the sites of the calls.
fn kept_stack(view: &View<'_>, error: u64) -> Vec<String> {
    let Some(map) = view.map(error) else { return Vec::new() };
    let own = (24..u64::from(map.size)).step_by(8).map(|at| view.field(error, at));
    for value in own {
        let parts = match view.is(value, "ERROR_STACK_DATA") {
            true => [view.field(value, 8), view.field(value, 16)],
            false => [value, 0],
        };
        for part in parts {
            let lines = lines(view, part).or_else(|| sites(view, part));
            if let Some(lines) = lines {
                return lines;
            }
        }
    }
    Vec::new()
}

fn lines(view: &View<'_>, text: u64) -> Option<Vec<String>> {
    let text = view.text(text, STACK).filter(|text| text.contains("\n    at "))?;
    let printable = |line: &str| line.trim().chars().filter(|one| !one.is_control()).collect();
    Some(text.lines().map(printable).collect())
}

/// What V8 notes of a call, one object for each; since Node 26 all in one list.
fn sites(view: &View<'_>, list: u64) -> Option<Vec<String>> {
    if !view.is(list, "FIXED_ARRAY") {
        return None;
    }
    let field = |index: u64| view.field(list, 16 + 8 * index);
    let count = (view.field(list, 8) >> 32).min(6 * CALLS);
    let first = view.map(field(0)).map_or("", |map| view.layout.name(map.kind));
    let sites: Vec<Site> = match first {
        "CALL_SITE_INFO" => (0..count.min(CALLS)).map(|index| Site::of_object(view, field(index))).collect(),
        // The code, what it was called on, the function, an offset, arguments, flags.
        "BYTECODE_WRAPPER" | "CODE_WRAPPER" => (0..count / 6)
            .map(|index| {
                let [code, _, function, place, _, flags] =
                    [0, 1, 2, 3, 4, 5].map(|part| field(6 * index + part));
                let is_computed = flags >> 32 & (1 << 7) != 0;
                Site { code: view.field(code, 8), function, place: place >> 32, is_computed }
            })
            .collect(),
        _ => return None,
    };
    Some(sites.iter().map(|site| site.told(view)).collect())
}

/// A call in a stack that nobody has asked for yet.
struct Site {
    code: u64,
    function: u64,
    /// An offset in the code, or already a position in the script.
    place: u64,
    is_computed: bool,
}

impl Site {
    fn of_object(view: &View<'_>, site: u64) -> Self {
        let (code, function, computed) =
            if view.layout.major < 22 { (24, 16, 1 << 6) } else { (8, 24, 1 << 7) };
        Self {
            code: view.field(site, code),
            function: view.field(site, function),
            place: view.field(site, 32) >> 32,
            is_computed: view.field(site, 40) >> 32 & computed != 0,
        }
    }

    fn told(&self, view: &View<'_>) -> String {
        let is_function = view.map(self.function).is_some_and(|map| view.layout.is_function(map.kind));
        let shared = view.field(self.function, view.layout.function_shared);
        let name = if is_function { view.function_name(shared) } else { String::new() };
        let position = match self.is_computed {
            true => u32::try_from(self.place).ok(),
            false if view.is_bytecode(self.code) => view.position(self.code, self.place),
            false => None,
        };
        let place = is_function.then(|| view.place(shared, position)).flatten();
        let about = if position.is_none() { ", its start" } else { "" };
        let place = place.map_or_else(
            || "(built in)".to_owned(),
            |(script, line, column)| format!("({script}:{line}:{column}{about})"),
        );
        format!("at {} {place}", if name.is_empty() { "(anonymous)" } else { &name })
    }
}
