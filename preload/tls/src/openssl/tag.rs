//! The data that an EVP_PKEY of ours carries in its ex_data.

use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::null_mut;

use hasten_crypto::{Group, MlKemPair, wipe};

use super::abi::*;
use super::ex_data::ExIndex;
use super::hybrid::Hybrid;
use crate::hooks::original;

static EX_INDEX: ExIndex = ExIndex::of(EX_INDEX_EVP_PKEY);

/// A kind of key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Classical(Group),
    /// The client's key.
    Hybrid(Hybrid),
}

impl Kind {
    pub(super) const COUNT: usize = Group::COUNT + Hybrid::ALL.len();

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Classical(group) => group.index(),
            Self::Hybrid(hybrid) => Group::COUNT + hybrid as usize,
        }
    }

    /// The key type in OpenSSL.
    pub(super) const fn key_type(self) -> &'static CStr {
        match self {
            Self::Classical(group) => group.key_type(),
            Self::Hybrid(hybrid) => hybrid.name(),
        }
    }

    /// The name of a curve, which its key type does not tell.
    pub(super) fn curve_name(self) -> Option<&'static CStr> {
        match self {
            Self::Classical(group) => group.curve().map(|_| group.openssl_name()),
            Self::Hybrid(_) => None,
        }
    }

    pub(super) fn group(self) -> Option<Group> {
        match self {
            Self::Classical(group) => Some(group),
            Self::Hybrid(_) => None,
        }
    }
}

/// The data that an EVP_PKEY of ours carries in its ex_data.
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Another reference was taken: from then on it belongs to OpenSSL alone.
    pub(super) escaped: Cell<bool>,
    /// The public key, as libssl set it or will send it.
    pub(super) public: Cell<[u8; Group::MAX_PUBLIC]>,
    pub(super) public_len: Cell<usize>,
    /// Our private key; zero if there is none, or if OpenSSL has it.
    pub(super) private: Cell<[u8; Group::MAX_PRIVATE]>,
    pub(super) has_private: Cell<bool>,
    /// The client's share of a hybrid exchange, which OpenSSL does not have; empty if there is none.
    pub(super) share: RefCell<Vec<u8>>,
    /// The part of that share that OpenSSL does have, or null.
    pub(super) encapsulation_key: Cell<*mut EvpPkey>,
    /// Our key pair, if we are the client: its other half is the private key above.
    pub(super) ml_kem: RefCell<Option<MlKemPair>>,
}

pub(crate) fn init() -> bool {
    EX_INDEX.reserve(Some(forget))
}

/// # Safety
///
/// As for a `CRYPTO_EX_free`: `tag` is null or the [`Tag`] that `make` attached to the EVP_PKEY, and nothing uses it
/// any more.
unsafe extern "C" fn forget(
    _: *mut c_void,
    tag: *mut c_void,
    _: *mut ExData,
    _: c_int,
    _: c_long,
    _: *mut c_void,
) {
    if !tag.is_null() {
        // SAFETY: made by `make`, and its EVP_PKEY is being freed.
        let tag = unsafe { Box::from_raw(tag.cast::<Tag>()) };
        tag.wipe();
    }
}

impl Tag {
    fn new(kind: Kind) -> Tag {
        Tag {
            kind,
            escaped: Cell::new(false),
            public: Cell::new([0; Group::MAX_PUBLIC]),
            public_len: Cell::new(0),
            private: Cell::new([0; Group::MAX_PRIVATE]),
            has_private: Cell::new(false),
            share: RefCell::default(),
            encapsulation_key: Cell::new(null_mut()),
            ml_kem: RefCell::default(),
        }
    }

    /// # Safety
    ///
    /// `pkey` is null or an EVP_PKEY that stays alive while the result is used. No other thread sets its ex_data
    /// meanwhile, or uses it at all if it is ours and has not escaped.
    pub(super) unsafe fn of<'a>(pkey: *const EvpPkey) -> Option<&'a Tag> {
        let index = EX_INDEX.get();
        if pkey.is_null() || index < 0 {
            return None;
        }
        // SAFETY: the caller's EVP_PKEY is alive; the index is ours.
        unsafe { EVP_PKEY_get_ex_data.get()(pkey, index).cast::<Tag>().as_ref() }
    }

    /// Makes an EVP_PKEY ours; false if OpenSSL has no room for it.
    ///
    /// # Safety
    ///
    /// `pkey` is alive, has no tag, and is the caller's alone.
    pub(super) unsafe fn attach(kind: Kind, pkey: *mut EvpPkey) -> bool {
        let tag = Box::into_raw(Box::new(Tag::new(kind)));
        // SAFETY: the EVP_PKEY is alive; the tag is ours until it is attached.
        unsafe {
            let attached = EVP_PKEY_set_ex_data.get()(pkey, EX_INDEX.get(), tag.cast()) == 1;
            if !attached {
                drop(Box::from_raw(tag));
            }
            attached
        }
    }

    pub(super) fn set_private(&self, bytes: &[u8]) {
        let mut private = [0; Group::MAX_PRIVATE];
        private[..bytes.len()].copy_from_slice(bytes);
        self.private.set(private);
        self.has_private.set(true);
        wipe(&mut private);
    }

    /// A longer key belongs to no group of ours, and is not stored.
    pub(super) fn set_public(&self, bytes: &[u8]) {
        let mut public = [0; Group::MAX_PUBLIC];
        if let Some(to) = public.get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
            self.public.set(public);
            self.public_len.set(bytes.len());
        }
    }

    /// Whether it is our key of a hybrid exchange.
    pub(super) fn has_ml_kem(&self) -> bool {
        matches!(self.kind, Kind::Hybrid(_)) && self.ml_kem.borrow().is_some()
    }

    pub(super) fn drop_encapsulation_key(&self) {
        let key = self.encapsulation_key.replace(null_mut());
        if !key.is_null() {
            // SAFETY: the reference is ours.
            unsafe { original::EVP_PKEY_free.get()(key) };
        }
    }

    pub(super) fn wipe(&self) {
        self.drop_encapsulation_key();
        self.ml_kem.take();
        if self.has_private.replace(false) {
            // SAFETY: the cell's bytes, which are not borrowed.
            wipe(unsafe { &mut *self.private.as_ptr() });
        }
    }
}
