//! Private keys that the engine can use, found by their EVP_PKEY.
//!
//! libssl signs with an EVP_PKEY; the engine needs its numbers. They are read once, kept next to the EVP_PKEY, and
//! wiped when it is freed, which an ex_data entry with a free callback reports. The table is read without locks,
//! because every handshake of every thread looks here.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hasten_crypto::{Curve, EcKey, RsaKey, RsaParts, wipe};
use hasten_telemetry::Reason;

use super::abi::*;
use super::digest::Digest;
use super::ex_data::ExIndex;

/// The number of keys that a process can have accelerated; the table is then a quarter full.
const MAX_KEYS: usize = 16 << 10;
const SLOTS: usize = 4 * MAX_KEYS;

/// Data about an EVP_PKEY.
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The digests that this key signs with according to libcrypto, one bit each.
    signs_with: AtomicU32,
}

/// A key the engine can use, or the reason why it cannot.
pub(crate) enum Key {
    Rsa(Box<RsaKey>),
    Ec(EcKey),
    Refused(Reason),
}

impl Entry {
    pub(crate) fn is_known_to_sign_with(&self, digest: Digest) -> bool {
        self.signs_with.load(Ordering::Relaxed) & 1 << digest as u32 != 0
    }

    pub(crate) fn signs_with(&self, digest: Digest) {
        self.signs_with.fetch_or(1 << digest as u32, Ordering::Relaxed);
    }
}

/// Lazily committed, like all zeroed statics. A slot's entry may be read only while its EVP_PKEY is kept alive.
static TABLE: [Slot; SLOTS] =
    [const { Slot { pkey: AtomicPtr::new(null_mut()), entry: AtomicPtr::new(null_mut()) } }; SLOTS];
pub(crate) static WRITER: Mutex<Count> = Mutex::new(0);
static EX_INDEX: ExIndex = ExIndex::of(EX_INDEX_EVP_PKEY);

/// The number of keys in the table.
pub(crate) type Count = usize;

struct Slot {
    /// Null: never used, a search ends here. `REMOVED`: free again, a search continues.
    pkey: AtomicPtr<EvpPkey>,
    entry: AtomicPtr<Entry>,
}

const REMOVED: *mut EvpPkey = core::ptr::without_provenance_mut(1);

/// Registers for the freeing of keys; false if libcrypto has no room.
pub(crate) fn init() -> bool {
    EX_INDEX.reserve(Some(forget))
}

/// The data about an EVP_PKEY, which is read at the first call.
///
/// # Safety
///
/// The EVP_PKEY is alive and stays so while the result is used: an SSL that
/// signs with it holds a reference.
pub(crate) unsafe fn find<'a>(pkey: *mut EvpPkey) -> Option<&'a Entry> {
    if pkey.is_null() || EX_INDEX.get() < 0 {
        return None;
    }
    for slot in probe(pkey) {
        let seen = slot.pkey.load(Ordering::Acquire);
        if seen == pkey {
            // SAFETY: the entry is freed only with its EVP_PKEY, which the caller keeps alive.
            return unsafe { slot.entry.load(Ordering::Relaxed).as_ref() };
        }
        if seen.is_null() {
            break;
        }
    }
    // SAFETY: as the contract says.
    unsafe { insert(pkey) }
}

fn probe(pkey: *mut EvpPkey) -> impl Iterator<Item = &'static Slot> {
    let home = home(pkey);
    (0..SLOTS).map(move |i| &TABLE[(home + i) % SLOTS])
}

/// Where the search for a key begins.
fn home(pkey: *mut EvpPkey) -> usize {
    // EVP_PKEYs are heap blocks: the low bits carry no information.
    ((pkey as usize >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % SLOTS
}

/// Frees a slot; called by one thread at a time. If a search would end in the slot behind it, it may as well end here.
/// Otherwise, after months of keys that live for one handshake, the slots used once would lead every search through the
/// whole table.
fn vacate(mut at: usize) {
    TABLE[at].pkey.store(REMOVED, Ordering::Release);
    TABLE[at].entry.store(null_mut(), Ordering::Relaxed);
    let pkey = |at: usize| &TABLE[at % SLOTS].pkey;
    while pkey(at).load(Ordering::Relaxed) == REMOVED && pkey(at + 1).load(Ordering::Relaxed).is_null() {
        pkey(at).store(null_mut(), Ordering::Release);
        at = (at + SLOTS - 1) % SLOTS;
    }
}

/// # Safety
///
/// As [`find`], and `pkey` is not null. No other thread gets or sets ex_data of the EVP_PKEY meanwhile, except in this
/// function.
#[cold]
unsafe fn insert<'a>(pkey: *mut EvpPkey) -> Option<&'a Entry> {
    let mut count = WRITER.lock().ok()?;
    let mut free = None;
    for slot in probe(pkey) {
        let seen = slot.pkey.load(Ordering::Relaxed);
        if seen == pkey {
            // SAFETY: as `find`; another thread was faster.
            return unsafe { slot.entry.load(Ordering::Relaxed).as_ref() };
        }
        if seen.is_null() || seen == REMOVED {
            free = free.or(Some(slot));
        }
        if seen.is_null() {
            break;
        }
    }
    let slot = free.filter(|_| *count < MAX_KEYS)?;
    // SAFETY: as the contract says; the lock is held.
    let entry = unsafe { slot.fill(pkey) }?;
    *count += 1;
    Some(entry)
}

impl Slot {
    /// Reads a key and stores it in this slot.
    ///
    /// # Safety
    ///
    /// As [`insert`]; the slot is free, and the caller holds [`WRITER`].
    unsafe fn fill<'a>(&self, pkey: *mut EvpPkey) -> Option<&'a Entry> {
        // SAFETY: the caller keeps the EVP_PKEY alive; the ex_data index is ours.
        unsafe {
            let entry = Box::into_raw(Box::new(Entry { key: read(pkey), signs_with: AtomicU32::new(0) }));
            if EVP_PKEY_set_ex_data.get()(pkey, EX_INDEX.get(), entry.cast()) != 1 {
                drop(Box::from_raw(entry));
                return None;
            }
            self.entry.store(entry, Ordering::Relaxed);
            self.pkey.store(pkey, Ordering::Release);
            Some(&*entry)
        }
    }
}

/// Called when libcrypto frees an EVP_PKEY: wipes its secrets.
///
/// # Safety
///
/// As for a `CRYPTO_EX_free`: `entry` is null or the [`Entry`] that `insert` attached to `pkey`, and nothing uses it
/// any more.
unsafe extern "C" fn forget(
    pkey: *mut c_void,
    entry: *mut c_void,
    _: *mut ExData,
    _: c_int,
    _: c_long,
    _: *mut c_void,
) {
    if entry.is_null() {
        return;
    }
    let Ok(mut count) = WRITER.lock() else { return };
    let pkey = pkey.cast::<EvpPkey>();
    if let Some(distance) = probe(pkey)
        .take_while(|slot| !slot.pkey.load(Ordering::Relaxed).is_null())
        .position(|slot| slot.pkey.load(Ordering::Relaxed) == pkey)
    {
        vacate((home(pkey) + distance) % SLOTS);
        *count -= 1;
    }
    // SAFETY: made by `insert`, and with its EVP_PKEY gone it has no users. Keys wipe themselves.
    drop(unsafe { Box::from_raw(entry.cast::<Entry>()) });
}

/// Reads a key, if that is allowed and the engine can use it.
///
/// # Safety
///
/// `pkey` is a live EVP_PKEY.
unsafe fn read(pkey: *mut EvpPkey) -> Key {
    // SAFETY: the EVP_PKEY is alive. A number that the key lacks is not an error of the server's.
    unsafe {
        if !is_plain(pkey) {
            return Key::Refused(Reason::NotExportable);
        }
        ERR_set_mark.get()();
        let key = match EVP_PKEY_get_base_id.get()(pkey) {
            EVP_PKEY_RSA => read_rsa(pkey),
            EVP_PKEY_EC => read_ec(pkey),
            _ => Key::Refused(Reason::UnsupportedKey),
        };
        ERR_pop_to_mark.get()();
        key
    }
}

/// Whether the key is in OpenSSL's own software, as opposed to an HSM, an engine or another provider.
///
/// # Safety
///
/// `pkey` is a live EVP_PKEY.
unsafe fn is_plain(pkey: *mut EvpPkey) -> bool {
    // SAFETY: the EVP_PKEY is alive; names are C strings.
    unsafe {
        let provider = EVP_PKEY_get0_provider.get()(pkey);
        !provider.is_null() && CStr::from_ptr(OSSL_PROVIDER_get0_name.get()(provider)) == c"default"
    }
}

/// # Safety
///
/// `pkey` is a live EVP_PKEY.
unsafe fn read_rsa(pkey: *mut EvpPkey) -> Key {
    const NAMES: [&CStr; 7] =
        [c"n", c"e", c"rsa-factor1", c"rsa-factor2", c"rsa-exponent1", c"rsa-exponent2", c"rsa-coefficient1"];
    const MODULUS: usize = 512;
    // SAFETY: the EVP_PKEY is alive. A third prime would be "rsa-factor3".
    unsafe {
        let mut third = Number::<MODULUS>::ZERO;
        if third.read(pkey, c"rsa-factor3") {
            return Key::Refused(Reason::UnsupportedKey);
        }
        let mut numbers = [Number::<MODULUS>::ZERO; NAMES.len()];
        for (number, name) in numbers.iter_mut().zip(NAMES) {
            if !number.read(pkey, name) {
                return Key::Refused(Reason::NotExportable);
            }
        }
        let [n, e, p, q, dp, dq, qinv] = numbers.each_ref().map(|number| &number.0[..]);
        let key = RsaKey::new(&RsaParts { n, e, p, q, dp, dq, qinv });
        key.map_or(Key::Refused(Reason::UnsupportedKey), Key::Rsa)
    }
}

/// # Safety
///
/// `pkey` is a live EVP_PKEY.
unsafe fn read_ec(pkey: *mut EvpPkey) -> Key {
    let mut name = [0 as c_char; 32];
    let mut len = 0;
    // SAFETY: the EVP_PKEY is alive; the buffer has the stated length.
    unsafe {
        if EVP_PKEY_get_group_name.get()(pkey, name.as_mut_ptr(), name.len(), &raw mut len) != 1 {
            return Key::Refused(Reason::UnsupportedKey);
        }
        let Some(curve) = Curve::from_openssl(CStr::from_ptr(name.as_ptr())) else {
            return Key::Refused(Reason::UnsupportedKey);
        };
        let mut scalar = Number::<48>::ZERO;
        if !scalar.read(pkey, c"priv") {
            return Key::Refused(Reason::NotExportable);
        }
        EcKey::new(curve, &scalar.0[..curve.bytes()]).map_or(Key::Refused(Reason::UnsupportedKey), Key::Ec)
    }
}

/// A number of a key, little-endian, wiped on drop.
struct Number<const N: usize>([u8; N]);

impl<const N: usize> Number<N> {
    const ZERO: Self = Self([0; N]);

    /// # Safety
    ///
    /// `pkey` is a live EVP_PKEY.
    unsafe fn read(&mut self, pkey: *mut EvpPkey, name: &CStr) -> bool {
        let mut number = null_mut();
        // SAFETY: the EVP_PKEY is alive; the number is ours, and freeing it wipes it.
        unsafe {
            if EVP_PKEY_get_bn_param.get()(pkey, name.as_ptr(), &raw mut number) != 1 {
                return false;
            }
            let fits = BN_bn2lebinpad.get()(number, self.0.as_mut_ptr(), N as c_int) == N as c_int;
            BN_clear_free.get()(number);
            fits
        }
    }
}

impl<const N: usize> Drop for Number<N> {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupy(at: usize) {
        TABLE[at].pkey.store(core::ptr::without_provenance_mut(64), Ordering::Relaxed);
    }

    fn is_end(at: usize) -> bool {
        TABLE[at].pkey.load(Ordering::Relaxed).is_null()
    }

    #[test]
    fn a_search_ends_as_early_as_it_may() {
        // Around the end of the table: 2 slots before it, 2 after it.
        let run = [SLOTS - 2, SLOTS - 1, 0, 1];
        run.into_iter().for_each(occupy);
        vacate(SLOTS - 1);
        vacate(0);
        assert!(!is_end(SLOTS - 1) && !is_end(0), "a search for the last of the run passes them");
        vacate(1);
        assert_eq!(run.map(is_end), [false, true, true, true]);
        vacate(SLOTS - 2);
        assert_eq!(run.map(is_end), [true; 4]);
    }
}
