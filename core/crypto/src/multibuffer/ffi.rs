//! The functions of crypto_mb we call.
//!
//! They are the AVX-512 variants (`k1_`) themselves, not the dispatchers in front of them: the CPU has already been
//! checked once, by [`Ifma`](crate::Ifma), and a dispatcher would add writable state and a second opinion. The names
//! are internal to the archive, which is pinned by hash; a different archive would fail to link, not misbehave.

use std::ffi::c_int;

use hasten_names::LANES;

/// One of [`OK`] … in four bits per lane.
pub(super) type Status = u32;

pub(super) const OK: Status = 0;

/// Opaque: the steps of one RSA operation at one size.
#[repr(C)]
pub(super) struct RsaMethod {
    _private: [u8; 0],
}

pub(super) type Inputs<T> = [*const T; LANES];
pub(super) type Outputs<T> = [*mut T; LANES];

unsafe extern "C" {
    pub(super) fn k1_mbx_RSA_pub65537_Method(bits: c_int) -> *const RsaMethod;
    pub(super) fn k1_mbx_RSA_private_crt_Method(bits: c_int) -> *const RsaMethod;
    pub(super) fn k1_mbx_RSA_Method_BufSize(method: *const RsaMethod) -> c_int;

    pub(super) fn k1_mbx_rsa_public_mb8(
        from: *const Inputs<u8>,
        to: *const Outputs<u8>,
        n: *const Inputs<u64>,
        bits: c_int,
        method: *const RsaMethod,
        buffer: *mut u8,
    ) -> Status;

    pub(super) fn k1_mbx_rsa_private_crt_mb8(
        from: *const Inputs<u8>,
        to: *const Outputs<u8>,
        p: *const Inputs<u64>,
        q: *const Inputs<u64>,
        dp: *const Inputs<u64>,
        dq: *const Inputs<u64>,
        q_inverse: *const Inputs<u64>,
        bits: c_int,
        method: *const RsaMethod,
        buffer: *mut u8,
    ) -> Status;

    pub(super) fn k1_mbx_x25519_public_key_mb8(
        public: *const Outputs<u8>,
        private: *const Inputs<u8>,
    ) -> Status;

    pub(super) fn k1_mbx_nistp256_ecpublic_key_mb8(
        x: *const Outputs<u64>,
        y: *const Outputs<u64>,
        z: *const Outputs<u64>,
        private: *const Inputs<u64>,
        buffer: *mut u8,
    ) -> Status;
    pub(super) fn k1_mbx_nistp384_ecpublic_key_mb8(
        x: *const Outputs<u64>,
        y: *const Outputs<u64>,
        z: *const Outputs<u64>,
        private: *const Inputs<u64>,
        buffer: *mut u8,
    ) -> Status;

    pub(super) fn k1_mbx_nistp256_ecdh_mb8(
        shared: *const Outputs<u8>,
        private: *const Inputs<u64>,
        x: *const Inputs<u64>,
        y: *const Inputs<u64>,
        z: *const Inputs<u64>,
        buffer: *mut u8,
    ) -> Status;
    pub(super) fn k1_mbx_nistp384_ecdh_mb8(
        shared: *const Outputs<u8>,
        private: *const Inputs<u64>,
        x: *const Inputs<u64>,
        y: *const Inputs<u64>,
        z: *const Inputs<u64>,
        buffer: *mut u8,
    ) -> Status;
}
