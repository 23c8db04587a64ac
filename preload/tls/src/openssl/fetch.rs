//! Algorithms that libssl fetches by name in every handshake, fetched once.
//!
//! A fetch in OpenSSL 3 takes locks and searches names and properties. The answer stays the same unless providers or
//! default properties change, and from then on the cache is not used any more (see `shortcuts`).

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use hasten_hook::Original;
use hasten_telemetry::{Event, slot};

use super::abi::*;
use super::shortcuts::{self, Shortcut};

/// An algorithm and, once fetched, a reference to it that is never released.
pub(crate) struct Cached<T: 'static> {
    name: &'static CStr,
    up_ref: &'static Original<unsafe extern "C" fn(*mut T) -> c_int>,
    algorithm: AtomicPtr<T>,
}

pub(crate) static TLS13_KDF: Cached<EvpKdf> = Cached::new(c"TLS13-KDF", &EVP_KDF_up_ref);
pub(crate) static TLS1_PRF: Cached<EvpKdf> = Cached::new(c"TLS1-PRF", &EVP_KDF_up_ref);
static TICKET_CIPHER: Cached<EvpCipher> = Cached::new(c"AES-256-CBC", &EVP_CIPHER_up_ref);
static TICKET_MAC: Cached<EvpMac> = Cached::new(c"HMAC", &EVP_MAC_up_ref);

impl<T> Cached<T> {
    const fn new(
        name: &'static CStr,
        up_ref: &'static Original<unsafe extern "C" fn(*mut T) -> c_int>,
    ) -> Self {
        Self { name, up_ref, algorithm: AtomicPtr::new(null_mut()) }
    }

    /// The algorithm, without a reference to it; null until it has been fetched.
    pub(crate) fn cached(&self) -> *mut T {
        self.algorithm.load(Relaxed)
    }

    /// Another reference, from the cache or from `fetch`.
    ///
    /// # Safety
    ///
    /// `fetch` returns null or a reference to an algorithm of the kind that `up_ref` takes.
    unsafe fn get(&self, fetch: impl FnOnce() -> *mut T) -> *mut T {
        // SAFETY: the cache's own reference keeps the algorithm alive.
        unsafe {
            let cached = self.cached();
            if !cached.is_null() && self.up_ref.get()(cached) == 1 {
                slot().event(Event::FetchCached);
                return cached;
            }
            let fetched = fetch();
            if !fetched.is_null() && self.up_ref.get()(fetched) == 1 {
                self.algorithm.store(fetched, Relaxed);
            }
            fetched
        }
    }
}

type Fetch<T> = unsafe extern "C" fn(*mut LibCtx, *const c_char, *const c_char) -> *mut T;

/// # Safety
///
/// As for `original`, which is `EVP_KDF_fetch` or a similar function for the kind of algorithm in `known`: `libctx` is
/// null or a live library context, and `name` and `properties` are null or C strings.
unsafe fn fetch<T>(
    known: &[&Cached<T>],
    original: Fetch<T>,
    libctx: *mut LibCtx,
    name: *const c_char,
    properties: *const c_char,
) -> *mut T {
    // SAFETY: the caller's arguments; a name is a C string.
    unsafe {
        let fetch = || original(libctx, name, properties);
        let plain = libctx.is_null() && properties.is_null() && !name.is_null();
        if !plain || shortcuts::using(Shortcut::Fetch).is_none() {
            return fetch();
        }
        let name = CStr::from_ptr(name);
        match known.iter().find(|cached| cached.name == name) {
            Some(cached) => cached.get(fetch),
            None => fetch(),
        }
    }
}

macro_rules! fetches {
    ($($original:literal $function:ident: $T:ty = $known:expr;)*) => {
        $(
        /// # Safety
        ///
        #[doc = concat!("As for `", $original, "`: `libctx` is null or a live library context, and `name` and `properties` are null or C strings.")]
        pub(crate) unsafe fn $function(
            original: Fetch<$T>,
            libctx: *mut LibCtx,
            name: *const c_char,
            properties: *const c_char,
        ) -> *mut $T {
            // SAFETY: the caller's arguments, forwarded.
            unsafe { fetch($known, original, libctx, name, properties) }
        })*
    };
}

fetches! {
    "EVP_KDF_fetch" kdf: EvpKdf = &[&TLS13_KDF, &TLS1_PRF];
    "EVP_CIPHER_fetch" cipher: EvpCipher = &[&TICKET_CIPHER];
    "EVP_MAC_fetch" mac: EvpMac = &[&TICKET_MAC];
}
