//! Objects of BoringSSL, and of Envoy around it, as far as they are used; and the functions that are called.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use hasten_envoy_builds::{SSL_STATE, STATE_HANDSHAKE, Tls, callbacks, connection, io_handle};

use crate::object::Object;
use crate::program::Program;

/// An `SSL`.
pub(super) type Ssl = c_void;

/// An `SSL_HANDSHAKE`.
pub(super) type SslHandshake = c_void;

/// An `EVP_PKEY`.
pub(super) type PrivateKey = c_void;

/// A `CBB`.
pub(super) type Out = c_void;

/// A `Ssl::Handshaker`: the second base of an `SslHandshakerImpl`, and what comes behind it.
#[repr(C)]
pub(crate) struct Handshaker {
    functions: *const usize,
    pub(super) ssl: *mut Ssl,
    /// The connection's `SslSocket`, from its second base on.
    pub(super) callbacks: NonNull<Object>,
    pub(super) state: c_int,
}

/// States of a handshaker: `Ssl::SocketState`. The first lasts while it waits for the network.
pub(super) const BEFORE: c_int = 0;
pub(super) const WAITS_FOR_KEY: c_int = 1;
pub(super) const COMPLETE: c_int = 2;

/// What a handshake asks its connection to do: `PostIoAction`.
pub(super) const CLOSE: c_int = 0;
pub(super) const KEEP_OPEN: c_int = 1;

/// A `ssl_credential_st`.
#[repr(C)]
pub(super) struct Credential {
    references: AtomicU32,
    kind: c_int,
    public: *mut c_void,
    pub(super) private: *mut PrivateKey,
    pub(super) method: *const Method,
}

impl Credential {
    /// Whether it belongs to one connection: its `SSL`, which has a copy of its context's, and its handshake refer to it.
    pub(super) fn is_own(&self) -> bool {
        self.references.load(Relaxed) == 2
    }
}

/// An `SSL_PRIVATE_KEY_METHOD`.
#[repr(C)]
pub(super) struct Method {
    pub(super) sign:
        unsafe extern "C" fn(*mut Ssl, *mut u8, *mut usize, usize, u16, *const u8, usize) -> c_int,
    pub(super) decrypt: unsafe extern "C" fn(*mut Ssl, *mut u8, *mut usize, usize, *const u8, usize) -> c_int,
    pub(super) complete: unsafe extern "C" fn(*mut Ssl, *mut u8, *mut usize, usize) -> c_int,
}

/// The answers of a [`Method`]: `ssl_private_key_result_t`.
pub(super) const SUCCESS: c_int = 0;
pub(super) const RETRY: c_int = 1;
pub(super) const FAILURE: c_int = 2;

/// A `Span<const uint8_t>`; the second comes after it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Span {
    pub(super) bytes: *const u8,
    pub(super) length: usize,
}

/// An `Array<uint8_t>`, which owns memory of [`Boring::allocate`].
#[repr(C)]
pub(super) struct Array {
    bytes: *mut u8,
    length: usize,
}

/// A `BIGNUM`.
#[repr(C)]
pub(super) struct Number {
    words: *const u8,
    width: c_int,
    _room: c_int,
    is_negative: c_int,
}

/// An `X25519KeyShare` or `X25519MLKEM768KeyShare`.
#[repr(C)]
pub(super) struct Share {
    functions: *const usize,
    pub(super) private: [u8; 32],
}

/// A `MLKEM768_public_key`, with room to spare.
#[repr(C, align(64))]
pub(super) struct MlkemKey([u8; 8192]);

pub(super) type DoHandshake = unsafe extern "C" fn(NonNull<Object>) -> c_int;
type SslSign = unsafe extern "C" fn(*mut SslHandshake, *mut u8, *mut usize, usize, u16, Span) -> c_int;
type GetKey = unsafe extern "C" fn(*const PrivateKey) -> *const u8;
type Allocate = unsafe extern "C" fn(usize) -> *mut u8;
type Free = unsafe extern "C" fn(*mut u8);
type AddBytes = unsafe extern "C" fn(*mut Out, *const u8, usize) -> c_int;
type ParseMlkem = unsafe extern "C" fn(*mut MlkemKey, *mut Span) -> c_int;
type EncapMlkem = unsafe extern "C" fn(*mut u8, *mut u8, *const MlkemKey);

/// What is known of the build in this process.
pub(super) struct Boring {
    sign: SslSign,
    credential: usize,
    get_rsa: GetKey,
    get_ec: GetKey,
    rsa_numbers: usize,
    ec_private: usize,
    allocate: Allocate,
    free: Free,
    add_bytes: AddBytes,
    parse_mlkem: ParseMlkem,
    encap_mlkem: EncapMlkem,
    /// The functions of an `SslSocket`, from its second base on, and the place of one of them.
    callbacks: usize,
    transport_slot: usize,
    /// Functions of a connection, with their places.
    io_handle: (usize, usize),
    set_readable: (usize, usize),
    read_disabled: usize,
    /// The functions of sockets that are the kernel's.
    sockets: usize,
    fd_slot: usize,
}

static BORING: OnceLock<Boring> = OnceLock::new();

/// # Safety
///
/// `tls` is of the build that `program` is, and verified.
pub(super) unsafe fn prepare(program: &Program, tls: &Tls) {
    let boring = &tls.boring;
    let at = |address: u64| program.at(address);
    let entry = |index: usize| {
        let function = &tls.connection.functions[index];
        (function.slot, at(function.code[0].address))
    };
    // SAFETY: the prototypes that `hasten_envoy_builds` names.
    let prepared = unsafe {
        Boring {
            sign: transmute::<usize, SslSign>(at(boring.sign.address)),
            credential: boring.credential as usize,
            get_rsa: transmute::<usize, GetKey>(at(boring.get_rsa.address)),
            get_ec: transmute::<usize, GetKey>(at(boring.get_ec.address)),
            rsa_numbers: boring.rsa_numbers as usize,
            ec_private: boring.ec_private as usize,
            allocate: transmute::<usize, Allocate>(at(boring.allocate)),
            free: transmute::<usize, Free>(at(boring.free)),
            add_bytes: transmute::<usize, AddBytes>(at(boring.add_bytes)),
            parse_mlkem: transmute::<usize, ParseMlkem>(at(boring.parse_mlkem)),
            encap_mlkem: transmute::<usize, EncapMlkem>(at(boring.encap_mlkem)),
            callbacks: at(tls.callbacks.table),
            transport_slot: tls.callbacks.functions[callbacks::TRANSPORT].slot,
            io_handle: entry(connection::IO_HANDLE),
            set_readable: entry(connection::SET_READABLE),
            read_disabled: tls.read_disabled as usize,
            sockets: at(tls.io_handle.table),
            fd_slot: tls.io_handle.functions[io_handle::FD].slot,
        }
    };
    let _ = BORING.set(prepared);
}

pub(super) fn boring() -> &'static Boring {
    BORING.get().expect("`prepare` comes before the first handshake")
}

/// What a connection is for its transport socket: `TransportSocketCallbacks`, of a class whose functions are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transport(NonNull<Object>);

impl Transport {
    /// # Safety
    ///
    /// `handshaker` is one, and its connection is alive as long as the result is used.
    pub(super) unsafe fn of(handshaker: *const Handshaker) -> Option<Self> {
        let boring = boring();
        // SAFETY: as the contract says; the function has this prototype.
        unsafe {
            let callbacks = (*handshaker).callbacks;
            if callbacks.as_ref().table() != boring.callbacks {
                // Its end would go unnoticed.
                return None;
            }
            let transport: unsafe extern "C" fn(NonNull<Object>) -> Option<NonNull<Object>> =
                transmute(callbacks.as_ref().function(boring.transport_slot));
            let transport = Self(transport(callbacks)?);
            let is_known = [boring.io_handle, boring.set_readable]
                .iter()
                .all(|(slot, function)| transport.0.as_ref().function(*slot) == *function);
            is_known.then_some(transport)
        }
    }

    /// Whether a read that the connection asks for takes place.
    ///
    /// # Safety
    ///
    /// The connection is alive.
    pub(super) unsafe fn reads(self) -> bool {
        // SAFETY: the connection has `setTransportSocketIsReadable` of the known build, which looks here.
        unsafe { self.0.byte_add(boring().read_disabled).cast::<c_int>().read() == 0 }
    }

    /// Has the connection call its transport socket to read, in the next turn of the event loop.
    ///
    /// # Safety
    ///
    /// The connection is alive, and this is its thread.
    pub(super) unsafe fn set_readable(self) {
        // SAFETY: as the contract says; the function has this prototype.
        unsafe {
            let set: unsafe extern "C" fn(NonNull<Object>) = transmute(boring().set_readable.1);
            set(self.0);
        }
    }

    /// The connection's descriptor, if its socket is the kernel's.
    ///
    /// # Safety
    ///
    /// The connection is alive.
    pub(super) unsafe fn descriptor(self) -> Option<c_int> {
        let boring = boring();
        // SAFETY: as the contract says; the functions have these prototypes.
        unsafe {
            let io_handle: unsafe extern "C" fn(NonNull<Object>) -> NonNull<Object> =
                transmute(boring.io_handle.1);
            let handle = io_handle(self.0);
            if handle.as_ref().table() != boring.sockets {
                return None;
            }
            let fd: unsafe extern "C" fn(NonNull<Object>) -> c_int =
                transmute(handle.as_ref().function(boring.fd_slot));
            Some(fd(handle)).filter(|fd| *fd >= 0)
        }
    }
}

impl Boring {
    /// # Safety
    ///
    /// `ssl` is a live `SSL`.
    pub(super) unsafe fn handshake_of(&self, ssl: *mut Ssl) -> Option<NonNull<SslHandshake>> {
        // SAFETY: as the code of `SSL_do_handshake` has it.
        unsafe {
            let state = ssl.byte_add(SSL_STATE).cast::<*mut c_void>().read();
            NonNull::new(state.byte_add(STATE_HANDSHAKE).cast::<*mut SslHandshake>().read())
        }
    }

    /// # Safety
    ///
    /// `handshake` is a live `SSL_HANDSHAKE`.
    pub(super) unsafe fn credential_of(
        &self,
        handshake: NonNull<SslHandshake>,
    ) -> Option<NonNull<Credential>> {
        // SAFETY: as the code of `ssl_private_key_sign` has it.
        unsafe { handshake.byte_add(self.credential).cast::<Option<NonNull<Credential>>>().read() }
    }

    /// BoringSSL's own signature.
    ///
    /// # Safety
    ///
    /// As for `ssl_private_key_sign`: the handshake has a credential with a private key, and nobody's method.
    pub(super) unsafe fn sign(
        &self,
        handshake: NonNull<SslHandshake>,
        (out, length, room): (*mut u8, *mut usize, usize),
        algorithm: u16,
        message: &[u8],
    ) -> c_int {
        let message = Span { bytes: message.as_ptr(), length: message.len() };
        // SAFETY: as the contract says.
        unsafe { (self.sign)(handshake.as_ptr(), out, length, room, algorithm, message) }
    }

    /// The numbers of an RSA key: n, e, d, p, q, d mod (p - 1), d mod (q - 1), 1 / q mod p; little-endian.
    ///
    /// # Safety
    ///
    /// `key` is a live RSA key, and stays alive and as it is while the result is used.
    pub(super) unsafe fn rsa_numbers<'a>(&self, key: *const PrivateKey) -> Option<[&'a [u8]; 8]> {
        // SAFETY: as the contract says; what signs with it reads these numbers.
        unsafe {
            let rsa = NonNull::new((self.get_rsa)(key).cast_mut())?;
            let numbers = rsa.byte_add(self.rsa_numbers).cast::<[*const Number; 8]>().read();
            let [n, e, d, p, q, dp, dq, qinv] = numbers.map(|number| bytes(number));
            Some([n?, e?, d?, p?, q?, dp?, dq?, qinv?])
        }
    }

    /// The private number of an EC key, little-endian.
    ///
    /// # Safety
    ///
    /// As [`rsa_numbers`](Self::rsa_numbers), for an EC key.
    pub(super) unsafe fn ec_private<'a>(&self, key: *const PrivateKey) -> Option<&'a [u8]> {
        // SAFETY: as the contract says; what signs with it reads this number.
        unsafe {
            let ec = NonNull::new((self.get_ec)(key).cast_mut())?;
            bytes(ec.byte_add(self.ec_private).cast::<*const Number>().read())
        }
    }

    /// Adds bytes to what a handshake sends.
    ///
    /// # Safety
    ///
    /// `out` is a live `CBB`.
    pub(super) unsafe fn add(&self, out: *mut Out, bytes: &[u8]) -> bool {
        // SAFETY: as the contract says.
        unsafe { (self.add_bytes)(out, bytes.as_ptr(), bytes.len()) != 0 }
    }

    /// Replaces what an array has.
    ///
    /// # Safety
    ///
    /// `array` is an `Array<uint8_t>` that nobody else uses.
    pub(super) unsafe fn replace(&self, array: *mut Array, bytes: &[u8]) -> bool {
        // SAFETY: the memory has as many bytes; the old memory is the array's, or null.
        unsafe {
            let memory = (self.allocate)(bytes.len());
            if memory.is_null() {
                return false;
            }
            memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            (self.free)((*array).bytes);
            array.write(Array { bytes: memory, length: bytes.len() });
            true
        }
    }

    /// Encapsulates a secret for a peer's key of ML-KEM-768; `None` if it is no such key.
    pub(super) fn encap(
        &self,
        key: &[u8],
        ciphertext: &mut [u8; CIPHERTEXT],
        secret: &mut [u8; 32],
    ) -> Option<()> {
        let mut parsed = core::mem::MaybeUninit::<MlkemKey>::uninit();
        let mut key = Span { bytes: key.as_ptr(), length: key.len() };
        // SAFETY: the prototypes; `encap` follows only if the key was written.
        unsafe {
            if (self.parse_mlkem)(parsed.as_mut_ptr(), &raw mut key) == 0 || key.length != 0 {
                return None;
            }
            (self.encap_mlkem)(ciphertext.as_mut_ptr(), secret.as_mut_ptr(), parsed.as_ptr());
        }
        Some(())
    }
}

/// Bytes of what ML-KEM-768 sends.
pub(super) const CIPHERTEXT: usize = 1088;

/// # Safety
///
/// `number` is null or a number that stays as it is while the result is used.
unsafe fn bytes<'a>(number: *const Number) -> Option<&'a [u8]> {
    /// More than any number of a key that is used here.
    const MOST: usize = 1024;
    // SAFETY: as the contract says: `width` words of eight bytes.
    unsafe {
        let number = number.as_ref()?;
        let length = usize::try_from(number.width).ok()?.checked_mul(8)?;
        let is_sound = !number.words.is_null() && (1..=MOST).contains(&length) && number.is_negative == 0;
        is_sound.then(|| core::slice::from_raw_parts(number.words, length))
    }
}
