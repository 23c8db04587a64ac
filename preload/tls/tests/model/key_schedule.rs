//! Compares the direct key derivation functions with OpenSSL's own, whatever the parameters.
//!
//! Shared by `tests/key_schedule.rs` and the fuzz target `tls_key_schedule`, which include the library's modules.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use std::sync::OnceLock;

use hasten_hook::{Library, Original};

use crate::abi::Param;
use crate::key_schedule;

/// libssl's parameters, in its order; the input determines what becomes of each.
const TLS13: [Template; 6] = [
    Template::integer(c"mode", 2),
    Template::text(c"digest", c"SHA256"),
    Template::octets(c"key", 32),
    Template::octets(c"prefix", 6),
    Template::octets(c"label", 7),
    Template::octets(c"data", 32),
];
const TLS13_EXTRACT: [Template; 6] = [
    Template::integer(c"mode", 1),
    Template::text(c"digest", c"SHA384"),
    Template::octets(c"key", 48),
    Template::octets(c"salt", 48),
    Template::octets(c"prefix", 6),
    Template::octets(c"label", 7),
];
const TLS1_PRF: [Template; 7] = [
    Template::text(c"digest", c"SHA256"),
    Template::octets(c"secret", 48),
    Template::octets(c"seed", 13),
    Template::octets(c"seed", 32),
    Template::octets(c"seed", 32),
    Template::octets(c"seed", 0),
    Template::octets(c"seed", 0),
];

const DIGESTS: [&CStr; 10] = [
    c"SHA2-256",
    c"SHA-256",
    c"SHA384",
    c"SHA2-384",
    c"SHA512",
    c"sha256",
    c"SHA1",
    c"SHA512-256",
    c"",
    c"SHA256 ",
];

/// The result of a comparison: whether ours was used, and OpenSSL's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) is_ours: bool,
    pub(crate) succeeded: bool,
}

/// Derives with the parameters that `data` describes. If ours answers, OpenSSL must give the same answer.
pub(crate) fn check(data: &[u8]) -> Outcome {
    let mut input = Input(data);
    let (template, kdf, usual): (&[Template], _, _) = match input.byte() % 3 {
        0 => (&TLS13, c"TLS13-KDF", 32),
        1 => (&TLS13_EXTRACT, c"TLS13-KDF", 48),
        _ => (&TLS1_PRF, c"TLS1-PRF", 48),
    };
    let mut values: Vec<Value> = Vec::new();
    for template in template {
        values.extend(template.mutated(&mut input));
    }
    let mut params: Vec<Param> = values.iter_mut().map(Value::param).collect();
    params.push(Param::end());
    let size = match input.byte() {
        0..64 => usual,
        other => usize::from(other) % 100,
    };
    let (mut ours, mut theirs) = (vec![0x55; size], vec![0x55; size]);
    // SAFETY: the parameters have an end marker; their values live in `values`, with text null-terminated.
    let (done, expected) = unsafe {
        let done = match kdf == c"TLS1-PRF" {
            true => key_schedule::tls1_prf(params.as_ptr(), &mut ours),
            false => key_schedule::tls13(params.as_ptr(), &mut ours),
        };
        (done, openssl().derive(kdf, params.as_ptr(), &mut theirs))
    };
    if done.is_some() {
        assert!(expected, "OpenSSL refuses {values:?}");
        assert_eq!(ours, theirs, "{values:?}");
    }
    Outcome { is_ours: done.is_some(), succeeded: expected }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    /// Zero, which changes nothing, at the end of the input.
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }
}

#[derive(Clone, Copy)]
struct Template {
    key: &'static CStr,
    value: Default,
}

#[derive(Clone, Copy)]
enum Default {
    Integer(c_int),
    Text(&'static CStr),
    Octets(usize),
}

#[derive(Debug)]
struct Value {
    key: &'static CStr,
    data_type: c_uint,
    bytes: Vec<u8>,
    size: usize,
    is_null: bool,
}

impl Template {
    const fn integer(key: &'static CStr, number: c_int) -> Self {
        Self { key, value: Default::Integer(number) }
    }

    const fn text(key: &'static CStr, text: &'static CStr) -> Self {
        Self { key, value: Default::Text(text) }
    }

    const fn octets(key: &'static CStr, len: usize) -> Self {
        Self { key, value: Default::Octets(len) }
    }

    /// The parameter as libssl gives it, or omitted, doubled, or altered.
    fn mutated(self, input: &mut Input) -> Vec<Value> {
        let value = self.value();
        match input.byte() {
            200..=207 => vec![],
            208..=215 => vec![value, self.other(input)],
            216..=255 => vec![self.other(input)],
            _ => vec![value],
        }
    }

    fn value(self) -> Value {
        let (data_type, bytes, size) = match self.value {
            Default::Integer(number) => (Param::INTEGER, number.to_ne_bytes().to_vec(), size_of::<c_int>()),
            Default::Text(text) => {
                (Param::UTF8_STRING, text.to_bytes_with_nul().to_vec(), text.count_bytes())
            }
            Default::Octets(len) if self.key == c"prefix" && len == 6 => {
                (Param::OCTET_STRING, b"tls13 ".to_vec(), 6)
            }
            Default::Octets(len) => (Param::OCTET_STRING, (0..len).map(|i| i as u8 ^ 0xa5).collect(), len),
        };
        let is_null = matches!(self.value, Default::Octets(0));
        Value { key: self.key, data_type, bytes, size, is_null }
    }

    fn other(self, input: &mut Input) -> Value {
        let mut value = self.value();
        match self.value {
            Default::Integer(_) => {
                value.bytes = vec![input.byte() % 5, 0, 0, 0, 0, 0, 0, 0];
                value.size = [4, 8, 2, 1][usize::from(input.byte()) % 4];
            }
            Default::Text(_) => {
                let text = DIGESTS[usize::from(input.byte()) % DIGESTS.len()];
                value.bytes = text.to_bytes_with_nul().to_vec();
                value.size = text.count_bytes();
            }
            Default::Octets(_) => {
                value.size = usize::from(input.byte());
                value.bytes = (0..value.size).map(|_| input.byte()).collect();
                value.is_null = input.byte() > 240;
                if input.byte() > 240 {
                    // A wrong type; text would have to be null-terminated.
                    value.data_type = Param::INTEGER;
                }
            }
        }
        value
    }
}

impl Value {
    fn param(&mut self) -> Param {
        let data = if self.is_null { null_mut() } else { self.bytes.as_mut_ptr().cast() };
        Param {
            key: self.key.as_ptr(),
            data_type: self.data_type,
            data,
            data_size: self.size,
            return_size: 0,
        }
    }
}

type Fetch = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
type Derive = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *const Param) -> c_int;

/// OpenSSL's own functions.
struct OpenSsl {
    fetch: Original<Fetch>,
    new: Original<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    derive: Original<Derive>,
    free_context: Original<unsafe extern "C" fn(*mut c_void)>,
    free: Original<unsafe extern "C" fn(*mut c_void)>,
    clear_errors: Original<unsafe extern "C" fn()>,
}

/// Loads libcrypto where the library's modules find it as well.
fn openssl() -> &'static OpenSsl {
    static OPENSSL: OnceLock<OpenSsl> = OnceLock::new();
    OPENSSL.get_or_init(|| {
        assert!(Library::Crypto.load(), "libcrypto.so.3 is missing: run `apt-get install libssl3` as root");
        // SAFETY: the types are the documented prototypes, with pointers to opaque types.
        unsafe {
            OpenSsl {
                fetch: Original::new(Library::Crypto, c"EVP_KDF_fetch"),
                new: Original::new(Library::Crypto, c"EVP_KDF_CTX_new"),
                derive: Original::new(Library::Crypto, c"EVP_KDF_derive"),
                free_context: Original::new(Library::Crypto, c"EVP_KDF_CTX_free"),
                free: Original::new(Library::Crypto, c"EVP_KDF_free"),
                clear_errors: Original::new(Library::Crypto, c"ERR_clear_error"),
            }
        }
    })
}

impl OpenSsl {
    /// # Safety
    ///
    /// `params` is an array of OSSL_PARAM with an end marker, and their data has the stated lengths.
    unsafe fn derive(&self, name: &CStr, params: *const Param, out: &mut [u8]) -> bool {
        // SAFETY: OpenSSL's functions in their documented order; the caller's parameters.
        unsafe {
            let kdf = self.fetch.get()(null_mut(), name.as_ptr(), core::ptr::null());
            let context = self.new.get()(kdf);
            let result = self.derive.get()(context, out.as_mut_ptr(), out.len(), params);
            self.free_context.get()(context);
            self.free.get()(kdf);
            self.clear_errors.get()();
            result > 0
        }
    }
}

/// Call before the first use of the library's modules.
pub(crate) fn init() {
    openssl();
}
