//! What an SSL carries of ours: its suspended handshake, or else marks.

use core::ptr::without_provenance_mut;
use std::sync::atomic::Ordering::Relaxed;

use super::{Handshake, State};
use crate::openssl::ex_data::ExIndex;
use crate::openssl::*;
use crate::runtime::{Runtime, SUSPENDED};

/// The handshake of an SSL, if it is suspended and not running.
///
/// # Safety
///
/// `ssl` is null, or a live SSL whose ex_data no other thread of the server sets meanwhile.
#[inline]
pub(crate) unsafe fn suspended<'a>(ssl: *const Ssl) -> Option<&'a Handshake> {
    if SUSPENDED.load(Relaxed) == 0 || ssl.is_null() {
        return None;
    }
    let index = EX_INDEX.get();
    if index < 0 {
        return None;
    }
    // SAFETY: the index is ours: the value is null, marks, or a handshake, and handshakes are never freed.
    unsafe {
        let attached = SSL_get_ex_data.get()(ssl, index).cast::<Handshake>();
        let handshake = if attached.addr() <= MARKS { None } else { attached.as_ref() }?;
        let is_its = handshake.ssl().cast_const() == ssl && handshake.is_of_this_process();
        let is_here = Runtime::existing().is_some_and(|here| core::ptr::eq(here, handshake.runtime));
        // Only its own thread can see it running: another thread sees it only while it is suspended.
        (is_its && !(is_here && handshake.state.get() == State::Running)).then_some(handshake)
    }
}

/// The SSL has more than one owner, and is never suspended. Like the other marks, it is stored in place of a handshake.
pub(super) const SHARED: usize = 1;

/// Its handshake has failed, and was counted.
pub(super) const FAILED: usize = 2;

const MARKS: usize = SHARED | FAILED;

/// # Safety
///
/// As for [`suspended`], and `ssl` is not null.
pub(super) unsafe fn is_marked(ssl: *const Ssl, mark: usize) -> bool {
    // SAFETY: as above.
    unsafe { marks(ssl) & mark != 0 }
}

/// Adds a mark to an SSL whose handshake is not suspended.
///
/// # Safety
///
/// As for [`attach`].
pub(super) unsafe fn mark(ssl: *mut Ssl, mark: usize) {
    // SAFETY: as above. Without room for it, the SSL stays unmarked.
    unsafe { attach(ssl, without_provenance_mut(marks(ssl) | mark)) };
}

/// Removes a mark from an SSL whose handshake is not suspended.
///
/// # Safety
///
/// As for [`attach`].
pub(super) unsafe fn unmark(ssl: *mut Ssl, mark: usize) {
    // SAFETY: as above.
    unsafe {
        if is_marked(ssl, mark) {
            attach(ssl, without_provenance_mut(marks(ssl) & !mark));
        }
    }
}

/// The marks of an SSL; none if its handshake is suspended.
///
/// # Safety
///
/// As for [`suspended`], and `ssl` is not null.
unsafe fn marks(ssl: *const Ssl) -> usize {
    // SAFETY: as above.
    let attached = unsafe { SSL_get_ex_data.get()(ssl, EX_INDEX.get()) }.addr();
    if attached <= MARKS { attached } else { 0 }
}

/// Notes that an SSL has got another owner.
///
/// # Safety
///
/// `ssl` is null, or a live SSL whose ex_data no other thread gets or sets meanwhile.
pub(crate) unsafe fn share(ssl: *mut Ssl) {
    // SAFETY: as `suspended`.
    unsafe {
        if EX_INDEX.get() < 0 {
            return;
        }
        match suspended(ssl) {
            Some(handshake) => _ = handshake.references.fetch_add(1, Relaxed),
            None => mark(ssl, SHARED),
        }
    }
}

static EX_INDEX: ExIndex = ExIndex::of(EX_INDEX_SSL);

/// Stores or clears the suspended handshake of an SSL.
///
/// # Safety
///
/// `ssl` is a live SSL whose ex_data no other thread gets or sets meanwhile. `handshake` is null, [`MARKS`] in
/// its place, or a handshake of that SSL.
pub(crate) unsafe fn attach(ssl: *mut Ssl, handshake: *mut Handshake) -> bool {
    // SAFETY: the index is registered for SSLs without callbacks.
    unsafe { SSL_set_ex_data.get()(ssl, EX_INDEX.get(), handshake.cast()) == 1 }
}

/// Reserves the slot in which an SSL carries its suspended handshake.
pub(crate) fn reserve_ex_data() -> bool {
    EX_INDEX.reserve(None)
}
