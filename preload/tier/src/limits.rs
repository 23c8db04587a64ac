//! A program that limits its own address space: the addresses that are reserved for far memory would count.

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::far;
use crate::hooks::table;

const ADDRESSES: c_int = libc::RLIMIT_AS as c_int;

/// The process whose memory this is. A vfork child has the memory of its parent, which its own limits do not concern.
static PROCESS: AtomicI32 = AtomicI32::new(0);

pub(crate) fn start() {
    // SAFETY: no preconditions.
    PROCESS.store(unsafe { libc::getpid() }, Relaxed);
}

fn is_of(process: c_int) -> bool {
    // SAFETY: no preconditions.
    let this = unsafe { libc::getpid() };
    this == PROCESS.load(Relaxed) && (process == 0 || process == this)
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn setrlimit(original: table::setrlimit, resource: c_int, limit: *const c_void) -> c_int {
    if resource == ADDRESSES && is_of(0) {
        far::give_back();
    }
    // SAFETY: the caller's arguments.
    unsafe { original(resource, limit) }
}

/// # Safety
///
/// The contract of the function of this name, which the original has.
pub(crate) unsafe fn prlimit(
    original: table::prlimit,
    process: c_int,
    resource: c_int,
    new: *const c_void,
    old: *mut c_void,
) -> c_int {
    if resource == ADDRESSES && !new.is_null() && is_of(process) {
        far::give_back();
    }
    // SAFETY: the caller's arguments.
    unsafe { original(process, resource, new, old) }
}

/// A call by number, of which the second argument is known.
pub(crate) fn before_system_call(number: c_long, second: c_long) {
    let may_limit =
        number == libc::SYS_setrlimit || number == libc::SYS_prlimit64 && second == c_long::from(ADDRESSES);
    if may_limit && is_of(0) {
        far::give_back();
    }
}
