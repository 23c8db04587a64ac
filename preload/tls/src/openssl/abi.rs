//! The part of OpenSSL's ABI in use: opaque types, and the functions that are
//! called but not hooked. All of it is public and documented.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use hasten_hook::imports;

macro_rules! opaque {
    ($($(#[$doc:meta])* $Name:ident)*) => {
        $($(#[$doc])* #[repr(C)] pub(crate) struct $Name { _private: [u8; 0] })*
    };
}

opaque! {
    /// SSL
    Ssl
    /// SSL_SESSION
    Session
    /// SSL_CTX
    SslCtx
    /// SSL_METHOD
    SslMethod
    /// EVP_PKEY
    EvpPkey
    /// EVP_PKEY_CTX
    EvpPkeyCtx
    /// EVP_MD
    EvpMd
    /// EVP_MD_CTX
    EvpMdCtx
    /// EVP_KDF
    EvpKdf
    /// EVP_KDF_CTX
    EvpKdfCtx
    /// EVP_CIPHER
    EvpCipher
    /// EVP_MAC
    EvpMac
    /// BIGNUM
    Bignum
    /// BIO
    Bio
    /// BIO_METHOD
    BioMethod
    /// OSSL_LIB_CTX
    LibCtx
    /// OSSL_PROVIDER
    Provider
    /// CRYPTO_EX_DATA
    ExData
}

/// OSSL_PARAM
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

impl Param {
    pub(crate) const INTEGER: c_uint = 1;
    pub(crate) const UTF8_STRING: c_uint = 4;
    pub(crate) const OCTET_STRING: c_uint = 5;
    const END: Param = Param {
        key: core::ptr::null(),
        data_type: 0,
        data: core::ptr::null_mut(),
        data_size: 0,
        return_size: 0,
    };

    pub(crate) fn utf8(key: &'static CStr, value: &CStr) -> Param {
        let data = value.as_ptr().cast_mut().cast();
        Param {
            key: key.as_ptr(),
            data_type: Self::UTF8_STRING,
            data,
            data_size: value.count_bytes(),
            ..Self::END
        }
    }

    pub(crate) fn octets(key: &'static CStr, value: &[u8]) -> Param {
        let data = value.as_ptr().cast_mut().cast();
        Param { key: key.as_ptr(), data_type: Self::OCTET_STRING, data, data_size: value.len(), ..Self::END }
    }

    pub(crate) fn unsigned(key: &'static CStr, little_endian: &[u8]) -> Param {
        let data = little_endian.as_ptr().cast_mut().cast();
        Param { key: key.as_ptr(), data_type: 2, data, data_size: little_endian.len(), ..Self::END }
    }

    /// Its text, if it is one.
    ///
    /// # Safety
    ///
    /// The data is null or valid for reads of the stated length, and stays so while the result is used.
    pub(crate) unsafe fn text(&self) -> Option<&[u8]> {
        let is_text = self.data_type == Self::UTF8_STRING && !self.data.is_null();
        // SAFETY: the contract.
        is_text.then(|| unsafe { core::slice::from_raw_parts(self.data.cast(), self.data_size) })
    }

    pub(crate) const fn end() -> Param {
        Self::END
    }
}

/// CRYPTO_EX_free
pub(crate) type ExFree =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut ExData, c_int, c_long, *mut c_void);

/// CRYPTO_EX_dup
pub(crate) type ExDup =
    unsafe extern "C" fn(*mut ExData, *const ExData, *mut *mut c_void, c_int, c_long, *mut c_void) -> c_int;

/// The argument of SSL_CTX_set_info_callback.
pub(crate) type InfoFn = unsafe extern "C" fn(*const Ssl, c_int, c_int);

/// The argument of SSL_CTX_set_verify.
pub(crate) type VerifyFn = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;

/// The argument of SSL_CTX_set_keylog_callback.
pub(crate) type KeylogFn = unsafe extern "C" fn(*const Ssl, *const c_char);

/// ERR_set_error, whose prototype is variadic.
pub(crate) type SetError = unsafe extern "C" fn(c_int, c_int, *const c_char, ...);

#[allow(non_upper_case_globals)]
pub(crate) static ERR_set_error: hasten_hook::Original<SetError> =
    // SAFETY: the documented prototype.
    unsafe { hasten_hook::Original::new(hasten_hook::Library::Crypto, c"ERR_set_error") };

/// `class_index` of CRYPTO_get_ex_new_index
pub(crate) const EX_INDEX_SSL: c_int = 0;
pub(crate) const EX_INDEX_EVP_PKEY: c_int = 17;

pub(crate) const SSL_ERROR_WANT_READ: c_int = 2;
pub(crate) const SSL_ERROR_SSL: c_int = 1;
pub(crate) const SSL_ERROR_SYSCALL: c_int = 5;
pub(crate) const BIO_CTRL_FLUSH: c_int = 11;
/// `BIO_TYPE_SOCKET`: number 5, a source/sink with a descriptor.
pub(crate) const BIO_TYPE_SOCKET: c_int = 5 | 0x0400 | 0x0100;
/// The result of SSL_want while a read is awaited.
pub(crate) const SSL_READING: c_int = 3;
pub(crate) const SSL_CTRL_MODE: c_int = 33;
pub(crate) const SSL_CTRL_SET_GROUPS_LIST: c_int = 92;
pub(crate) const SSL_CTRL_GET_NEGOTIATED_GROUP: c_int = 134;
/// Marks the number of a group in TLS that OpenSSL has no number for.
pub(crate) const TLSEXT_NID_UNKNOWN: c_long = 0x0100_0000;
pub(crate) const SSL_CTRL_SET_SIGALGS_LIST: c_int = 98;
pub(crate) const SSL_CTRL_SET_MIN_PROTO_VERSION: c_int = 123;
pub(crate) const SSL_CTRL_SET_MAX_PROTO_VERSION: c_int = 124;
pub(crate) const TLS1_2: c_long = 0x303;
pub(crate) const TLS1_3: c_long = 0x304;
pub(crate) const SSL_MODE_ASYNC: c_long = 0x100;
pub(crate) const SSL_VERIFY_PEER: c_int = 1;
pub(crate) const SSL_SENT_SHUTDOWN: c_int = 1;
pub(crate) const SSL_READ_EARLY_DATA_ERROR: c_int = 0;

pub(crate) const EVP_PKEY_RSA: c_int = 6;
pub(crate) const EVP_PKEY_EC: c_int = 408;
pub(crate) const EVP_PKEY_KEYPAIR: c_int = 0x87;
pub(crate) const EVP_PKEY_PUBLIC_KEY: c_int = 0x86;
pub(crate) const RSA_PKCS1_PADDING: c_int = 1;
pub(crate) const RSA_PKCS1_PSS_PADDING: c_int = 6;
pub(crate) const RSA_PSS_SALTLEN_DIGEST: c_int = -1;

imports! {
    Ssl fn SSL_is_server(*const Ssl) -> c_int;
    Ssl fn SSL_is_init_finished(*const Ssl) -> c_int;
    Ssl fn SSL_in_before(*const Ssl) -> c_int;
    Ssl fn SSL_get_rfd(*const Ssl) -> c_int;
    Ssl fn SSL_ctrl(*mut Ssl, c_int, c_long, *mut c_void) -> c_long;
    Ssl fn SSL_set_ex_data(*mut Ssl, c_int, *mut c_void) -> c_int;
    Ssl fn SSL_get_ex_data(*const Ssl, c_int) -> *mut c_void;
    Ssl fn SSL_set0_wbio(*mut Ssl, *mut Bio);
    Ssl fn SSL_set_shutdown(*mut Ssl, c_int);
    Ssl fn SSL_is_dtls(*const Ssl) -> c_int;
    Ssl fn SSL_get_SSL_CTX(*const Ssl) -> *mut SslCtx;
    Ssl fn SSL_get_info_callback(*const Ssl) -> Option<InfoFn>;
    Ssl fn SSL_CTX_get_info_callback(*mut SslCtx) -> Option<InfoFn>;
    Ssl fn SSL_CTX_get_keylog_callback(*const SslCtx) -> Option<KeylogFn>;
    Ssl fn SSL_get_verify_mode(*const Ssl) -> c_int;
    Ssl fn SSL_get_verify_callback(*const Ssl) -> Option<VerifyFn>;
    Ssl fn SSL_SESSION_up_ref(*mut Session) -> c_int;
    Ssl fn SSL_get_state(*const Ssl) -> c_int;
    Ssl fn SSL_get_num_tickets(*const Ssl) -> usize;
    Ssl fn SSL_session_reused(*const Ssl) -> c_int;
    Ssl fn SSL_get_rbio(*const Ssl) -> *mut Bio;
    Ssl fn SSL_get_wbio(*const Ssl) -> *mut Bio;
    Ssl fn TLS_server_method() -> *const SslMethod;
    Ssl fn TLS_client_method() -> *const SslMethod;
    Ssl fn SSL_CTX_new(*const SslMethod) -> *mut SslCtx;
    Ssl fn SSL_CTX_free(*mut SslCtx);
    Ssl fn SSL_CTX_ctrl(*mut SslCtx, c_int, c_long, *mut c_void) -> c_long;
    Ssl fn SSL_CTX_set_security_level(*mut SslCtx, c_int);
    Ssl fn SSL_CTX_set_cipher_list(*mut SslCtx, *const c_char) -> c_int;
    Ssl fn SSL_CTX_set_ciphersuites(*mut SslCtx, *const c_char) -> c_int;
    Ssl fn SSL_CTX_use_certificate_ASN1(*mut SslCtx, c_int, *const u8) -> c_int;
    Ssl fn SSL_CTX_use_PrivateKey_ASN1(c_int, *mut SslCtx, *const u8, c_long) -> c_int;
    Ssl fn SSL_new(*mut SslCtx) -> *mut Ssl;
    Ssl fn SSL_set_security_level(*mut Ssl, c_int);
    Ssl fn SSL_set_cipher_list(*mut Ssl, *const c_char) -> c_int;
    Ssl fn SSL_set_ciphersuites(*mut Ssl, *const c_char) -> c_int;
    Ssl fn SSL_set_accept_state(*mut Ssl);
    Ssl fn SSL_set_connect_state(*mut Ssl);
    Ssl fn SSL_set0_rbio(*mut Ssl, *mut Bio);
    Ssl fn SSL_set_session(*mut Ssl, *mut Session) -> c_int;
    Ssl fn SSL_get1_session(*mut Ssl) -> *mut Session;
    Ssl fn SSL_SESSION_free(*mut Session);

    Crypto fn OpenSSL_version_num() -> c_ulong;
    Crypto fn CRYPTO_malloc(usize, *const c_char, c_int) -> *mut c_void;
    Crypto fn CRYPTO_get_ex_new_index(c_int, c_long, *mut c_void, *const c_void, Option<ExDup>, Option<ExFree>) -> c_int;
    Crypto fn BIO_up_ref(*mut Bio) -> c_int;
    Crypto fn BIO_new(*const BioMethod) -> *mut Bio;
    Crypto fn BIO_method_type(*const Bio) -> c_int;
    Crypto fn BIO_next(*mut Bio) -> *mut Bio;
    Crypto fn BIO_s_null() -> *const BioMethod;
    Crypto fn BIO_s_mem() -> *const BioMethod;
    Crypto fn ERR_set_mark() -> c_int;
    Crypto fn ERR_pop_to_mark() -> c_int;
    Crypto fn ERR_new();
    Crypto fn ERR_set_debug(*const c_char, c_int, *const c_char);
    Crypto fn ERR_get_error_all(*mut *const c_char, *mut c_int, *mut *const c_char, *mut *const c_char, *mut c_int) -> c_ulong;
    Crypto fn ERR_peek_error() -> c_ulong;
    Crypto fn ERR_clear_error();
    Crypto fn RAND_priv_bytes(*mut u8, c_int) -> c_int;

    Crypto fn BN_bn2lebinpad(*const Bignum, *mut u8, c_int) -> c_int;
    Crypto fn BN_clear_free(*mut Bignum);

    Crypto fn EVP_default_properties_is_fips_enabled(*mut LibCtx) -> c_int;
    Crypto fn EVP_PKEY_get_base_id(*const EvpPkey) -> c_int;
    Crypto fn EVP_PKEY_get_bits(*const EvpPkey) -> c_int;
    Crypto fn EVP_PKEY_get_group_name(*const EvpPkey, *mut c_char, usize, *mut usize) -> c_int;
    Crypto fn EVP_PKEY_get_bn_param(*const EvpPkey, *const c_char, *mut *mut Bignum) -> c_int;
    Crypto fn EVP_PKEY_get_octet_string_param(*const EvpPkey, *const c_char, *mut u8, usize, *mut usize) -> c_int;
    Crypto fn EVP_PKEY_get_raw_public_key(*const EvpPkey, *mut u8, *mut usize) -> c_int;
    Crypto fn EVP_PKEY_get0_provider(*const EvpPkey) -> *const Provider;
    Crypto fn EVP_KEYMGMT_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_KEYMGMT_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_KEYMGMT_free(*mut c_void);
    Crypto fn EVP_KEYEXCH_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_KEYEXCH_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_KEYEXCH_free(*mut c_void);
    Crypto fn EVP_KEM_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_KEM_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_KEM_free(*mut c_void);
    Crypto fn EVP_SIGNATURE_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_SIGNATURE_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_SIGNATURE_free(*mut c_void);
    Crypto fn EVP_MAC_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_MAC_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_MAC_free(*mut c_void);
    Crypto fn EVP_KDF_fetch(*mut LibCtx, *const c_char, *const c_char) -> *mut c_void;
    Crypto fn EVP_KDF_get0_provider(*const c_void) -> *const Provider;
    Crypto fn EVP_KDF_free(*mut c_void);
    Crypto fn OSSL_PROVIDER_get0_name(*const Provider) -> *const c_char;
    Crypto fn EVP_PKEY_set_ex_data(*mut EvpPkey, c_int, *mut c_void) -> c_int;
    Crypto fn EVP_PKEY_get_ex_data(*const EvpPkey, c_int) -> *mut c_void;
    Crypto fn EVP_PKEY_set1_encoded_public_key(*mut EvpPkey, *const u8, usize) -> c_int;
    Crypto fn EVP_PKEY_fromdata_init(*mut EvpPkeyCtx) -> c_int;
    Crypto fn EVP_PKEY_fromdata(*mut EvpPkeyCtx, *mut *mut EvpPkey, c_int, *mut Param) -> c_int;
    Crypto fn EVP_PKEY_is_a(*const EvpPkey, *const c_char) -> c_int;

    Crypto fn EVP_MD_get0_name(*const EvpMd) -> *const c_char;
    Crypto fn EVP_MD_CTX_get_pkey_ctx(*const EvpMdCtx) -> *mut EvpPkeyCtx;
    Crypto fn EVP_PKEY_CTX_get0_pkey(*mut EvpPkeyCtx) -> *mut EvpPkey;
    Crypto fn EVP_KDF_up_ref(*mut EvpKdf) -> c_int;
    Crypto fn EVP_CIPHER_up_ref(*mut EvpCipher) -> c_int;
    Crypto fn EVP_MAC_up_ref(*mut EvpMac) -> c_int;
    Crypto fn EVP_KDF_is_a(*const EvpKdf, *const c_char) -> c_int;
    Crypto fn EVP_KDF_CTX_kdf(*mut EvpKdfCtx) -> *const EvpKdf;

    Crypto fn SHA1_Init(*mut c_void) -> c_int;
    Crypto fn SHA1_Update(*mut c_void, *const c_void, usize) -> c_int;
    Crypto fn SHA1_Final(*mut u8, *mut c_void) -> c_int;
    Crypto fn SHA224_Init(*mut c_void) -> c_int;
    Crypto fn SHA256_Init(*mut c_void) -> c_int;
    Crypto fn SHA256_Update(*mut c_void, *const c_void, usize) -> c_int;
    Crypto fn SHA256_Final(*mut u8, *mut c_void) -> c_int;
    Crypto fn SHA384_Init(*mut c_void) -> c_int;
    Crypto fn SHA512_Init(*mut c_void) -> c_int;
    Crypto fn SHA512_Update(*mut c_void, *const c_void, usize) -> c_int;
    Crypto fn SHA512_Final(*mut u8, *mut c_void) -> c_int;
}
