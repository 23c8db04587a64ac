//! This machine's zlib as an engine.

use hasten_deflate::engine::zlib as api;
use libc::{c_void, dlsym};

/// Loads it by name. Every Debian has it.
pub(crate) fn load() {
    // SAFETY: loading zlib runs no code of consequence.
    let library = unsafe { libc::dlopen(c"libz.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "libz.so.1 is not installed");
    macro_rules! symbol {
        ($name:literal, $Type:ty) => {{
            // SAFETY: the handle is valid and the name is terminated by a zero.
            let address = unsafe { dlsym(library, $name.as_ptr()) };
            assert!(!address.is_null(), "libz has no {:?}", $name);
            // SAFETY: the function has the type that zlib.h gives this name.
            unsafe { std::mem::transmute::<*mut c_void, $Type>(address) }
        }};
    }
    let original = api::ZlibApi {
        init2: symbol!(c"deflateInit2_", api::DeflateInit2),
        deflate: symbol!(c"deflate", api::Deflate),
        reset: symbol!(c"deflateReset", api::DeflateReset),
        params: symbol!(c"deflateParams", api::DeflateParams),
        tune: symbol!(c"deflateTune", api::DeflateTune),
        prime: symbol!(c"deflatePrime", api::DeflatePrime),
        pending: symbol!(c"deflatePending", api::DeflatePending),
        set_dictionary: symbol!(c"deflateSetDictionary", api::DeflateSetDictionary),
        end: symbol!(c"deflateEnd", api::DeflateEnd),
    };
    // SAFETY: the functions are zlib's, and the library is never unloaded.
    unsafe { original.set_original() };
}
