//! Decides when to look for objects whose slots need rewriting: at the start, and after every `dlopen`.
//!
//! Until the libraries that a preload library hooks are loaded, it stands by: only the functions in `wake.rs` are
//! interposed.

use core::ffi::{CStr, c_char, c_long};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::Mutex;

use crate::names::Names;
use crate::object::Object;
use crate::original::Library;
use crate::slots::{self, Found, Generation, Hook};
use crate::wake;

/// The hooks of a preload library, and the libraries they are for.
#[derive(Debug)]
pub struct Interposer {
    hooks: &'static [&'static [Hook]],
    needs: &'static [Library],
    /// Whether the libraries found are the ones the hooks were written for.
    is_fit: fn() -> bool,
    notifications: Notifications,
    /// The program has restricted its own system calls, unaware of the library's.
    is_sandboxed: AtomicBool,
    state: Mutex<State>,
}

/// The notifications a preload library receives.
#[derive(Debug)]
pub struct Notifications {
    /// Something is about to be loaded.
    pub before_load: fn(),
    /// A system call is about to be made by number; the second parameter is its second argument.
    pub before_system_call: fn(c_long, c_long),
    /// The program is about to restrict its own system calls.
    pub before_sandbox: fn(),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    known: Vec<Found>,
    /// `None` before the first look: musl counts from 0, and only what is loaded after the start.
    generation: Option<Generation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The libraries to hook are not loaded.
    StandBy,
    Active,
    /// They are loaded, but are not what the hooks were written for.
    Refused,
}

static RUNNING: AtomicPtr<Interposer> = AtomicPtr::new(core::ptr::null_mut());

/// Something may have been loaded since the last look.
static STALE: AtomicBool = AtomicBool::new(false);

impl Interposer {
    pub const fn new(
        hooks: &'static [&'static [Hook]],
        needs: &'static [Library],
        is_fit: fn() -> bool,
        notifications: Notifications,
    ) -> Self {
        let state = State { phase: Phase::StandBy, known: Vec::new(), generation: None };
        let is_sandboxed = AtomicBool::new(false);
        Self { hooks, needs, is_fit, notifications, is_sandboxed, state: Mutex::new(state) }
    }

    /// Starts interposing. For the constructor of a preload library; each process has at most one of each library.
    pub fn start(&'static self) {
        RUNNING.store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
        if wake::start() {
            self.refresh();
            // The search may leave an error there that the program must not see.
            // SAFETY: resets this thread's message.
            unsafe { libc::dlerror() };
        }
    }

    /// Rewrites the slots of everything loaded since the last time.
    fn refresh(&self) {
        // Another thread is refreshing, or was when this process was forked.
        let Ok(mut state) = self.state.try_lock() else { return };
        STALE.store(false, Ordering::Relaxed);
        let generation = slots::generation();
        if state.generation == Some(generation) || state.phase == Phase::Refused {
            return;
        }
        let (list, generation) = slots::loaded();
        if state.generation.is_some_and(|before| generation.removed != before.removed) {
            // Another object may now be where a known one was.
            state.known.clear();
        }
        state.generation = Some(generation);
        let new: Vec<_> = list.into_iter().filter(|found| !state.known.contains(found)).collect();
        let objects: Vec<_> = new.iter().filter_map(Object::open).collect();
        let is_first = state.known.is_empty();
        state.known.extend(new);
        let was = state.phase;
        if was == Phase::StandBy {
            state.phase = self.verify(&objects, &state.known);
        }
        // In one pass: most of the work is reading an object's relocations.
        rewrite(&objects, self.tables(state.phase == Phase::Active));
        if state.phase != was && state.phase == Phase::Active && !is_first {
            let earlier: Vec<_> = state.known.iter().filter_map(Object::open).collect();
            rewrite(&earlier, self.hooks.iter().copied());
        }
    }

    /// The hooks for new objects: `dlopen` and `dlsym` always, the rest once the libraries are there.
    fn tables(&self, with_hooks: bool) -> impl Iterator<Item = &'static [Hook]> {
        let hooks = if with_hooks { self.hooks } else { &[] };
        [wake::hooks()].into_iter().chain(hooks.iter().copied())
    }

    /// Looks for the libraries to hook, all of the version that was loaded first: the program's own, if it links one.
    fn verify(&self, new: &[Object], known: &[Found]) -> Phase {
        let is_needed =
            |object: &Object| self.needs.iter().any(|library| library.version(object.soname()).is_some());
        if !new.iter().any(is_needed) {
            return Phase::StandBy;
        }
        let loaded: Vec<_> = known.iter().filter_map(Object::open).filter(is_needed).collect();
        let versions = loaded.iter().filter_map(|object| self.needs.first()?.version(object.soname()));
        let Some(found) = versions.into_iter().find_map(|version| self.of_version(version, &loaded)) else {
            return Phase::StandBy;
        };
        for (library, object) in self.needs.iter().zip(found) {
            library.adopt(object);
        }
        for hook in self.hooks.iter().flat_map(|table| table.iter()) {
            hook.original.store(hook.library.find(hook.name), Ordering::Relaxed);
        }
        if (self.is_fit)() { Phase::Active } else { Phase::Refused }
    }

    /// The objects of all libraries that are needed, if this version of each is loaded.
    fn of_version<'a>(&self, version: usize, loaded: &'a [Object]) -> Option<Vec<&'a Object>> {
        let object = |library: &Library| {
            loaded.iter().find(|object| library.version(object.soname()) == Some(version))
        };
        self.needs.iter().map(object).collect()
    }

    /// Whether everything loaded now calls the libraries through the hooks, so that no other caller sees the state they
    /// leave behind.
    #[inline]
    pub fn is_sound(&self) -> bool {
        if STALE.load(Ordering::Relaxed) {
            self.refresh();
        }
        !slots::is_mixed()
    }

    /// Whether every wait of every thread goes through a function of the C library, judging by the loaded libraries.
    #[inline]
    pub fn sees_waits(&self) -> bool {
        !slots::blocks_unseen()
    }

    /// Whether the program has restricted its own system calls: nothing that it does not do itself may be done from now on.
    #[inline]
    pub fn is_sandboxed(&self) -> bool {
        self.is_sandboxed.load(Ordering::Relaxed)
    }

    /// Whether the objects of this process are watched and rewritten.
    pub fn is_active(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.phase == Phase::Active)
    }
}

fn rewrite(objects: &[Object], tables: impl Iterator<Item = &'static [Hook]>) {
    let names = Names::of(&tables.collect::<Vec<_>>());
    for object in objects {
        // SAFETY: `open` keeps the object; `slots!` and `wake` vouch for the prototypes.
        unsafe { slots::rewrite(object, &names) };
    }
}

fn running() -> Option<&'static Interposer> {
    // SAFETY: null or the static that `start` was called on.
    unsafe { RUNNING.load(Ordering::Acquire).as_ref() }
}

/// Called before a `dlopen`.
pub(crate) extern "C" fn before_load() {
    if let Some(running) = running() {
        (running.notifications.before_load)();
        STALE.store(true, Ordering::Relaxed);
    }
}

/// Called before a system call made by number.
pub(crate) extern "C" fn before_system_call(number: c_long, second: c_long) {
    if let Some(running) = running() {
        (running.notifications.before_system_call)(number, second);
    }
}

/// Called before the program restricts its own system calls.
pub(crate) extern "C" fn before_sandbox() {
    if let Some(running) = running() {
        running.is_sandboxed.store(true, Ordering::Relaxed);
        (running.notifications.before_sandbox)();
    }
}

/// Called before a `dlsym`.
pub(crate) extern "C" fn before_lookup(name: *const c_char) {
    let Some(running) = running() else { return };
    if STALE.load(Ordering::Relaxed) {
        running.refresh();
    }
    if name.is_null() || slots::is_mixed() {
        return;
    }
    // SAFETY: the caller's C string.
    let name = unsafe { CStr::from_ptr(name) };
    let mut hooks = running.hooks.iter().flat_map(|table| table.iter());
    // A caller that asks for the address calls it without a slot.
    if hooks.any(|hook| hook.is_of_objects() && hook.name == name) {
        slots::mix();
    }
}
