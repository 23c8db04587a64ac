//! zlib's functions: the original's, and ours.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::OnceLock;

use hasten_deflate::abi::{GzHeader, ZStream};
use hasten_deflate::inflate as ours;

type OnStream<R> = unsafe extern "C" fn(*mut ZStream) -> R;
type WithInt = unsafe extern "C" fn(*mut ZStream, c_int) -> c_int;

/// The inflate half of an implementation.
pub(crate) struct Inflate {
    pub(crate) init2: unsafe extern "C" fn(*mut ZStream, c_int, *const c_char, c_int) -> c_int,
    pub(crate) inflate: WithInt,
    pub(crate) end: OnStream<c_int>,
    pub(crate) reset: OnStream<c_int>,
    pub(crate) reset2: WithInt,
    pub(crate) reset_keep: OnStream<c_int>,
    pub(crate) set_dictionary: unsafe extern "C" fn(*mut ZStream, *const u8, c_uint) -> c_int,
    pub(crate) get_dictionary: unsafe extern "C" fn(*mut ZStream, *mut u8, *mut c_uint) -> c_int,
    pub(crate) get_header: unsafe extern "C" fn(*mut ZStream, *mut GzHeader) -> c_int,
    pub(crate) sync: OnStream<c_int>,
    pub(crate) sync_point: OnStream<c_int>,
    pub(crate) copy: unsafe extern "C" fn(*mut ZStream, *mut ZStream) -> c_int,
    pub(crate) prime: unsafe extern "C" fn(*mut ZStream, c_int, c_int) -> c_int,
    pub(crate) mark: OnStream<c_long>,
    pub(crate) undermine: WithInt,
    pub(crate) validate: WithInt,
    pub(crate) codes_used: OnStream<c_ulong>,
}

/// The deflate half; only the original's is used, to make streams.
pub(crate) struct Deflate {
    pub(crate) init2:
        unsafe extern "C" fn(*mut ZStream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int,
    pub(crate) deflate: WithInt,
    pub(crate) end: OnStream<c_int>,
    pub(crate) set_dictionary: unsafe extern "C" fn(*mut ZStream, *const u8, c_uint) -> c_int,
    pub(crate) set_header: unsafe extern "C" fn(*mut ZStream, *mut GzHeader) -> c_int,
}

pub(crate) const VERSION: &CStr = c"1.2.13";

/// zlib as the system has it.
pub(crate) fn original() -> &'static (Inflate, Deflate) {
    static ORIGINAL: OnceLock<(Inflate, Deflate)> = OnceLock::new();
    ORIGINAL.get_or_init(|| {
        // SAFETY: a C string; the library stays loaded.
        let handle = unsafe { libc::dlopen(c"libz.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "libz.so.1 is not installed");
        // SAFETY: the fields have the prototypes of zlib.h.
        unsafe { (inflate_of(handle), deflate_of(handle)) }
    })
}

/// # Safety
///
/// `F` must be the type of a pointer to that function.
unsafe fn find<F: Copy>(handle: *mut c_void, name: &CStr) -> F {
    // SAFETY: an open handle and a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?} is not in libz.so.1");
    // SAFETY: the caller vouches for the type, which is a pointer's.
    unsafe { core::mem::transmute_copy(&address) }
}

/// # Safety
///
/// `handle` must be that of a zlib.
unsafe fn inflate_of(handle: *mut c_void) -> Inflate {
    // SAFETY: the types are zlib.h's.
    unsafe {
        Inflate {
            init2: find(handle, c"inflateInit2_"),
            inflate: find(handle, c"inflate"),
            end: find(handle, c"inflateEnd"),
            reset: find(handle, c"inflateReset"),
            reset2: find(handle, c"inflateReset2"),
            reset_keep: find(handle, c"inflateResetKeep"),
            set_dictionary: find(handle, c"inflateSetDictionary"),
            get_dictionary: find(handle, c"inflateGetDictionary"),
            get_header: find(handle, c"inflateGetHeader"),
            sync: find(handle, c"inflateSync"),
            sync_point: find(handle, c"inflateSyncPoint"),
            copy: find(handle, c"inflateCopy"),
            prime: find(handle, c"inflatePrime"),
            mark: find(handle, c"inflateMark"),
            undermine: find(handle, c"inflateUndermine"),
            validate: find(handle, c"inflateValidate"),
            codes_used: find(handle, c"inflateCodesUsed"),
        }
    }
}

/// # Safety
///
/// `handle` must be that of a zlib.
unsafe fn deflate_of(handle: *mut c_void) -> Deflate {
    // SAFETY: the types are zlib.h's.
    unsafe {
        Deflate {
            init2: find(handle, c"deflateInit2_"),
            deflate: find(handle, c"deflate"),
            end: find(handle, c"deflateEnd"),
            set_dictionary: find(handle, c"deflateSetDictionary"),
            set_header: find(handle, c"deflateSetHeader"),
        }
    }
}

/// Ours, with C's calling convention.
macro_rules! exported {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        mod exported {
            use super::*;
            $(
            /// # Safety
            ///
            /// As for zlib's function.
            pub(super) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                // SAFETY: guaranteed by the caller.
                unsafe { ours::$name($($arg),*) }
            }
            )*
        }
    };
}

exported! {
    inflate(strm: *mut ZStream, flush: c_int) -> c_int;
    end(strm: *mut ZStream) -> c_int;
    reset(strm: *mut ZStream) -> c_int;
    reset_to(strm: *mut ZStream, window_bits: c_int) -> c_int;
    reset_keep(strm: *mut ZStream) -> c_int;
    set_dictionary(strm: *mut ZStream, dictionary: *const u8, len: c_uint) -> c_int;
    get_dictionary(strm: *mut ZStream, dictionary: *mut u8, len: *mut c_uint) -> c_int;
    get_header(strm: *mut ZStream, head: *mut GzHeader) -> c_int;
    sync(strm: *mut ZStream) -> c_int;
    sync_point(strm: *mut ZStream) -> c_int;
    copy(dest: *mut ZStream, source: *mut ZStream) -> c_int;
    prime(strm: *mut ZStream, bits: c_int, value: c_int) -> c_int;
    mark(strm: *mut ZStream) -> c_long;
    undermine(strm: *mut ZStream, subvert: c_int) -> c_int;
    validate(strm: *mut ZStream, check: c_int) -> c_int;
    codes_used(strm: *mut ZStream) -> c_ulong;
}

/// # Safety
///
/// As for zlib's `inflateInit2_`.
unsafe extern "C" fn init2(strm: *mut ZStream, bits: c_int, _version: *const c_char, _size: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ours::init(strm, bits, ours::STATE_SIZE) }
}

pub(crate) static OURS: Inflate = Inflate {
    init2,
    inflate: exported::inflate,
    end: exported::end,
    reset: exported::reset,
    reset2: exported::reset_to,
    reset_keep: exported::reset_keep,
    set_dictionary: exported::set_dictionary,
    get_dictionary: exported::get_dictionary,
    get_header: exported::get_header,
    sync: exported::sync,
    sync_point: exported::sync_point,
    copy: exported::copy,
    prime: exported::prime,
    mark: exported::mark,
    undermine: exported::undermine,
    validate: exported::validate,
    codes_used: exported::codes_used,
};
