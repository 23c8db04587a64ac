//! Randomness, always the host library's own generator.

use crate::openssl::{RAND_bytes, RAND_priv_bytes};

/// For private keys and nonces.
pub(crate) fn private(bytes: &mut [u8]) -> bool {
    // SAFETY: the buffer is valid for its length, which fits an int.
    unsafe { RAND_priv_bytes.get()(bytes.as_mut_ptr(), bytes.len() as i32) == 1 }
}

/// For what the peer will see: salts.
pub(crate) fn public(bytes: &mut [u8]) -> bool {
    // SAFETY: as above.
    unsafe { RAND_bytes.get()(bytes.as_mut_ptr(), bytes.len() as i32) == 1 }
}
