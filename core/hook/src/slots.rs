//! Interposition by relocation slots.
//!
//! A call into another library goes through a slot that the dynamic linker has filled with the function's address. A
//! preload library that exports its hooks gets in front of *every* definition of a name, including the copy of OpenSSL
//! bundled in a wheel. Here nothing is exported. A slot is rewritten only if it leads to the function of the one
//! verified library, and only in the objects the hook is for; every other caller reaches what the dynamic linker gave
//! it. A hook's original is the address the slots held.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::ffi::CString;

use crate::names::Names;
use crate::object::{Object, Relocation};
use crate::original::Library;

/// The callers a hook applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Every object.
    Everyone,
    /// Every object except the one that defines the function.
    Program,
    /// As `Program`, but without libssl and libcrypto.
    Application,
    /// libssl only: its calls are known from its source.
    Ssl,
    /// libcrypto only.
    Crypto,
}

/// A function to hook.
#[derive(Debug)]
pub struct Hook {
    pub name: &'static CStr,
    pub library: Library,
    pub by: By,
    /// Whether the hooks stay out entirely if this function is missing.
    pub required: bool,
    pub function: *const c_void,
    /// The function that would have run without us.
    pub original: &'static AtomicPtr<c_void>,
}

impl Hook {
    /// Whether the function works on objects that only the hooks know how to treat: those of libssl and zlib.
    pub(crate) fn is_of_objects(&self) -> bool {
        match self.library {
            Library::Ssl => self.by == By::Program,
            Library::Z => self.required,
            Library::C | Library::Crypto | Library::Jemalloc => false,
        }
    }

    /// Whether the library has the function.
    #[must_use]
    pub fn is_found(&self) -> bool {
        !self.original.load(Ordering::Relaxed).is_null()
    }
}

// SAFETY: immutable except for the atomic; the pointer is to code.
unsafe impl Sync for Hook {}

/// Libraries that block in system calls of their own, which no slot leads to.
const BLOCKING_THEMSELVES: [&[u8]; 3] = [b"liburing", b"libaio", b"libgo."];

/// A symbol exported by shared libraries with a Go runtime.
const GO: &CStr = c"crosscall2";

static BLOCKS_UNSEEN: AtomicBool = AtomicBool::new(false);

/// Whether a thread of this process may block in system calls that no library function makes.
pub(crate) fn blocks_unseen() -> bool {
    BLOCKS_UNSEEN.load(Ordering::Relaxed)
}

fn look_for_system_calls(object: &Object) {
    // The libraries it is linked with are examined on their own.
    if BLOCKING_THEMSELVES.iter().any(|name| object.soname().starts_with(name)) || object.defines(GO) {
        BLOCKS_UNSEEN.store(true, Ordering::Relaxed);
    }
}

/// Whether some caller may reach the library without going through the hooks.
static MIXED: AtomicBool = AtomicBool::new(false);

/// Whether some caller may reach the library without going through the hooks, and see state they have left there.
pub(crate) fn is_mixed() -> bool {
    MIXED.load(Ordering::Relaxed)
}

pub(crate) fn mix() {
    MIXED.store(true, Ordering::Relaxed);
}

/// Rewrites the slots of an object that lead to hooked functions.
///
/// # Safety
///
/// The object is loaded, relocated, and cannot be unloaded meanwhile. Each
/// hook has the C prototype of the function it stands in for.
pub(crate) unsafe fn rewrite(object: &Object, names: &Names) {
    if object.is_of_hasten() || object.is_left_alone() {
        return;
    }
    look_for_system_calls(object);
    let (mut is_user, mut is_elsewhere, mut is_unknown) = (false, false, false);
    let mut values = Vec::new();
    object.each_relocation(names, |relocation| {
        let hook = relocation.hook;
        if !is_for(hook, object) {
            return;
        }
        // SAFETY: as the contract.
        match unsafe { destination(object, &relocation, hook) } {
            Destination::Original => {
                values.push((relocation.slot, hook.function.cast_mut()));
                is_user |= hook.is_of_objects();
            }
            Destination::Unknown => is_unknown |= hook.is_of_objects(),
            Destination::Elsewhere if hook.is_of_objects() && hook.is_found() => {
                // SAFETY: a slot of a relocated object is a readable, aligned word.
                let held = unsafe { (*relocation.slot.cast::<AtomicPtr<c_void>>()).load(Ordering::Relaxed) };
                is_elsewhere |= !core::ptr::eq(held, hook.function) && !held.is_null();
            }
            Destination::Elsewhere => {}
        }
    });
    // SAFETY: the slots hold addresses of functions with the hooks' prototypes.
    let is_complete = unsafe { object.write(&values) };
    // Its calls for one object would reach the library partly through our hooks and partly through another's, or past
    // them.
    if !is_complete || is_unknown || is_user && is_elsewhere {
        mix();
    }
}

fn is_for(hook: &Hook, object: &Object) -> bool {
    match hook.by {
        By::Everyone => true,
        By::Program => !hook.library.is(object),
        By::Application => {
            ![hook.library, Library::Ssl, Library::Crypto].iter().any(|library| library.is(object))
        }
        By::Ssl => Library::Ssl.is(object),
        By::Crypto => Library::Crypto.is(object),
    }
}

/// Where a slot leads, now or once it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// To the verified function.
    Original,
    /// To the verified function, or to one of the same name.
    Unknown,
    Elsewhere,
}

/// # Safety
///
/// `relocation` belongs to `object`, which is loaded and relocated and stays so meanwhile.
unsafe fn destination(object: &Object, relocation: &Relocation, hook: &Hook) -> Destination {
    let original = hook.original.load(Ordering::Relaxed);
    if original.is_null() {
        return Destination::Elsewhere;
    }
    // SAFETY: a slot of a relocated object is a readable, aligned word.
    let held = unsafe { (*relocation.slot.cast::<AtomicPtr<c_void>>()).load(Ordering::Relaxed) };
    if held == original {
        return Destination::Original;
    }
    // Not bound yet: the slot points back into the object's own table of stubs.
    if relocation.is_lazy && object.has_code_at(held as usize) {
        return resolve(object, hook, original);
    }
    Destination::Elsewhere
}

/// What the dynamic linker will bind an object's call to: the first definition in the global scope, or else in the
/// object's own; or the other way round, if the object was loaded with `RTLD_DEEPBIND`, which it does not tell.
fn resolve(object: &Object, hook: &Hook, original: *mut c_void) -> Destination {
    // SAFETY: the name is a C string; we are not in the global scope, so this is the linker's own lookup.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, hook.name.as_ptr()) };
    let own = || object.find(hook.name);
    // A wrapper of the C library works on the same descriptors as that.
    let own = if hook.library == Library::C && !global.is_null() { global } else { own() };
    let candidates = [global, own].into_iter().filter(|address| !address.is_null());
    let (ours, others): (Vec<_>, Vec<_>) = candidates.partition(|address| *address == original);
    match (ours.is_empty(), others.is_empty()) {
        (true, _) => Destination::Elsewhere,
        (false, true) => Destination::Original,
        (false, false) => Destination::Unknown,
    }
}

/// The dynamic linker's counters: objects loaded and unloaded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// The loaded objects, and how often the list has changed.
pub(crate) fn loaded() -> (Vec<Found>, Generation) {
    let mut list = (Vec::new(), Generation::default());
    // SAFETY: the callback gets `list` back, and descriptions of loaded objects that are valid during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

/// The counters alone: the walk stops at the first object.
pub(crate) fn generation() -> Generation {
    /// # Safety
    ///
    /// As for a callback of dl_iterate_phdr(3): `info` is valid for reads. `data` points to a [`Generation`] that
    /// nothing else uses meanwhile.
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker's description, and the variable below.
        unsafe {
            let (added, removed) = ((*info).dlpi_adds, (*info).dlpi_subs);
            data.cast::<Generation>().write(Generation { added, removed });
        }
        1
    }
    let mut generation = Generation::default();
    // SAFETY: the callback gets `generation` back.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut generation).cast()) };
    generation
}

/// Whether the object is still loaded, with its headers in the same place.
pub(crate) fn is_loaded(found: &Found) -> bool {
    /// # Safety
    ///
    /// As for a callback of dl_iterate_phdr(3): `info` is valid for reads, and its name is null or a C string. `data`
    /// points to a [`Found`].
    unsafe extern "C" fn compare(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker's description, whose name is null or a C string, and the object being looked for.
        unsafe {
            let (info, found) = (&*info, &*data.cast::<Found>());
            let place = (info.dlpi_addr as usize, info.dlpi_phdr as usize, usize::from(info.dlpi_phnum));
            if place != (found.base, found.headers, found.header_count) {
                return 0;
            }
            let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
            c_int::from(name == found.name.as_c_str())
        }
    }
    // SAFETY: the callback gets `found` back, and only reads it.
    unsafe { libc::dl_iterate_phdr(Some(compare), core::ptr::from_ref(found).cast_mut().cast()) != 0 }
}

/// An object as the dynamic linker lists it. It may be gone by the time it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    // First, since it distinguishes most pairs.
    pub(crate) base: usize,
    pub(crate) headers: usize,
    pub(crate) header_count: usize,
    pub(crate) name: CString,
}

/// # Safety
///
/// As for a callback of dl_iterate_phdr(3): `info` is valid for reads, and its name is null or a C string. `data`
/// points to a list and a [`Generation`] that nothing else uses meanwhile.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the linker's description is valid during the call, its name is a C string; `data` is the caller's list.
    unsafe {
        let info = &*info;
        let (list, generation) = &mut *data.cast::<(Vec<Found>, Generation)>();
        *generation = Generation { added: info.dlpi_adds, removed: info.dlpi_subs };
        list.push(Found {
            name: if info.dlpi_name.is_null() {
                CString::default()
            } else {
                CStr::from_ptr(info.dlpi_name).to_owned()
            },
            base: info.dlpi_addr as usize,
            headers: info.dlpi_phdr as usize,
            header_count: info.dlpi_phnum as usize,
        });
    }
    0
}
