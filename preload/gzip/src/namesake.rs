//! Functions of other libraries that happen to have zlib's names.
//!
//! `crc32` or `compress` are names that a library may use for something else of its own. Preloaded, ours
//! would be found before it; so where the next definition is not zlib's, it is what the program means.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::hooks::original;

const UNKNOWN: u8 = 0;
const ZLIBS: u8 = 1;
const FOREIGN: u8 = 2;

/// Whether zlib's common names mean zlib in this process.
#[inline]
pub(crate) fn are_zlibs() -> bool {
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let state = if look() { ZLIBS } else { FOREIGN };
            STATE.store(state, Ordering::Relaxed);
            state == ZLIBS
        }
        state => state == ZLIBS,
    }
}

fn look() -> bool {
    let names = [
        original::crc32.get() as *const c_void,
        original::adler32.get() as *const c_void,
        original::compress.get() as *const c_void,
        original::compress2.get() as *const c_void,
        original::uncompress.get() as *const c_void,
        original::uncompress2.get() as *const c_void,
    ];
    // A name that nothing else has.
    let zlib = object(original::inflateInit2_.get() as *const c_void);
    !zlib.is_null() && names.iter().all(|name| object(*name) == zlib)
}

/// The loaded object that an address belongs to.
fn object(address: *const c_void) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address, and `info` is writable; its zeros are a value.
    unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 { null_mut() } else { info.assume_init().dli_fbase }
    }
}
