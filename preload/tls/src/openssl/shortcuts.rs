//! What is done in place of OpenSSL's frameworks, and whether this OpenSSL allows it.
//!
//! Setting up an EVP_PKEY_CTX costs OpenSSL more than the batched operation itself. Where libssl asks for one whose
//! operation the engine will do, it gets a stand-in: a real, inert EVP_PKEY_CTX, recognised by its address in the few
//! functions that libssl then calls. This and the other shortcuts rely on the order in which libssl calls libcrypto, which
//! no header promises. So each is tried out with the libraries of the process before it is used (`trial.rs`); one that
//! fails is left to OpenSSL, and so is everything in another library context, with property queries, or with providers
//! loaded at run time.

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, Ordering::Relaxed};

use super::abi::*;
use super::hybrid::Hybrid;
use super::{digest, encapsulation, providers, trial};
use crate::config;
use crate::hooks::original;
use crate::runtime::Runtime;
use crate::stack;

/// The side of a handshake: libssl's calls differ, so each has its own trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Server,
    Client,
}

impl Role {
    /// Shortcuts that this side has a use for. A client's handshake is never suspended, so its signature, which few have, gains
    /// nothing; and it sends no tickets.
    const fn has(self, shortcut: Shortcut) -> bool {
        match self {
            Self::Server => true,
            Self::Client => !matches!(shortcut, Shortcut::Signature | Shortcut::Tickets | Shortcut::Random),
        }
    }
}

/// Functions that are replaced together, because they rely on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortcut {
    /// The server's signature, without a context of OpenSSL's.
    Signature,
    /// The key exchange, likewise.
    Exchange,
    /// The hybrid key exchange. Needs [`Self::Exchange`].
    Encapsulation,
    /// The key derivation functions of TLS.
    KeySchedule,
    /// The MAC of Finished.
    Finished,
    /// Algorithms that are fetched by name.
    Fetch,
    /// Session tickets in one write, and encoded once.
    Tickets,
    /// Random bytes that the peer will see.
    Random,
}

impl Shortcut {
    pub(crate) const ALL: [Self; 8] = [
        Self::Signature,
        Self::Exchange,
        Self::Encapsulation,
        Self::KeySchedule,
        Self::Finished,
        Self::Fetch,
        Self::Tickets,
        Self::Random,
    ];

    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// What OpenSSL does itself if the shortcut fails its trial.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Signature => "signatures",
            Self::Exchange => "key exchange",
            Self::Encapsulation => "hybrid key exchange",
            Self::KeySchedule => "key schedule",
            Self::Finished => "Finished",
            Self::Fetch => "fetches",
            Self::Tickets => "tickets",
            Self::Random => "random bytes",
        }
    }
}

/// A set of shortcuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortcuts(u16);

impl Shortcuts {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const fn only(shortcut: Shortcut) -> Self {
        Self::NONE.with(shortcut)
    }

    pub(crate) const fn has(self, shortcut: Shortcut) -> bool {
        self.0 & shortcut.bit() != 0
    }

    #[must_use]
    pub(crate) const fn with(self, shortcut: Shortcut) -> Self {
        Self(self.0 | shortcut.bit())
    }
}

/// The shortcuts in use by each side, and the marks below.
static ON: [AtomicU16; 2] = [const { AtomicU16::new(0) }; 2];
/// A thread tries shortcuts out.
const ON_TRIAL: u16 = 1 << 14;
/// There will be no shortcuts in this process.
const STOPPED: u16 = 1 << 15;

/// Handshakes until each side's trial; 0 once it is over.
static UNTIL_TRIAL: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

thread_local! {
    /// Those that this thread tries out.
    static TRIED: Cell<(Role, Shortcuts)> = const { Cell::new((Role::Server, Shortcuts::NONE)) };
}

static STAND_INS: [AtomicPtr<EvpPkeyCtx>; Stand::ALL.len()] =
    [const { AtomicPtr::new(null_mut()) }; Stand::ALL.len()];

/// The operation a stand-in stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// A signature with the server's key.
    Sign,
    /// Parameters or a key pair for a group.
    Generate,
    /// A shared secret with an ephemeral key of ours.
    Derive,
    /// A shared secret for the client's key.
    Encapsulate,
    /// A shared secret in the server's answer to a key of ours.
    Decapsulate,
}

impl Stand {
    const ALL: [Self; 5] = [Self::Sign, Self::Generate, Self::Derive, Self::Encapsulate, Self::Decapsulate];
}

/// Whether a shortcut is in use on this side of handshakes, in this thread.
#[inline]
pub(crate) fn is_on(role: Role, shortcut: Shortcut) -> bool {
    let on = ON[role as usize].load(Relaxed);
    on & shortcut.bit() != 0 || (on & ON_TRIAL != 0 && is_tried(role, shortcut))
}

#[cold]
fn is_tried(role: Role, shortcut: Shortcut) -> bool {
    let (side, tried) = TRIED.get();
    side == role && tried.has(shortcut)
}

/// This thread's runtime, if it is inside a handshake function whose side uses the shortcut.
#[inline]
pub(crate) fn using(shortcut: Shortcut) -> Option<&'static Runtime> {
    let runtime = Runtime::existing()?;
    is_on(runtime.role()?, shortcut).then_some(runtime)
}

/// Turns all shortcuts off: OpenSSL was reconfigured at run time, so their assumptions may no longer hold.
pub(crate) fn stop() {
    ON.iter().for_each(|on| on.store(STOPPED, Relaxed));
}

/// Checks the assumptions behind shortcuts, and prepares the trials, which the handshake of this number on each side begins
/// with.
pub(crate) fn init(first: u32) {
    // SAFETY: OpenSSL's own functions on its default context; stand-ins are never freed.
    unsafe {
        let ready = config::get().shortcuts
            && digest::is_available()
            && EVP_default_properties_is_fips_enabled
                .find()
                .is_some_and(|is_enabled| is_enabled(null_mut()) == 0);
        if !ready {
            return;
        }
        for stand_in in &STAND_INS {
            let inert = original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), c"X25519".as_ptr(), null());
            if inert.is_null() {
                return;
            }
            stand_in.store(inert, Relaxed);
        }
    }
    UNTIL_TRIAL.iter().for_each(|until| until.store(first, Relaxed));
}

/// Counts a handshake that begins, and tries the shortcuts out when it is time. No handshake of this thread is running.
#[inline]
pub(crate) fn before_handshake(runtime: &Runtime, role: Role) {
    // Of the handshakes under trial and what OpenSSL does in them. A coroutine's stack is sized for the program's own.
    const STACK: usize = 48 << 10;
    let until = &UNTIL_TRIAL[role as usize];
    let countdown = || until.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
    if until.load(Relaxed) > 0 && stack::has_room(STACK) && countdown() == Ok(1) {
        prove(runtime, role);
    }
}

#[cold]
fn prove(runtime: &Runtime, role: Role) {
    let on = &ON[role as usize];
    on.fetch_or(ON_TRIAL, Relaxed);
    let possible = possible(role);
    let proven = trial::run(runtime, role, possible);
    let failed =
        Shortcut::ALL.into_iter().filter(|shortcut| possible.has(*shortcut) && !proven.has(*shortcut));
    let failed: Vec<_> = failed.map(Shortcut::name).collect();
    if !failed.is_empty() {
        let whose = if role == Role::Client { " in clients" } else { "" };
        let note = format!("left to OpenSSL{whose}, because its own trial failed: {}", failed.join(", "));
        hasten_telemetry::page().set_note(&note);
    }
    // Unless the program has meanwhile reconfigured OpenSSL.
    let _ = on.compare_exchange(ON_TRIAL, proven.0, Relaxed, Relaxed);
}

/// Those that this side, this CPU and this OpenSSL have a use for.
fn possible(role: Role) -> Shortcuts {
    let has_hybrid = encapsulation::engine().is_some()
        && Hybrid::ALL.into_iter().all(|hybrid| providers::has_default_hybrid(hybrid.name()));
    let is_possible = |shortcut: &Shortcut| *shortcut != Shortcut::Encapsulation || has_hybrid;
    let possible = Shortcut::ALL.into_iter().filter(|shortcut| role.has(*shortcut) && is_possible(shortcut));
    possible.fold(Shortcuts::NONE, Shortcuts::with)
}

/// Uses these shortcuts, and no others, in what `body` does on this thread. Nests in [`prove`] only.
pub(crate) fn trying<R>(role: Role, shortcuts: Shortcuts, body: impl FnOnce() -> R) -> R {
    TRIED.set((role, shortcuts));
    let result = body();
    TRIED.set((role, Shortcuts::NONE));
    result
}

pub(crate) fn stand_in(stand: Stand) -> *mut EvpPkeyCtx {
    STAND_INS[stand as usize].load(Relaxed)
}

#[inline]
pub(crate) fn is_stand_in(context: *const EvpPkeyCtx, stand: Stand) -> bool {
    !context.is_null() && core::ptr::eq(context, stand_in(stand))
}

/// This thread's runtime, if the context is a stand-in of that kind.
#[inline]
pub(crate) fn behind(context: *const EvpPkeyCtx, stand: Stand) -> Option<&'static Runtime> {
    Runtime::existing().filter(|_| is_stand_in(context, stand))
}

/// Does not free stand-ins; frees everything else.
///
/// # Safety
///
/// As for `EVP_PKEY_CTX_free`: `context` is null, a stand-in, or an EVP_PKEY_CTX that the caller owns and gives up.
pub(crate) unsafe fn context_free(original: unsafe extern "C" fn(*mut EvpPkeyCtx), context: *mut EvpPkeyCtx) {
    if Stand::ALL.into_iter().any(|stand| is_stand_in(context, stand)) {
        super::exchange::context_freed(context);
    } else {
        // SAFETY: the caller's own context.
        unsafe { original(context) }
    }
}

macro_rules! reconfigures {
    ($($(#[$contract:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $(
        /// # Safety
        ///
        $(#[$contract])*
        pub(crate) unsafe fn $name(original: unsafe extern "C" fn($($ty),*) -> $ret, $($arg: $ty),*) -> $ret {
            stop();
            // SAFETY: the program's call.
            let result = unsafe { original($($arg),*) };
            crate::start::reconfigured();
            result
        })*
    };
}

reconfigures! {
    /// As for `OSSL_PROVIDER_load`: `libctx` is null or a live library context, and `name` is a C string.
    provider_load(libctx: *mut LibCtx, name: *const c_char) -> *mut Provider;
    /// As for `OSSL_PROVIDER_try_load`: `libctx` is null or a live library context, and `name` is a C string.
    provider_try_load(libctx: *mut LibCtx, name: *const c_char, retain_fallbacks: c_int) -> *mut Provider;
    /// As for `OSSL_PROVIDER_unload`: `provider` is null or a provider that the caller has loaded and gives up.
    provider_unload(provider: *mut Provider) -> c_int;
    /// As for `EVP_set_default_properties`: `libctx` is null or a live library context, and `properties` is null or a C string.
    set_default_properties(libctx: *mut LibCtx, properties: *const c_char) -> c_int;
    /// As for `RAND_set_rand_method`: `method` is null or a RAND_METHOD that is never freed.
    set_random(method: *const c_void) -> c_int;
    /// As for `EVP_default_properties_enable_fips`: `libctx` is null or a live library context.
    enable_fips(libctx: *mut LibCtx, enable: c_int) -> c_int;
}
