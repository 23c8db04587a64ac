//! SHA-2 of the host library, called directly: no fetch, no context object, no allocation.

use core::ffi::{CStr, c_char, c_int, c_void};

use hasten_crypto::encoding::pkcs1::DigestKind;
use hasten_crypto::{Hash, wipe};

use super::abi::*;

/// A digest that TLS signs with or derives keys with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Digest {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// Runs generic code with the hash type of a [`Digest`].
///
/// The neighbouring modules use it.
macro_rules! with_hash {
    ($digest:expr, $H:ident => $body:expr) => {
        match $digest {
            super::digest::Digest::Sha1 => {
                type $H = super::digest::Sha1;
                $body
            }
            super::digest::Digest::Sha224 => {
                type $H = super::digest::Sha224;
                $body
            }
            super::digest::Digest::Sha256 => {
                type $H = super::digest::Sha256;
                $body
            }
            super::digest::Digest::Sha384 => {
                type $H = super::digest::Sha384;
                $body
            }
            super::digest::Digest::Sha512 => {
                type $H = super::digest::Sha512;
                $body
            }
        }
    };
}
pub(crate) use with_hash;

impl Digest {
    /// Finds a digest by OpenSSL's name for it, or one of its aliases.
    fn from_name(name: &CStr) -> Option<Digest> {
        match name.to_bytes() {
            b"SHA1" | b"SHA-1" => Some(Digest::Sha1),
            b"SHA2-224" | b"SHA224" | b"SHA-224" => Some(Digest::Sha224),
            b"SHA2-256" | b"SHA256" | b"SHA-256" => Some(Digest::Sha256),
            b"SHA2-384" | b"SHA384" | b"SHA-384" => Some(Digest::Sha384),
            b"SHA2-512" | b"SHA512" | b"SHA-512" => Some(Digest::Sha512),
            _ => None,
        }
    }

    /// # Safety
    ///
    /// `name` is null or a C string.
    pub(crate) unsafe fn from_c_name(name: *const c_char) -> Option<Digest> {
        // SAFETY: as the contract says.
        if name.is_null() { None } else { Digest::from_name(unsafe { CStr::from_ptr(name) }) }
    }

    /// The length of the digest in bytes.
    pub(crate) const fn len(self) -> usize {
        self.kind().output_len()
    }

    /// The same digest, as the padding code names it.
    pub(crate) const fn kind(self) -> DigestKind {
        match self {
            Digest::Sha1 => DigestKind::Sha1,
            Digest::Sha224 => DigestKind::Sha224,
            Digest::Sha256 => DigestKind::Sha256,
            Digest::Sha384 => DigestKind::Sha384,
            Digest::Sha512 => DigestKind::Sha512,
        }
    }
}

macro_rules! host_hash {
    ($(#[$doc:meta])* $Name:ident, $words:literal, $output:literal, $block:literal, $init:ident, $update:ident, $finish:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $Name([u64; $words]);

        impl Hash for $Name {
            const OUTPUT: usize = $output;
            const BLOCK: usize = $block;

            #[inline]
            fn new() -> Self {
                let mut state = Self([0; $words]);
                // SAFETY: the state has the size and alignment of the context.
                unsafe { $init.get()(state.0.as_mut_ptr().cast()) };
                state
            }

            #[inline]
            fn update(&mut self, bytes: &[u8]) {
                // SAFETY: the state was initialised; the bytes are valid.
                unsafe { $update.get()(self.0.as_mut_ptr().cast(), bytes.as_ptr().cast(), bytes.len()) };
            }

            #[inline]
            fn finish(mut self, out: &mut [u8]) {
                assert!(out.len() == Self::OUTPUT);
                // SAFETY: the state was initialised; it has the digest's length, which `out` has as well.
                unsafe { $finish.get()(out.as_mut_ptr(), self.0.as_mut_ptr().cast()) };
            }
        }

        impl Drop for $Name {
            /// It may have absorbed a key.
            fn drop(&mut self) {
                // SAFETY: the array as bytes.
                wipe(unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), size_of_val(&self.0)) });
            }
        }
    };
}

host_hash!(
    /// SHA_CTX is 96 bytes.
    Sha1, 12, 20, 64, SHA1_Init, SHA1_Update, SHA1_Final
);
host_hash!(
    /// SHA256_CTX is 112 bytes; SHA-224 differs in the initial value and the length.
    Sha224, 14, 28, 64, SHA224_Init, SHA256_Update, SHA256_Final
);
host_hash!(
    /// SHA256_CTX is 112 bytes.
    Sha256, 14, 32, 64, SHA256_Init, SHA256_Update, SHA256_Final
);
host_hash!(
    /// SHA512_CTX is 216 bytes; SHA-384 differs in the initial value and the length.
    Sha384, 27, 48, 128, SHA384_Init, SHA512_Update, SHA512_Final
);
host_hash!(
    /// SHA512_CTX is 216 bytes.
    Sha512, 27, 64, 128, SHA512_Init, SHA512_Update, SHA512_Final
);

/// The digest of a message, in the first bytes of the result.
pub(crate) fn hash(digest: Digest, message: &[u8]) -> [u8; hasten_crypto::MAX_OUTPUT] {
    let mut out = [0; hasten_crypto::MAX_OUTPUT];
    with_hash!(digest, H => {
        let mut state = H::new();
        state.update(message);
        state.finish(&mut out[..H::OUTPUT]);
    });
    out
}

/// Whether the host library has these functions: they are deprecated, and a build may omit them.
pub(crate) fn is_available() -> bool {
    let inits: [&hasten_hook::Original<unsafe extern "C" fn(*mut c_void) -> c_int>; 5] =
        [&SHA1_Init, &SHA224_Init, &SHA256_Init, &SHA384_Init, &SHA512_Init];
    inits.iter().all(|init| init.find().is_some())
        && SHA1_Update.find().is_some()
        && SHA1_Final.find().is_some()
        && SHA256_Update.find().is_some()
        && SHA256_Final.find().is_some()
        && SHA512_Update.find().is_some()
        && SHA512_Final.find().is_some()
}
