//! Private keys, as the engine has them. Each thread keeps copies, and compares a copy with the key in the program before
//! each use: a key that was freed may have another in its place. A copy that was not used for a while is wiped.

use core::ptr::NonNull;
use std::rc::Rc;

use hasten_crypto::{Algorithm, Curve, EcKey, RsaKey, RsaParts, constant_time_eq, wipe};
use hasten_guard::clock::now;
use hasten_telemetry::Reason;

use super::boring::{PrivateKey, boring};

/// A key that the engine can use, or the reason why it cannot.
pub(super) enum Key {
    Rsa(Box<RsaKey>),
    Ec(EcKey),
    Refused(Reason),
}

/// What a signature is made with. Until TLS 1.3, its algorithm does not name the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rsa,
    Ec,
}

impl Key {
    /// What is measured, when the key signs.
    pub(super) fn algorithm(&self) -> Option<Algorithm> {
        match self {
            Self::Rsa(key) => Some(key.size().sign()),
            Self::Ec(key) => Some(key.curve().sign()),
            Self::Refused(_) => None,
        }
    }
}

/// The copies of a thread.
#[derive(Default)]
pub(super) struct Keys {
    entries: Vec<Entry>,
    /// When entries were last looked through for old ones.
    swept: u64,
}

struct Entry {
    address: NonNull<PrivateKey>,
    kind: Kind,
    numbers: Secret,
    used: u64,
    key: Rc<Key>,
}

/// The numbers of a key, one after the other.
struct Secret(Vec<u8>);

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// How long a copy is kept unused, in nanoseconds.
const KEPT: u64 = 60_000_000_000;

/// The most copies: a server with more keys has its other handshakes done by BoringSSL.
const MOST: usize = 256;

impl Keys {
    /// The engine's copy of a key.
    ///
    /// # Safety
    ///
    /// `address` is a live key of this kind.
    pub(super) unsafe fn find(&mut self, address: NonNull<PrivateKey>, kind: Kind) -> Option<Rc<Key>> {
        // SAFETY: as the contract says; the numbers are used before this returns.
        let numbers = unsafe { numbers(address, kind) }?;
        let time = now();
        self.sweep(time);
        let known = self.entries.iter_mut().find(|entry| entry.address == address && entry.kind == kind);
        if let Some(entry) = known {
            if !is_same(&entry.numbers.0, &numbers) {
                *entry = Entry::new(address, kind, &numbers);
            }
            entry.used = time;
            return Some(Rc::clone(&entry.key));
        }
        if self.entries.len() == MOST {
            return None;
        }
        self.entries.push(Entry::new(address, kind, &numbers));
        self.entries.last().map(|entry| Rc::clone(&entry.key))
    }

    /// What was last known at this address.
    pub(super) fn last(&self, address: NonNull<PrivateKey>) -> Option<&Key> {
        self.entries.iter().find(|entry| entry.address == address).map(|entry| &*entry.key)
    }

    /// Drops copies that were not used for long.
    pub(super) fn sweep(&mut self, time: u64) {
        if time.saturating_sub(self.swept) > KEPT / 4 {
            self.swept = time;
            self.entries.retain(|entry| time.saturating_sub(entry.used) < KEPT);
        }
    }
}

impl Entry {
    fn new(address: NonNull<PrivateKey>, kind: Kind, numbers: &[&[u8]]) -> Self {
        let mut copy = Vec::with_capacity(numbers.iter().map(|number| number.len()).sum());
        numbers.iter().for_each(|number| copy.extend_from_slice(number));
        let key = match (kind, numbers) {
            (Kind::Rsa, &[n, e, _, p, q, dp, dq, qinv]) => {
                let key = RsaKey::new(&RsaParts { n, e, p, q, dp, dq, qinv });
                key.map_or(Key::Refused(Reason::UnsupportedKey), Key::Rsa)
            }
            // Envoy takes keys of P-256, P-384 and P-521.
            (Kind::Ec, &[scalar]) => {
                let curve = Curve::ALL.into_iter().find(|curve| curve.bytes() == scalar.len());
                let key = curve.and_then(|curve| EcKey::new(curve, scalar).ok());
                key.map_or(Key::Refused(Reason::UnsupportedKey), Key::Ec)
            }
            _ => Key::Refused(Reason::UnsupportedKey),
        };
        Self { address, kind, numbers: Secret(copy), used: now(), key: Rc::new(key) }
    }
}

/// # Safety
///
/// As [`Keys::find`]; the key stays alive and as it is while the result is used.
unsafe fn numbers<'a>(address: NonNull<PrivateKey>, kind: Kind) -> Option<Vec<&'a [u8]>> {
    // SAFETY: as the contract says.
    unsafe {
        match kind {
            Kind::Rsa => boring().rsa_numbers(address.as_ptr()).map(Vec::from),
            Kind::Ec => boring().ec_private(address.as_ptr()).map(|number| vec![number]),
        }
    }
}

fn is_same(copy: &[u8], numbers: &[&[u8]]) -> bool {
    let mut rest = copy;
    let same = numbers.iter().fold(true, |same, number| {
        let Some((part, after)) = rest.split_at_checked(number.len()) else { return false };
        rest = after;
        constant_time_eq(part, number) && same
    });
    same && rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_is_compared_number_by_number() {
        let copy = b"onetwothree";
        assert!(is_same(copy, &[b"one", b"two", b"three"]));
        assert!(is_same(copy, &[b"onetwo", b"three"]), "the numbers of a key have their lengths");
        assert!(!is_same(copy, &[b"one", b"two", b"thre3"]));
        assert!(!is_same(copy, &[b"one", b"two"]) && !is_same(copy, &[b"one", b"two", b"three", b"four"]));
        assert!(!is_same(copy, &[b"one", b"two", b"three and more"]));
    }

    #[test]
    fn unusual_keys_are_refused() {
        let at = NonNull::<u8>::dangling().cast();
        let refused = |kind, numbers: &[&[u8]]| matches!(*Entry::new(at, kind, numbers).key, Key::Refused(_));
        assert!(refused(Kind::Ec, &[&[1; 72]]), "P-521");
        assert!(refused(Kind::Ec, &[&[0xff; 32]]), "beyond the order");
        assert!(!refused(Kind::Ec, &[&[1; 32]]) && !refused(Kind::Ec, &[&[1; 48]]));
        assert!(refused(Kind::Rsa, &[&[1; 256][..]; 8]));
    }

    #[test]
    fn unused_copies_are_dropped() {
        let mut keys = Keys::default();
        let mut entry = Entry::new(NonNull::<u8>::dangling().cast(), Kind::Ec, &[&[1; 32]]);
        entry.used = 0;
        keys.entries.push(entry);
        keys.sweep(KEPT / 2);
        assert_eq!(keys.entries.len(), 1);
        keys.sweep(KEPT);
        assert!(keys.entries.is_empty());
    }
}
