//! Promises by state, and where asynchronous functions wait: the stack that they would have if they were called.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::bits::Bits;
use crate::maps::NONE;
use crate::objects::View;
use crate::walk::Objects;

/// Different stacks that are told apart, and told at all.
const GROUPS: usize = 10_000;
const MOST: usize = 100;
const FRAMES: usize = 16;
/// Fields of promises, generators and capabilities are the same in Node 18 to 26.
const RESULT: u64 = 24;
const FLAGS: u64 = 32;
const FUNCTION: u64 = 24;
const POSITION: u64 = 48;
const STEP: u64 = 64;
const OWN_PROMISE: u64 = 80;
const AWAITING: u64 = 88;
/// A context keeps what belongs to it within so many words: the generator, or the capability of `Promise.all`.
const CONTEXT: u64 = 8;

/// What all promises that are alive are in.
#[derive(Debug, Default, Serialize)]
pub struct Promises {
    pub pending: u64,
    pub fulfilled: u64,
    pub rejected: u64,
    /// Of the rejected ones, those that nobody has looked at.
    pub unhandled: u64,
    /// What will be called when the pending ones are settled.
    pub reactions: u64,
    /// Asynchronous functions that wait.
    pub suspended: u64,
    /// Where they wait, the commonest first.
    pub stacks: Vec<AsyncStack>,
}

#[derive(Debug, Clone, Serialize)]
pub struct AsyncStack {
    /// Functions that wait in the same way.
    pub count: u64,
    /// From the innermost: the one that waits, who waits for that, and so on.
    pub frames: Vec<AsyncFrame>,
}

#[derive(Debug, Clone, Serialize)]
pub struct AsyncFrame {
    pub function: String,
    pub script: String,
    pub line: u32,
    pub column: u32,
    pub kind: &'static str,
}

/// A place in a chain, before it is put into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    /// A function, and the offset of its bytecode where it waits.
    Await(u64, u64),
    Then(u64),
    /// `Promise.all` or one of its kind.
    Several,
}

/// What becomes of a promise.
enum Next {
    Resumes(u64),
    /// A function, and the promise of its result.
    Calls(u64, u64),
    Several(u64),
    /// Another promise takes the result over.
    Passes(u64),
}

pub(crate) fn of(view: &View<'_>, objects: &Objects, is_alive: impl Fn(u32) -> bool) -> Promises {
    let chains = Chains { view };
    let mut promises = Promises::default();
    let mut waiting = Vec::new();
    let kinds: Vec<&str> = view.maps.list.iter().map(|map| view.layout.name(map.kind)).collect();
    for object in (0..objects.len() as u32).filter(|&object| is_alive(object)) {
        let tagged = || view.pages.address(objects.words[object as usize]) + 1;
        match kinds[objects.maps[object as usize] as usize] {
            "JS_PROMISE" => promises.add(view, &chains, tagged()),
            "JS_ASYNC_FUNCTION_OBJECT" | "JS_ASYNC_GENERATOR_OBJECT" if chains.waits(tagged()) => {
                waiting.push(object);
            }
            _ => {}
        }
    }
    promises.suspended = waiting.len() as u64;
    promises.stacks = stacks(view, objects, &chains, &waiting);
    promises
}

/// Those that another one waits for begin no stack of their own: they are in that of the innermost.
fn stacks(view: &View<'_>, objects: &Objects, chains: &Chains<'_>, waiting: &[u32]) -> Vec<AsyncStack> {
    let tagged = |object: u32| view.pages.address(objects.words[object as usize]) + 1;
    let mut waits_for_another = Bits::new(objects.len());
    for &object in waiting {
        let outer = chains.outer(tagged(object)).map_or(NONE, |(_, outer)| objects.of(view.pages, outer));
        if outer != NONE && outer != object {
            waits_for_another.add(outer);
        }
    }
    let mut groups: HashMap<Vec<Place>, u64> = HashMap::new();
    for &object in waiting.iter().filter(|&&object| !waits_for_another.has(object)) {
        let places = chains.places(tagged(object));
        if groups.len() < GROUPS || groups.contains_key(&places) {
            *groups.entry(places).or_default() += 1;
        }
    }
    let mut groups: Vec<(Vec<Place>, u64)> = groups.into_iter().collect();
    groups.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let told = groups.into_iter().take(MOST);
    told.map(|(places, count)| AsyncStack {
        count,
        frames: places.into_iter().map(|place| frame(view, place)).collect(),
    })
    .collect()
}

impl Promises {
    fn add(&mut self, view: &View<'_>, chains: &Chains<'_>, promise: u64) {
        let flags = view.field(promise, FLAGS) >> 32;
        match flags & 3 {
            0 => {
                self.pending += 1;
                self.reactions += chains.reactions(promise).count() as u64;
            }
            1 => self.fulfilled += 1,
            _ => {
                self.rejected += 1;
                self.unhandled += u64::from(flags & 4 == 0);
            }
        }
    }
}

struct Chains<'a> {
    view: &'a View<'a>,
}

impl Chains<'_> {
    /// Whether an asynchronous function stands at an `await`. A generator that nobody has asked for a value stands still, too.
    fn waits(&self, generator: u64) -> bool {
        let step = self.view.field(generator, STEP);
        let is_suspended = step as u32 == 0 && ((step >> 32) as u32).cast_signed() >= 0;
        let is_generator = self.view.is(generator, "JS_ASYNC_GENERATOR_OBJECT");
        is_suspended && (!is_generator || self.view.field(generator, AWAITING) >> 32 & 1 == 1)
    }

    /// The reactions of a promise that is pending: each names the next, the last one a zero.
    fn reactions(&self, promise: u64) -> impl Iterator<Item = u64> {
        let is_reaction = |tagged: &u64| self.view.is(*tagged, "PROMISE_REACTION");
        let first = Some(self.view.field(promise, RESULT)).filter(is_reaction);
        let next =
            move |reaction: &u64| Some(self.view.field(*reaction, 8 + self.shift())).filter(is_reaction);
        // Each is in one list, unless the file is damaged.
        std::iter::successors(first, next).take_while(|_| self.view.entries(1) == 1)
    }

    /// Since Node 22 a reaction keeps the context of `AsyncLocalStorage` first.
    fn shift(&self) -> u64 {
        if self.view.layout.major < 22 { 0 } else { 8 }
    }

    /// What comes after a promise: the first of its reactions that leads on.
    fn next(&self, promise: u64) -> Option<Next> {
        if !self.view.is(promise, "JS_PROMISE") || self.view.field(promise, FLAGS) >> 32 & 3 != 0 {
            return None;
        }
        self.reactions(promise).find_map(|reaction| self.leads_to(reaction))
    }

    fn leads_to(&self, reaction: u64) -> Option<Next> {
        let view = self.view;
        let handler = view.field(reaction, 24 + self.shift());
        let after = view.field(reaction, 32 + self.shift());
        let is_function = view.map(handler).is_some_and(|map| view.layout.is_function(map.kind));
        if !is_function {
            return view.is(after, "JS_PROMISE").then_some(Next::Passes(after));
        }
        let context = view.field(handler, view.layout.function_context);
        let kept = (1..CONTEXT).map(|index| view.field(context, 8 + 8 * index));
        for word in kept.filter(|_| view.map(context).is_some_and(|map| view.layout.is_context(map.kind))) {
            match view.map(word).map_or("", |map| view.layout.name(map.kind)) {
                "JS_ASYNC_FUNCTION_OBJECT" | "JS_ASYNC_GENERATOR_OBJECT" if self.is_built_in(handler) => {
                    return Some(Next::Resumes(word));
                }
                "PROMISE_CAPABILITY" => return Some(Next::Several(view.field(word, 8))),
                _ => {}
            }
        }
        Some(Next::Calls(view.field(handler, view.layout.function_shared), after))
    }

    /// Functions of V8 itself have no script.
    fn is_built_in(&self, function: u64) -> bool {
        self.view.place(self.view.field(function, self.view.layout.function_shared), Some(0)).is_none()
    }

    /// Who waits for an asynchronous function, and the places on the way.
    fn outer(&self, generator: u64) -> Option<(Vec<Place>, u64)> {
        let mut promise = self.promise(generator)?;
        let mut places = Vec::new();
        for _ in 0..FRAMES {
            match self.next(promise)? {
                Next::Resumes(outer) => return Some((places, outer)),
                Next::Passes(after) => promise = after,
                Next::Several(after) => {
                    places.push(Place::Several);
                    promise = after;
                }
                Next::Calls(shared, after) => {
                    places.push(Place::Then(shared));
                    promise = after;
                }
            }
        }
        None
    }

    /// That of an asynchronous function, or of the request that a generator works on.
    fn promise(&self, generator: u64) -> Option<u64> {
        let own = self.view.field(generator, OWN_PROMISE);
        match self.view.map(own).map_or("", |map| self.view.layout.name(map.kind)) {
            "JS_PROMISE" => Some(own),
            "ASYNC_GENERATOR_REQUEST" => {
                let fields = (8..40).step_by(8).map(|at| self.view.field(own, at));
                fields.into_iter().find(|&field| self.view.is(field, "JS_PROMISE"))
            }
            _ => None,
        }
    }

    fn places(&self, generator: u64) -> Vec<Place> {
        let mut places = vec![self.place(generator)];
        let mut seen = HashSet::from([generator]);
        let mut at = generator;
        while places.len() < FRAMES {
            let Some((between, outer)) = self.outer(at) else {
                places.extend(self.last(at));
                break;
            };
            if !seen.insert(outer) {
                break;
            }
            places.extend(between);
            places.push(self.place(outer));
            at = outer;
        }
        places.truncate(FRAMES);
        places
    }

    /// Where nobody waits any more, a function may still be called.
    fn last(&self, generator: u64) -> Vec<Place> {
        let mut places = Vec::new();
        let mut promise = self.promise(generator);
        for _ in 0..FRAMES {
            let Some(next) = promise.and_then(|promise| self.next(promise)) else { break };
            let (place, after) = match next {
                Next::Several(after) => (Some(Place::Several), after),
                Next::Calls(shared, after) => (Some(Place::Then(shared)), after),
                Next::Passes(after) => (None, after),
                Next::Resumes(_) => break,
            };
            places.extend(place);
            promise = Some(after);
        }
        places
    }

    fn place(&self, generator: u64) -> Place {
        let shared = self.view.field(self.view.field(generator, FUNCTION), self.view.layout.function_shared);
        let offset =
            (self.view.field(generator, POSITION) >> 32).wrapping_sub(self.view.layout.bytecode_header - 1);
        Place::Await(shared, offset)
    }
}

fn frame(view: &View<'_>, place: Place) -> AsyncFrame {
    let (shared, position, kind) = match place {
        Place::Await(shared, offset) => {
            (shared, view.bytecode(shared).and_then(|code| view.position(code, offset)), "await")
        }
        Place::Then(shared) => (shared, None, "then"),
        Place::Several => {
            let function = "Promise.all or the like".to_owned();
            return AsyncFrame { function, script: String::new(), line: 0, column: 0, kind: "several" };
        }
    };
    let (script, line, column) = view.place(shared, position).unwrap_or_default();
    let function = view.function_name(shared);
    let function = if function.is_empty() { "(anonymous)".to_owned() } else { function };
    AsyncFrame { function, script, line, column, kind }
}
