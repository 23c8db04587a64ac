//! Key objects made from numbers.

use core::ffi::{CStr, c_int};
use core::ptr::null_mut;

use super::abi::*;
use crate::hooks::original;

/// Makes a key of this type, or what `selection` says of one, from parameters; whether OpenSSL accepts them.
///
/// # Safety
///
/// `params` has an end marker, and what it points to lives during the call. `out` holds null, or a live EVP_PKEY that receives
/// the key and that nothing else uses meanwhile.
pub(super) unsafe fn key(
    key_type: &CStr,
    selection: c_int,
    params: &mut [Param],
    out: &mut *mut EvpPkey,
) -> bool {
    // SAFETY: OpenSSL's own functions; the rest is the contract.
    unsafe {
        let context =
            original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), key_type.as_ptr(), core::ptr::null());
        let imported = !context.is_null()
            && EVP_PKEY_fromdata_init.get()(context) > 0
            && EVP_PKEY_fromdata.get()(context, out, selection, params.as_mut_ptr()) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        imported
    }
}
