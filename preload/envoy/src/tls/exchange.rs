//! The key exchange: the server's key from a pool, and the shared secret from a batch, before the handshake begins.

use core::cell::Cell;
use core::ffi::c_int;
use core::mem::{MaybeUninit, transmute};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hasten_batch::Request;
use hasten_crypto::{Group, KeyPair, constant_time_eq, wipe};

use super::boring::{Array, CIPHERTEXT, Handshaker, Out, Share, Span, boring};
use super::connection::Connection;
use super::hello::{self, KEY, Offers};
use super::sign;
use super::worker::{Worker, is_refused};

/// A key pair of the server's, and the secret that it shares with a client's key.
pub(super) struct Exchange {
    pair: KeyPair,
    peer: [u8; KEY],
    secret: Option<[u8; KEY]>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(secret) = &mut self.secret {
            wipe(secret);
        }
    }
}

/// The originals.
pub(super) static GENERATE: AtomicUsize = AtomicUsize::new(0);
pub(super) static DECAP: AtomicUsize = AtomicUsize::new(0);
pub(super) static EC_GENERATE: AtomicUsize = AtomicUsize::new(0);
pub(super) static HYBRID_ENCAP: AtomicUsize = AtomicUsize::new(0);

type Generate = unsafe extern "C" fn(NonNull<Share>, *mut Out) -> bool;
type Decap = unsafe extern "C" fn(NonNull<Share>, *mut Array, *mut u8, Span) -> bool;
type Encap = unsafe extern "C" fn(NonNull<Share>, *mut Out, *mut Array, *mut u8, Span) -> bool;

/// Which of the keys that clients offer the server takes, and whether it takes any: a guess, by what it took before.
#[derive(Default)]
pub(super) struct Forecast {
    /// Secrets that were not used, less those that were.
    wasted: Cell<u32>,
    /// Hellos since then.
    skipped: Cell<u32>,
    prefers_hybrid: Cell<bool>,
}

impl Forecast {
    /// After so many in vain, only one in as many hellos is tried.
    const PATIENCE: u32 = 16;
    const ONE_IN: u32 = 256;

    fn key<'a>(&self, offers: &Offers<'a>) -> Option<&'a [u8; KEY]> {
        if self.wasted.get() >= Self::PATIENCE {
            self.skipped.set(self.skipped.get() + 1);
            if !self.skipped.get().is_multiple_of(Self::ONE_IN) {
                return None;
            }
        }
        let (first, second) = (offers.hybrid, offers.x25519);
        if self.prefers_hybrid.get() { first.or(second) } else { second.or(first) }
    }

    fn was_used(&self, is_hybrid: bool) {
        self.wasted.set(self.wasted.get() / 2);
        self.prefers_hybrid.set(is_hybrid);
    }

    fn was_wasted(&self) {
        self.wasted.set((self.wasted.get() + 1).min(2 * Self::PATIENCE));
        self.prefers_hybrid.set(!self.prefers_hybrid.get());
    }
}

impl Worker {
    /// Looks for a hello, and queues the exchange that the client offers. Returns whether the handshake has to wait.
    ///
    /// # Safety
    ///
    /// `handshaker` is alive, and this is its thread.
    pub(super) unsafe fn prepare_exchange(&self, handshaker: NonNull<Handshaker>) -> bool {
        // SAFETY: as the contract says.
        unsafe {
            // BoringSSL chooses the credential by the hello.
            if sign::has_credential(handshaker.as_ref().ssl) {
                return false;
            }
            let Some(transport) = self.may_wait(handshaker) else { return false };
            let mut hello = [MaybeUninit::uninit(); HELLO];
            let record = transport.descriptor().map_or(&[][..], |fd| peek(fd, &mut hello));
            let Some(&peer) = hello::offers(record).and_then(|offers| self.forecast.key(&offers)) else {
                return false;
            };
            let Some(pair) = self.batch.engine.key_pair(Group::X25519) else { return false };
            let Some(connection) = self.obtain(handshaker.as_ref().callbacks) else { return false };
            // Both keys are copied to where they wait.
            let mut private = [0; KEY];
            private.copy_from_slice(pair.private());
            connection.exchange.replace(Some(Exchange { pair, peer, secret: None }));
            let request = Request::Derive(Group::X25519, &private, &peer);
            let is_answered = self.submit(connection, &request, transport);
            wipe(&mut private);
            if is_answered {
                self.finish_exchange(connection);
            }
            !is_answered
        }
    }

    /// The exchange of a connection has its answer, or none.
    pub(super) fn finish_exchange(&self, connection: &Connection) {
        let mut exchange = connection.exchange.borrow_mut();
        if let Some(exchange) = exchange.as_mut() {
            let mut secret = [0; KEY];
            let verdict = connection.take(&mut secret);
            exchange.secret = (!is_refused(verdict)).then_some(secret);
            wipe(&mut secret);
        }
    }

    /// The handshake began without using what was prepared for it.
    pub(super) fn drop_exchange(&self, connection: &Connection) {
        if connection.exchange.take().is_some() {
            self.forecast.was_wasted();
        }
    }

    /// The exchange of the running handshake, if the client's key is this one; it is not used again.
    fn exchange(&self, current: NonNull<Handshaker>, peer: &[u8]) -> Option<Exchange> {
        // SAFETY: a handshaker lives as long as its function runs.
        let connection = self.find(unsafe { current.as_ref() }.callbacks)?;
        let mut exchange = connection.exchange.borrow_mut();
        exchange.take_if(|exchange| exchange.peer == peer && exchange.secret.is_some())
    }
}

/// More than a hello with a key of ML-KEM-768 has; a longer one is not looked at.
const HELLO: usize = 4096;

/// What can be read from a socket, without reading it.
fn peek(fd: c_int, into: &mut [MaybeUninit<u8>]) -> &[u8] {
    // SAFETY: memory of this length, of which the kernel has written as much as it says. errno is restored.
    unsafe {
        let error = libc::__errno_location();
        let before = *error;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let length = libc::recv(fd, into.as_mut_ptr().cast(), into.len(), flags);
        *error = before;
        core::slice::from_raw_parts(into.as_ptr().cast(), usize::try_from(length).unwrap_or(0))
    }
}

/// # Safety
///
/// As for `X25519KeyShare::Generate`.
pub(super) unsafe extern "C" fn generate(mut share: NonNull<Share>, out: *mut Out) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        sign::stand_by();
        if let Some(worker) = Worker::existing()
            && let Some(current) = worker.current()
        {
            let prepared = worker.find(current.as_ref().callbacks);
            if let Some(exchange) = prepared.and_then(|connection| connection.exchange.try_borrow().ok())
                && let Some(exchange) = &*exchange
            {
                share.as_mut().private.copy_from_slice(exchange.pair.private());
                return boring().add(out, exchange.pair.public());
            }
            if let Some(pair) = worker.batch.engine.key_pair(Group::X25519) {
                share.as_mut().private.copy_from_slice(pair.private());
                return boring().add(out, pair.public());
            }
        }
        let original: Generate = transmute(GENERATE.load(Relaxed));
        original(share, out)
    }
}

/// # Safety
///
/// As for `X25519KeyShare::Decap`.
pub(super) unsafe extern "C" fn decap(
    share: NonNull<Share>,
    secret: *mut Array,
    alert: *mut u8,
    peer: Span,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(worker) = Worker::existing()
            && let Some(current) = worker.current()
            && peer.length == KEY
            && let Some(exchange) = worker.exchange(current, core::slice::from_raw_parts(peer.bytes, KEY))
            && let Some(known) = &exchange.secret
            && constant_time_eq(&share.as_ref().private, exchange.pair.private())
        {
            worker.forecast.was_used(false);
            if boring().replace(secret, known) {
                return true;
            }
        }
        let original: Decap = transmute(DECAP.load(Relaxed));
        original(share, secret, alert, peer)
    }
}

/// # Safety
///
/// As for `ECKeyShare::Generate`.
pub(super) unsafe extern "C" fn ec_generate(share: NonNull<Share>, out: *mut Out) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        sign::stand_by();
        let original: Generate = transmute(EC_GENERATE.load(Relaxed));
        original(share, out)
    }
}

/// Bytes of a client's key for both.
const HYBRID_KEY: usize = 1184 + KEY;

/// # Safety
///
/// As for `X25519MLKEM768KeyShare::Encap`.
pub(super) unsafe extern "C" fn hybrid_encap(
    share: NonNull<Share>,
    out: *mut Out,
    secret: *mut Array,
    alert: *mut u8,
    peer: Span,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        sign::stand_by();
        if let Some(worker) = Worker::existing()
            && let Some(current) = worker.current()
            && peer.length == HYBRID_KEY
            && let (mlkem, x25519) =
                core::slice::from_raw_parts(peer.bytes, HYBRID_KEY).split_at(HYBRID_KEY - KEY)
            && let Some(exchange) = worker.exchange(current, x25519)
            && let Some(known) = &exchange.secret
        {
            worker.forecast.was_used(true);
            let mut ciphertext = [0; CIPHERTEXT];
            let mut secrets = [[0; 32], *known];
            let done = boring().encap(mlkem, &mut ciphertext, &mut secrets[0]).is_some()
                && boring().replace(secret, secrets.as_flattened())
                && boring().add(out, &ciphertext)
                && boring().add(out, exchange.pair.public());
            wipe(secrets.as_flattened_mut());
            if done {
                return true;
            }
        }
        let original: Encap = transmute(HYBRID_ENCAP.load(Relaxed));
        original(share, out, secret, alert, peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Offers<'_> = Offers { x25519: Some(&[1; KEY]), hybrid: Some(&[2; KEY]) };

    #[test]
    fn what_the_server_took_is_prepared_again() {
        let forecast = Forecast::default();
        assert_eq!(forecast.key(&BOTH), BOTH.x25519);
        forecast.was_wasted();
        assert_eq!(forecast.key(&BOTH), BOTH.hybrid);
        forecast.was_used(true);
        assert_eq!(forecast.key(&BOTH), BOTH.hybrid);
        assert_eq!(forecast.key(&Offers { hybrid: None, ..BOTH }), BOTH.x25519, "there is no other");
        forecast.was_used(false);
        assert_eq!(forecast.key(&BOTH), BOTH.x25519);
    }

    #[test]
    fn server_that_takes_none_is_tried_now_and_then() {
        let forecast = Forecast::default();
        (0..Forecast::PATIENCE).for_each(|_| forecast.was_wasted());
        let tried = |count: u32| (0..count).filter(|_| forecast.key(&BOTH).is_some()).count();
        assert_eq!(tried(4 * Forecast::ONE_IN), 4);
        (0..2).for_each(|_| forecast.was_used(false));
        assert_eq!(tried(10), 10, "it takes them again");
    }
}
