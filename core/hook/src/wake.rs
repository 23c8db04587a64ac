//! The only functions interposed while a library stands by: `dlopen` and `dlsym`, which may bring in the libraries to
//! hook, and `prctl` and `syscall`, with which a program restricts its own system calls (seccomp). After that any
//! system call of ours might end the process, so a library is notified first.
//!
//! They run with their caller's return address, from which they learn on whose behalf they search. `dlopen` only notes
//! that something may have been loaded; the new objects are examined at the next `dlsym`, which every program uses to
//! find its way into a module.
//!
//! A process may have several preload libraries. The first to start rewrites the slots of these functions and notifies
//! the others: if two hooked the same function, each would take the other's hook for a stranger's.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::interposer;
use crate::object::{Object, is_of_hasten};
use crate::original::Library;
use crate::slots::{self, By, Hook};

/// What one preload library knows of the others.
#[repr(C)]
#[derive(Debug)]
struct Wake {
    /// Whether this library owns the slots.
    is_first: AtomicU32,
    /// The next library to notify.
    next: AtomicPtr<Wake>,
    before_load: extern "C" fn(),
    before_lookup: extern "C" fn(*const c_char),
    before_system_call: extern "C" fn(c_long, c_long),
    before_sandbox: extern "C" fn(),
}

const SYMBOL: &CStr = c"hasten_wake_2";

/// The only symbol that a library exports; the number is that of the layout. It points to the library's own data: if
/// several libraries export a name, the dynamic linker resolves it to the first one in all of them.
#[used]
#[unsafe(export_name = "hasten_wake_2")]
static EXPORTED: Exported = Exported(&OWN);

#[repr(transparent)]
struct Exported(*const Wake);

// SAFETY: it points to a static of atomics and functions.
unsafe impl Sync for Exported {}

static OWN: Wake = Wake {
    is_first: AtomicU32::new(0),
    next: AtomicPtr::new(null_mut()),
    before_load: interposer::before_load,
    before_lookup: interposer::before_lookup,
    before_system_call: interposer::before_system_call,
    before_sandbox: interposer::before_sandbox,
};

/// Arranges to be notified; returns whether that is possible.
pub(crate) fn start() -> bool {
    if let Some(first) = first() {
        // Constructors run one after the other.
        OWN.next.store(first.next.load(Ordering::Relaxed), Ordering::Relaxed);
        first.next.store(from_ref(&OWN).cast_mut(), Ordering::Release);
        return true;
    }
    for hook in &HOOKS {
        hook.original.store(Library::C.find(hook.name), Ordering::Relaxed);
    }
    let complete = HOOKS.iter().all(|hook| hook.is_found() || !hook.required);
    OWN.is_first.store(u32::from(complete), Ordering::Release);
    complete
}

/// The hooks of this library while it stands by: none, if another library has them.
pub(crate) fn hooks() -> &'static [Hook] {
    if OWN.is_first.load(Ordering::Relaxed) != 0 { &HOOKS } else { &[] }
}

/// The library that already owns the slots.
fn first() -> Option<&'static Wake> {
    let (list, _) = slots::loaded();
    let named = list.iter().filter(|found| is_of_hasten(&found.name));
    named.filter_map(Object::open).filter(|object| !object.is_own()).find_map(|object| {
        // SAFETY: the object is loaded; the symbol of this name is an `Exported`, and the preload library stays loaded
        // from here on.
        let wake = unsafe {
            let exported = object.find(SYMBOL).cast::<Exported>().as_ref()?;
            exported.0.as_ref().filter(|wake| !core::ptr::eq(*wake, &raw const OWN))?
        };
        if wake.is_first.load(Ordering::Acquire) == 0 {
            return None;
        }
        object.pin();
        Some(wake)
    })
}

fn each(tell: impl Fn(&Wake)) {
    let mut wake = Some(&OWN);
    while let Some(notified) = wake {
        tell(notified);
        // SAFETY: null or the static of a library that stays loaded.
        wake = unsafe { notified.next.load(Ordering::Acquire).as_ref() };
    }
}

extern "C" fn before_dlopen() {
    each(|wake| (wake.before_load)());
}

/// Called with the arguments of `dlsym`.
extern "C" fn before_dlsym(_: *mut c_void, name: *const c_char) {
    each(|wake| (wake.before_lookup)(name));
}

/// Called with the first argument of `prctl`.
extern "C" fn before_prctl(option: c_int) {
    if option == libc::PR_SET_SECCOMP {
        each(|wake| (wake.before_sandbox)());
    }
}

/// Called with the first arguments of `syscall`: a number, and the system call's own arguments.
extern "C" fn before_syscall(number: c_long, first: c_long, second: c_long) {
    let restricts =
        first == libc::SECCOMP_SET_MODE_STRICT.into() || first == libc::SECCOMP_SET_MODE_FILTER.into();
    if number == libc::SYS_seccomp && restricts {
        each(|wake| (wake.before_sandbox)());
    }
    each(|wake| (wake.before_system_call)(number, second));
}

static HOOKS: [Hook; 6] = [
    hook(c"dlopen", true, dlopen as *const c_void, &DLOPEN),
    hook(c"dlmopen", IS_GLIBC, dlmopen as *const c_void, &DLMOPEN),
    hook(c"dlsym", true, dlsym as *const c_void, &DLSYM),
    hook(c"dlvsym", IS_GLIBC, dlvsym as *const c_void, &DLVSYM),
    hook(c"prctl", true, prctl as *const c_void, &PRCTL),
    hook(c"syscall", true, syscall as *const c_void, &SYSCALL),
];

/// musl has neither namespaces nor versions of symbols.
const IS_GLIBC: bool = cfg!(target_env = "gnu");

const fn hook(
    name: &'static CStr,
    required: bool,
    function: *const c_void,
    original: &'static AtomicPtr<c_void>,
) -> Hook {
    Hook { name, library: Library::C, by: By::Program, required, function, original }
}

static DLOPEN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static DLMOPEN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static PRCTL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ALWAYS: AtomicU32 = AtomicU32::new(1);

crate::before!(dlopen, ALWAYS, before_dlopen, DLOPEN);
crate::before!(dlmopen, ALWAYS, before_dlopen, DLMOPEN);
crate::before!(dlsym, ALWAYS, before_dlsym, DLSYM);
crate::before!(dlvsym, ALWAYS, before_dlsym, DLVSYM);
crate::before!(prctl, ALWAYS, before_prctl, PRCTL);
crate::before!(syscall, ALWAYS, before_syscall, SYSCALL);
