//! The server's signature. BoringSSL asks a method of the credential for it, if there is one, and the method may answer
//! later. For the time between the key exchange and the signature, a credential that has a key of its own has the method
//! here; if the engine has no answer, BoringSSL signs with the key, as it would have.

use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::rc::Rc;

use hasten_batch::{MAX_SIGNATURE, Request, Verdict};
use hasten_crypto::encoding::pkcs1::DigestKind;
use hasten_crypto::encoding::{pkcs1, pss};
use hasten_crypto::{Hash, MAX_OUTPUT, RsaKey};
use hasten_guard::clock::now;
use hasten_telemetry::slot;

use super::boring::{Credential, FAILURE, Handshaker, Method, RETRY, SUCCESS, Ssl, SslHandshake, boring};
use super::connection::{Connection, Signing};
use super::host::{Sha256, Sha384, Sha512};
use super::keys::{Key, Kind};
use super::worker::{Worker, is_refused, is_signed_alone};

static METHOD: Method = Method { sign, decrypt, complete };

/// A signature's algorithm in TLS.
#[derive(Clone, Copy)]
struct Algorithm {
    kind: Kind,
    digest: DigestKind,
    is_pss: bool,
}

impl Algorithm {
    fn from_number(number: u16) -> Option<Self> {
        use DigestKind::{Sha256, Sha384, Sha512};
        let (kind, digest, is_pss) = match number {
            0x0401 => (Kind::Rsa, Sha256, false),
            0x0501 => (Kind::Rsa, Sha384, false),
            0x0601 => (Kind::Rsa, Sha512, false),
            0x0804 => (Kind::Rsa, Sha256, true),
            0x0805 => (Kind::Rsa, Sha384, true),
            0x0806 => (Kind::Rsa, Sha512, true),
            0x0403 => (Kind::Ec, Sha256, false),
            0x0503 => (Kind::Ec, Sha384, false),
            0x0603 => (Kind::Ec, Sha512, false),
            _ => return None,
        };
        Some(Self { kind, digest, is_pss })
    }

    fn hash(self, message: &[u8]) -> [u8; MAX_OUTPUT] {
        match self.digest {
            DigestKind::Sha384 => hash::<Sha384>(message),
            DigestKind::Sha512 => hash::<Sha512>(message),
            _ => hash::<Sha256>(message),
        }
    }

    /// What the private operation is applied to.
    fn pad(self, worker: &Worker, hash: &[u8], key: &RsaKey, padded: &mut [u8]) -> Option<()> {
        if !self.is_pss {
            return pkcs1::pad(self.digest, hash, padded);
        }
        let mut salt = [0; MAX_OUTPUT];
        let salt = &mut salt[..hash.len()];
        if !worker.batch.engine.random(salt) {
            return None;
        }
        let bits = key.size().bits();
        match self.digest {
            DigestKind::Sha384 => pss::pad::<Sha384>(hash, salt, bits, padded),
            DigestKind::Sha512 => pss::pad::<Sha512>(hash, salt, bits, padded),
            _ => pss::pad::<Sha256>(hash, salt, bits, padded),
        }
    }
}

fn hash<H: Hash>(message: &[u8]) -> [u8; MAX_OUTPUT] {
    let mut out = [0; MAX_OUTPUT];
    let mut state = H::new();
    state.update(message);
    state.finish(&mut out[..H::OUTPUT]);
    out
}

/// Where a signature goes.
#[derive(Clone, Copy)]
struct Place {
    out: *mut u8,
    length: *mut usize,
    room: usize,
}

impl Place {
    /// # Safety
    ///
    /// It is that of a call of BoringSSL that has not returned, and nothing else uses it meanwhile.
    unsafe fn bytes<'a>(self) -> &'a mut [u8] {
        // SAFETY: as the contract says.
        unsafe { core::slice::from_raw_parts_mut(self.out, self.room) }
    }

    /// # Safety
    ///
    /// As [`bytes`](Self::bytes).
    unsafe fn filled(self, length: usize) -> c_int {
        // SAFETY: as the contract says.
        unsafe { self.length.write(length) };
        SUCCESS
    }
}

/// The running handshake is about to ask for a signature.
///
/// # Safety
///
/// Called from where BoringSSL makes a key for an exchange.
pub(super) unsafe fn stand_by() {
    let Some(worker) = Worker::existing() else { return };
    let Some(current) = worker.current() else { return };
    // SAFETY: the handshake's function runs, on this thread, and a credential that is changed is this connection's own.
    unsafe {
        let Some((_, credential)) = credential_of(current.as_ref().ssl) else { return };
        let is_free = {
            let credential = credential.as_ref();
            credential.is_own() && !credential.private.is_null() && credential.method.is_null()
        };
        let private = NonNull::new(credential.as_ref().private);
        if is_free && (worker.may_wait(current).is_some() || private.is_some_and(|key| worker.may_sign(key)))
        {
            (*credential.as_ptr()).method = &raw const METHOD;
        }
    }
}

/// Whether a handshake has chosen what it signs with.
///
/// # Safety
///
/// `ssl` is alive.
pub(super) unsafe fn has_credential(ssl: *mut Ssl) -> bool {
    // SAFETY: as the contract says.
    unsafe { credential_of(ssl) }.is_some()
}

/// # Safety
///
/// `ssl` is alive.
unsafe fn credential_of(ssl: *mut Ssl) -> Option<(NonNull<SslHandshake>, NonNull<Credential>)> {
    // SAFETY: as the contract says.
    unsafe {
        let handshake = boring().handshake_of(ssl)?;
        Some((handshake, boring().credential_of(handshake)?))
    }
}

/// # Safety
///
/// As for `SSL_PRIVATE_KEY_METHOD::sign`: `ssl` is in a handshake whose credential has this method.
unsafe extern "C" fn sign(
    ssl: *mut Ssl,
    out: *mut u8,
    length: *mut usize,
    room: usize,
    algorithm: u16,
    message: *const u8,
    message_length: usize,
) -> c_int {
    let place = Place { out, length, room };
    // SAFETY: as the contract says.
    unsafe {
        let message = core::slice::from_raw_parts(message, message_length);
        let worker = Worker::get();
        let asked = worker.current_of(ssl).and_then(|current| ask(worker, current, algorithm, message));
        match asked {
            Some(Asked::Queued) => RETRY,
            Some(Asked::Answered) => complete(ssl, out, length, room),
            None => sign_alone(worker, ssl, place, algorithm, message),
        }
    }
}

enum Asked {
    Queued,
    Answered,
}

/// Queues a signature, if the engine has the key.
///
/// # Safety
///
/// The handshake's function runs, and its credential has a private key of its own.
unsafe fn ask(
    worker: &Worker,
    current: NonNull<Handshaker>,
    algorithm: u16,
    message: &[u8],
) -> Option<Asked> {
    // SAFETY: as the contract says; the key is alive as long as its credential.
    unsafe {
        let handshaker = current.as_ref();
        let known = Algorithm::from_number(algorithm)?;
        let (_, credential) = credential_of(handshaker.ssl)?;
        let private = NonNull::new(credential.as_ref().private)?;
        let transport = worker.may_wait(current)?;
        let key = worker.keys.borrow_mut().find(private, known.kind)?;
        let digest = known.hash(message);
        let digest = &digest[..known.digest.output_len()];
        let mut padded = [0; MAX_SIGNATURE];
        let request = match &*key {
            Key::Rsa(key) if !worker.batch.engine.may_batch(key.size().sign()) => return None,
            Key::Rsa(key) => {
                let padded = &mut padded[..key.size().bytes()];
                known.pad(worker, digest, key, padded)?;
                Request::Rsa(key, padded)
            }
            Key::Ec(key) => Request::Ecdsa(key, digest),
            Key::Refused(reason) => {
                slot().bypass(*reason);
                return None;
            }
        };
        let connection = worker.obtain(handshaker.callbacks)?;
        // What was prepared for the key exchange was used, or is of no use.
        worker.drop_exchange(connection);
        let message = message.to_vec();
        // The operation refers to the key, so that stays with the connection.
        connection.signing.replace(Some(Signing { algorithm, message, key: Rc::clone(&key) }));
        Some(match worker.submit(connection, &request, transport) {
            true => Asked::Answered,
            false => Asked::Queued,
        })
    }
}

/// # Safety
///
/// As for `SSL_PRIVATE_KEY_METHOD::complete`: [`sign`] has asked to be called again for this.
unsafe extern "C" fn complete(ssl: *mut Ssl, out: *mut u8, length: *mut usize, room: usize) -> c_int {
    let place = Place { out, length, room };
    // SAFETY: as the contract says.
    unsafe {
        let worker = Worker::get();
        let Some(current) = worker.current_of(ssl) else { return FAILURE };
        let Some(connection) = worker.find(current.as_ref().callbacks) else { return FAILURE };
        if connection.is_queued() {
            return RETRY;
        }
        let Some(signing) = connection.signing.take() else { return FAILURE };
        match take(connection, &signing, place.bytes()) {
            Ok(written) => {
                leave(ssl);
                place.filled(written)
            }
            Err(Verdict::Bypass(_)) => sign_alone(worker, ssl, place, signing.algorithm, &signing.message),
            Err(_) => let_sign(worker, ssl, place, signing.algorithm, &signing.message),
        }
    }
}

/// The length of a signature that was queued, and that is in `out` now.
fn take(connection: &Connection, signing: &Signing, out: &mut [u8]) -> Result<usize, Verdict> {
    let written = match &*signing.key {
        Key::Rsa(key) => key.size().bytes(),
        // Its length is in the verdict.
        _ => out.len(),
    };
    let verdict = connection.take(out.get_mut(..written).ok_or(Verdict::Failed)?);
    if is_refused(verdict) {
        return Err(verdict);
    }
    Ok(if let Verdict::DoneWith(length) = verdict { length } else { written })
}

/// Signs at once, or has BoringSSL sign.
///
/// # Safety
///
/// As [`sign`].
unsafe fn sign_alone(worker: &Worker, ssl: *mut Ssl, place: Place, algorithm: u16, message: &[u8]) -> c_int {
    // SAFETY: as the contract says.
    unsafe {
        match try_alone(worker, ssl, place.bytes(), algorithm, message) {
            Some(written) => {
                leave(ssl);
                place.filled(written)
            }
            None => let_sign(worker, ssl, place, algorithm, message),
        }
    }
}

/// The length of a signature that an engine has made at once.
///
/// # Safety
///
/// As [`sign`].
unsafe fn try_alone(
    worker: &Worker,
    ssl: *mut Ssl,
    out: &mut [u8],
    algorithm: u16,
    message: &[u8],
) -> Option<usize> {
    let known = Algorithm::from_number(algorithm)?;
    // SAFETY: as the contract says: the credential has a private key of its own, of the algorithm's kind.
    let key = unsafe {
        let (_, credential) = credential_of(ssl)?;
        worker.keys.borrow_mut().find(NonNull::new(credential.as_ref().private)?, known.kind)?
    };
    let digest = known.hash(message);
    let digest = &digest[..known.digest.output_len()];
    match &*key {
        Key::Rsa(key) => {
            let (mut padded, written) = ([0; MAX_SIGNATURE], key.size().bytes());
            let padded = &mut padded[..written];
            known.pad(worker, digest, key, padded)?;
            worker.batch.engine.rsa(key, padded, out.get_mut(..written)?).then_some(written)
        }
        Key::Ec(key) if is_signed_alone(key.curve()) => worker.batch.engine.ecdsa(key, digest)?.to_der(out),
        _ => None,
    }
}

/// # Safety
///
/// As for `SSL_PRIVATE_KEY_METHOD::decrypt`, which BoringSSL calls for key exchanges by RSA. Those make no key of the
/// server's, so the method is not there.
unsafe extern "C" fn decrypt(
    _: *mut Ssl,
    _: *mut u8,
    _: *mut usize,
    _: usize,
    _: *const u8,
    _: usize,
) -> c_int {
    FAILURE
}

/// Gives the credential back to its own key.
///
/// # Safety
///
/// `ssl` is in a handshake.
unsafe fn leave(ssl: *mut Ssl) -> Option<NonNull<SslHandshake>> {
    // SAFETY: as the contract says.
    unsafe {
        let (handshake, credential) = credential_of(ssl)?;
        let method = &raw mut (*credential.as_ptr()).method;
        if ptr::eq(*method, &raw const METHOD) {
            *method = ptr::null();
        }
        Some(handshake)
    }
}

/// Has BoringSSL sign.
///
/// # Safety
///
/// As [`sign`].
unsafe fn let_sign(worker: &Worker, ssl: *mut Ssl, place: Place, algorithm: u16, message: &[u8]) -> c_int {
    // SAFETY: as the contract says; the method is gone.
    unsafe {
        let Some(handshake) = leave(ssl) else { return FAILURE };
        let start = now();
        let result = boring().sign(handshake, (place.out, place.length, place.room), algorithm, message);
        let took = now() - start;
        if let Some(known) = Algorithm::from_number(algorithm)
            && let Some(credential) = boring().credential_of(handshake)
            && let Some(private) = NonNull::new(credential.as_ref().private)
            && let Some(key) = worker.keys.borrow_mut().find(private, known.kind)
            && let Some(algorithm) = key.algorithm()
        {
            worker.batch.engine.original_took(algorithm, took);
        }
        result
    }
}
