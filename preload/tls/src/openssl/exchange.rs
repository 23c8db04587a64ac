//! Ephemeral key exchange: our key pair from the pool, the shared secret from a batch.
//!
//! libssl keeps an EVP_PKEY for each side. Creating one costs OpenSSL as much as a batched operation, so they are
//! recycled: when libssl frees one of ours, it goes back to the thread's stock, and its next use only sets another
//! public key. The private half stays in the EVP_PKEY's ex_data until the EVP_PKEY is freed, and is wiped then. OpenSSL
//! gets it before anything but libssl's own derivation can see the EVP_PKEY, so that every other user finds it
//! complete.

use core::cell::{Cell, Ref, RefCell};
use core::ffi::{CStr, c_char, c_int};
use core::ptr::{null, null_mut};

use hasten_batch::{Request, Verdict};
use hasten_crypto::{Curve, Group, wipe};
use hasten_guard::clock::now;
use hasten_telemetry::slot;

use super::abi::*;
use super::hybrid::Hybrid;
use super::shortcuts::{self, Role, Shortcut, Stand, is_stand_in};
pub(crate) use super::tag::init;
use super::tag::{Kind, Tag};
use super::{decapsulation, encapsulation, import};
use crate::hooks::original;
use crate::runtime::Runtime;

/// EVP_PKEYs that a thread keeps for each group, at some 700 bytes each. libssl holds two per connection for its
/// lifetime, so many come and go at once.
const STOCK: usize = 512;

/// The context libssl is using, behind a stand-in. One of each kind per thread: nothing suspends a handshake while
/// libssl sets one up.
#[derive(Default)]
pub(crate) struct Exchange {
    generate: Cell<Generate>,
    own: Cell<Option<*mut EvpPkey>>,
    peer: Cell<Option<Peer>>,
    /// The client's key that a stand-in encapsulates to, or decapsulates with.
    recipient: Cell<Option<*mut EvpPkey>>,
    stock: RefCell<[Vec<*mut EvpPkey>; Kind::COUNT]>,
}

/// The other side's key, and its encoding.
#[derive(Clone, Copy)]
struct Peer {
    pkey: *mut EvpPkey,
    public: [u8; Group::MAX_PUBLIC],
    public_len: usize,
}

#[derive(Clone, Copy, Default)]
enum Generate {
    #[default]
    Nothing,
    /// "EC", with the curve not named yet; `key_pair` tells a key pair from parameters.
    AnyCurve {
        key_pair: bool,
    },
    Known(Kind),
    /// A group that is not ours: OpenSSL's own context does the work.
    Real(*mut EvpPkeyCtx),
}

impl Exchange {
    /// Drops the set-up of an earlier call of the server.
    pub(crate) fn clear(&self) {
        self.generate.set(Generate::Nothing);
        self.own.set(None);
        self.peer.set(None);
        self.recipient.set(None);
    }

    /// Whether OpenSSL refuses the peer's key. It accepts the point at infinity, which is one byte, as a key, but
    /// refuses to derive with it: here it does so itself, with its own errors.
    ///
    /// # Safety
    ///
    /// The key of `peer` and the key noted in `own` are alive.
    unsafe fn refuses(&self, peer: &Peer) -> bool {
        let mut nothing = [0; Group::MAX_PUBLIC];
        // SAFETY: the caller keeps both keys alive.
        peer.public_len <= 1
            && unsafe {
                let own = self.own.get().and_then(|own| Tag::of(own));
                !own.and_then(|own| Some((own, own.kind.group()?))).is_some_and(|(own, group)| {
                    derive_with_original(own, group, peer.pkey, &mut nothing[..group.shared_len()])
                })
            }
    }

    /// An EVP_PKEY of ours without a key in it.
    pub(super) fn take(&self, kind: Kind) -> Option<*mut EvpPkey> {
        let recycled = self.stock.borrow_mut()[kind.index()].pop();
        recycled.or_else(|| make(kind))
    }

    /// An EVP_PKEY of ours with a new key pair from the pool.
    fn take_key_pair(&self, runtime: &Runtime, group: Group) -> Option<*mut EvpPkey> {
        let pair = runtime.batch.engine.key_pair(group)?;
        let pkey = self.take(Kind::Classical(group))?;
        let public = pair.public();
        // SAFETY: the EVP_PKEY is ours alone; the public key is `public.len()` bytes.
        unsafe {
            let set = original::EVP_PKEY_set1_encoded_public_key.get()(pkey, public.as_ptr(), public.len());
            let Some(tag) = Tag::of(pkey).filter(|_| set == 1) else {
                original::EVP_PKEY_free.get()(pkey);
                return None;
            };
            tag.set_public(public);
            tag.set_private(pair.private());
        }
        Some(pkey)
    }
}

impl Exchange {
    /// An EVP_PKEY of ours that stands for a client's new key pair, of which OpenSSL has nothing.
    fn take_hybrid_pair(&self, runtime: &Runtime) -> Option<*mut EvpPkey> {
        let pair = decapsulation::key_pair(runtime)?;
        let pkey = self.take(Kind::Hybrid(Hybrid::X25519MlKem768))?;
        // SAFETY: the EVP_PKEY is ours alone.
        match unsafe { Tag::of(pkey) } {
            Some(tag) => pair.attach(tag),
            None => {
                // SAFETY: as above.
                unsafe { original::EVP_PKEY_free.get()(pkey) };
                return None;
            }
        }
        Some(pkey)
    }
}

/// An EVP_PKEY with the parameters of a group, tagged as ours.
fn make(kind: Kind) -> Option<*mut EvpPkey> {
    let pkey = make_parameters(kind)?;
    // SAFETY: the EVP_PKEY is ours alone.
    unsafe {
        if !Tag::attach(kind, pkey) {
            original::EVP_PKEY_free.get()(pkey);
            return None;
        }
    }
    Some(pkey)
}

/// An EVP_PKEY with the parameters of a group.
fn make_parameters(kind: Kind) -> Option<*mut EvpPkey> {
    let name = kind.curve_name();
    // SAFETY: OpenSSL's own functions in their documented order; everything created is freed or kept.
    unsafe {
        let context =
            original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), kind.key_type().as_ptr(), null());
        let mut pkey = null_mut();
        let made = !context.is_null()
            && original::EVP_PKEY_paramgen_init.get()(context) > 0
            && name
                .is_none_or(|name| original::EVP_PKEY_CTX_set_group_name.get()(context, name.as_ptr()) > 0)
            && original::EVP_PKEY_paramgen.get()(context, &raw mut pkey) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        made.then_some(pkey)
    }
}

/// # Safety
///
/// As for `EVP_PKEY_free`: `pkey` is null or an EVP_PKEY whose reference the caller gives up. For one of ours that has
/// not escaped, that reference is the only one, and no other thread uses it.
pub(crate) unsafe fn pkey_free(original: unsafe extern "C" fn(*mut EvpPkey), pkey: *mut EvpPkey) {
    // SAFETY: the caller gives up its reference; for a tagged key that never escaped it was the only one.
    unsafe {
        // An escaped key has other owners; it is wiped with the last reference.
        if let Some(tag) = Tag::of(pkey).filter(|tag| !tag.escaped.get()) {
            tag.wipe();
            tag.public_len.set(0);
            tag.share.take();
            let is_used =
                [Role::Server, Role::Client].iter().any(|role| shortcuts::is_on(*role, Shortcut::Exchange));
            if is_used && let Some(runtime) = Runtime::existing() {
                let mut stock = runtime.exchange.stock.borrow_mut();
                let stock = &mut stock[tag.kind.index()];
                if stock.len() < STOCK {
                    return stock.push(pkey);
                }
            }
        }
        original(pkey);
    }
}

/// # Safety
///
/// As for `EVP_PKEY_up_ref`: `pkey` is alive. No other thread uses it meanwhile if it is one of ours that has not
/// escaped.
pub(crate) unsafe fn pkey_up_ref(
    original: unsafe extern "C" fn(*mut EvpPkey) -> c_int,
    pkey: *mut EvpPkey,
) -> c_int {
    // SAFETY: the caller's EVP_PKEY is alive.
    unsafe {
        if let Some(tag) = Tag::of(pkey) {
            complete(pkey, tag);
            tag.escaped.set(true);
        }
        original(pkey)
    }
}

type NewFromName = unsafe extern "C" fn(*mut LibCtx, *const c_char, *const c_char) -> *mut EvpPkeyCtx;

/// # Safety
///
/// As for `EVP_PKEY_CTX_new_from_name`: `libctx` is null or a live library context, and `name` and `properties` are
/// null or C strings. The caller is libssl, which passes a stand-in only to the hooked functions.
pub(crate) unsafe fn context_from_name(
    original: NewFromName,
    libctx: *mut LibCtx,
    name: *const c_char,
    properties: *const c_char,
) -> *mut EvpPkeyCtx {
    // SAFETY: libssl's arguments, forwarded; the name is a C string.
    unsafe {
        let plain = libctx.is_null() && properties.is_null() && !name.is_null();
        if plain && let Some(runtime) = shortcuts::using(Shortcut::Exchange) {
            let key_type = CStr::from_ptr(name);
            let generate = if key_type == Curve::KEY_TYPE {
                Generate::AnyCurve { key_pair: false }
            } else if key_type == Group::X25519.key_type() {
                Generate::Known(Kind::Classical(Group::X25519))
            } else if let Some(hybrid) = Hybrid::from_name(key_type)
                && shortcuts::using(Shortcut::Encapsulation).is_some()
            {
                Generate::Known(Kind::Hybrid(hybrid))
            } else {
                return original(libctx, name, properties);
            };
            runtime.exchange.generate.set(generate);
            return shortcuts::stand_in(Stand::Generate);
        }
        original(libctx, name, properties)
    }
}

type NewFromKey = unsafe extern "C" fn(*mut LibCtx, *mut EvpPkey, *const c_char) -> *mut EvpPkeyCtx;

/// Handles a key of ours, which shows what the context is for: with a private half it is for deriving or decapsulating a
/// secret, with a client's share for encapsulating one, and otherwise (the peer's) it is the template for ours.
///
/// # Safety
///
/// As for `EVP_PKEY_CTX_new_from_pkey`: `pkey` is null or alive, `libctx` is null or a live library context, and
/// `properties` is null or a C string. The caller is libssl, which keeps `pkey` alive as long as the context: a
/// stand-in holds no reference.
pub(crate) unsafe fn context_from_key(
    original: NewFromKey,
    libctx: *mut LibCtx,
    pkey: *mut EvpPkey,
    properties: *const c_char,
) -> *mut EvpPkeyCtx {
    // SAFETY: libssl's arguments, forwarded.
    unsafe {
        // A key that others own, too, is complete, and is treated like any other.
        let Some(tag) = Tag::of(pkey).filter(|tag| !tag.escaped.get()) else {
            return original(libctx, pkey, properties);
        };
        let plain = libctx.is_null() && properties.is_null();
        match shortcuts::using(Shortcut::Exchange).filter(|_| plain) {
            Some(runtime) if tag.has_ml_kem() => {
                runtime.exchange.recipient.set(Some(pkey));
                shortcuts::stand_in(Stand::Decapsulate)
            }
            Some(runtime) if tag.has_private.get() => {
                runtime.exchange.own.set(Some(pkey));
                runtime.exchange.peer.set(None);
                shortcuts::stand_in(Stand::Derive)
            }
            Some(runtime) if !tag.share.borrow().is_empty() => {
                runtime.exchange.recipient.set(Some(pkey));
                shortcuts::stand_in(Stand::Encapsulate)
            }
            Some(runtime) => {
                runtime.exchange.generate.set(Generate::Known(tag.kind));
                shortcuts::stand_in(Stand::Generate)
            }
            // A handshake that continues in SSL_read, or for which the shortcuts have since been turned off.
            None => {
                complete(pkey, tag);
                original(libctx, pkey, properties)
            }
        }
    }
}

/// Hands the private half of a key of ours, or a client's share, over to OpenSSL.
///
/// # Safety
///
/// `pkey` is alive, `tag` is attached to it, and nothing else uses either meanwhile.
unsafe fn complete(pkey: *mut EvpPkey, tag: &Tag) {
    if tag.has_ml_kem() {
        // SAFETY: the EVP_PKEY is alive and has no key yet.
        unsafe { decapsulation::complete(pkey, tag) };
        tag.share.take();
        tag.wipe();
        tag.escaped.set(true);
    }
    if !tag.share.borrow().is_empty() {
        let share = tag.share.take();
        // SAFETY: the EVP_PKEY is alive and has no key yet; the share was checked.
        unsafe { original::EVP_PKEY_set1_encoded_public_key.get()(pkey, share.as_ptr(), share.len()) };
        tag.escaped.set(true);
    }
    if let Some(group) = tag.kind.group().filter(|_| tag.has_private.get()) {
        let mut same = pkey;
        // SAFETY: the EVP_PKEY is alive; OpenSSL replaces the key without a private half by the new one.
        unsafe { import(tag, group, &mut same) };
        tag.wipe();
        tag.escaped.set(true);
    }
}

/// Notes that libssl has finished with a stand-in.
pub(crate) fn context_freed(context: *mut EvpPkeyCtx) {
    if let Some(runtime) = shortcuts::behind(context, Stand::Generate)
        && let Generate::Real(real) = runtime.exchange.generate.replace(Generate::Nothing)
    {
        // SAFETY: made by `real_context` for this stand-in.
        unsafe { original::EVP_PKEY_CTX_free.get()(real) }
    }
}

type OnContext = unsafe extern "C" fn(*mut EvpPkeyCtx) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_paramgen_init`: `context` is null or a live EVP_PKEY_CTX.
pub(crate) unsafe fn paramgen_init(original: OnContext, context: *mut EvpPkeyCtx) -> c_int {
    // SAFETY: libssl's call.
    if is_stand_in(context, Stand::Generate) { 1 } else { unsafe { original(context) } }
}

/// # Safety
///
/// As for `EVP_PKEY_keygen_init`: `context` is null or a live EVP_PKEY_CTX.
pub(crate) unsafe fn keygen_init(original: OnContext, context: *mut EvpPkeyCtx) -> c_int {
    if !is_stand_in(context, Stand::Generate) {
        // SAFETY: the caller's context.
        return unsafe { original(context) };
    }
    if let Some(runtime) = Runtime::existing()
        && let Generate::AnyCurve { .. } = runtime.exchange.generate.get()
    {
        runtime.exchange.generate.set(Generate::AnyCurve { key_pair: true });
    }
    1
}

/// # Safety
///
/// As for `EVP_PKEY_CTX_set_group_name`: `context` is null or a live EVP_PKEY_CTX. `name` is a C string, and not null
/// if `context` is a stand-in.
pub(crate) unsafe fn set_group_name(
    original: unsafe extern "C" fn(*mut EvpPkeyCtx, *const c_char) -> c_int,
    context: *mut EvpPkeyCtx,
    name: *const c_char,
) -> c_int {
    let Some(runtime) = shortcuts::behind(context, Stand::Generate) else {
        // SAFETY: the caller's context.
        return unsafe { original(context, name) };
    };
    let generate = &runtime.exchange.generate;
    // SAFETY: libssl's group names are C strings.
    let name_of_group = unsafe { CStr::from_ptr(name) };
    if let Generate::Known(Kind::Hybrid(_)) = generate.get() {
        // libssl has no other name for it, and OpenSSL needs none.
        return c_int::from(name_of_group.is_empty());
    }
    if let Some(group) = Group::from_openssl(name_of_group) {
        generate.set(Generate::Known(Kind::Classical(group)));
        return 1;
    }
    let Generate::AnyCurve { key_pair } = generate.get() else { return 0 };
    // SAFETY: a C string, as above.
    let Some(real) = (unsafe { real_context(key_pair, name) }) else { return 0 };
    generate.set(Generate::Real(real));
    1
}

/// The context libssl would have had, for a curve the engine does not support.
///
/// # Safety
///
/// `name` is a C string.
unsafe fn real_context(key_pair: bool, name: *const c_char) -> Option<*mut EvpPkeyCtx> {
    // SAFETY: OpenSSL's own functions in their documented order.
    unsafe {
        let context =
            original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), Curve::KEY_TYPE.as_ptr(), null());
        if context.is_null() {
            return None;
        }
        let init = if key_pair {
            original::EVP_PKEY_keygen_init.get()
        } else {
            original::EVP_PKEY_paramgen_init.get()
        };
        if init(context) > 0 && original::EVP_PKEY_CTX_set_group_name.get()(context, name) > 0 {
            return Some(context);
        }
        original::EVP_PKEY_CTX_free.get()(context);
        None
    }
}

type Generator = unsafe extern "C" fn(*mut EvpPkeyCtx, *mut *mut EvpPkey) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_paramgen`: `context` is null or a live EVP_PKEY_CTX, and `out` points to null or to a live
/// EVP_PKEY. With a stand-in it points to null: its value is overwritten, not freed.
pub(crate) unsafe fn paramgen(
    original: Generator,
    context: *mut EvpPkeyCtx,
    out: *mut *mut EvpPkey,
) -> c_int {
    // SAFETY: libssl's call.
    unsafe { generate(original, context, out, |exchange, _, kind| exchange.take(kind)) }
}

/// # Safety
///
/// As for `EVP_PKEY_keygen`, with the conditions of [`paramgen`].
pub(crate) unsafe fn keygen(original: Generator, context: *mut EvpPkeyCtx, out: *mut *mut EvpPkey) -> c_int {
    // SAFETY: libssl's call. Without a key from the pool OpenSSL makes one.
    unsafe {
        generate(original, context, out, |exchange, runtime, kind| {
            let ours = match kind {
                Kind::Classical(group) => exchange.take_key_pair(runtime, group),
                Kind::Hybrid(Hybrid::X25519MlKem768) => exchange.take_hybrid_pair(runtime),
                Kind::Hybrid(_) => None,
            };
            ours.or_else(|| original_key_pair(kind))
        })
    }
}

/// # Safety
///
/// As for `original`, which is `EVP_PKEY_paramgen` or `EVP_PKEY_keygen`, with the conditions of [`paramgen`].
unsafe fn generate(
    original: Generator,
    context: *mut EvpPkeyCtx,
    out: *mut *mut EvpPkey,
    take: impl FnOnce(&Exchange, &Runtime, Kind) -> Option<*mut EvpPkey>,
) -> c_int {
    let Some(runtime) = shortcuts::behind(context, Stand::Generate) else {
        // SAFETY: the caller's context.
        return unsafe { original(context, out) };
    };
    let pkey = match runtime.exchange.generate.get() {
        Generate::Known(kind) => take(&runtime.exchange, runtime, kind),
        // SAFETY: libssl's output variable.
        Generate::Real(real) => return unsafe { original(real, out) },
        Generate::AnyCurve { .. } | Generate::Nothing => None,
    };
    match pkey {
        Some(pkey) => {
            // SAFETY: libssl's output variable, null or an EVP_PKEY that OpenSSL would fill: libssl passes null.
            unsafe { out.write(pkey) };
            1
        }
        None => 0,
    }
}

/// A key pair made by OpenSSL, in an EVP_PKEY that is not ours.
fn original_key_pair(kind: Kind) -> Option<*mut EvpPkey> {
    let name = kind.curve_name();
    // SAFETY: OpenSSL's own functions in their documented order.
    unsafe {
        let context =
            original::EVP_PKEY_CTX_new_from_name.get()(null_mut(), kind.key_type().as_ptr(), null());
        let mut pkey = null_mut();
        let made = !context.is_null()
            && original::EVP_PKEY_keygen_init.get()(context) > 0
            && name
                .is_none_or(|name| original::EVP_PKEY_CTX_set_group_name.get()(context, name.as_ptr()) > 0)
            && original::EVP_PKEY_keygen.get()(context, &raw mut pkey) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        made.then_some(pkey)
    }
}

/// # Safety
///
/// As for `EVP_PKEY_set1_encoded_public_key`: `pkey` is null or alive, no other thread uses it meanwhile, and `public`
/// is valid for reads of `len` bytes.
pub(crate) unsafe fn set_public_key(
    original: unsafe extern "C" fn(*mut EvpPkey, *const u8, usize) -> c_int,
    pkey: *mut EvpPkey,
    public: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: libssl's call. OpenSSL checks the key; what it accepts is remembered for the engine. A client's hybrid share
    // is checked here, and OpenSSL gets it only if it has to.
    unsafe {
        let tag = Tag::of(pkey);
        if let Some((tag, Kind::Hybrid(hybrid))) = tag.map(|tag| (tag, tag.kind)) {
            let is_empty = !tag.escaped.get() && tag.share.borrow().is_empty();
            let share = core::slice::from_raw_parts(public, len);
            if is_empty && encapsulation::accept(tag, hybrid, share) {
                return 1;
            }
            // Whatever OpenSSL makes of it, the EVP_PKEY is no longer without a key.
            complete(pkey, tag);
            tag.escaped.set(true);
        }
        let result = original(pkey, public, len);
        if let Some(tag) = tag.filter(|_| result == 1) {
            tag.set_public(core::slice::from_raw_parts(public, len));
        }
        result
    }
}

/// # Safety
///
/// As for `EVP_PKEY_derive_init`: `context` is null or a live EVP_PKEY_CTX.
pub(crate) unsafe fn derive_init(original: OnContext, context: *mut EvpPkeyCtx) -> c_int {
    // SAFETY: the caller's context.
    if is_stand_in(context, Stand::Derive) { 1 } else { unsafe { original(context) } }
}

/// # Safety
///
/// As for `EVP_PKEY_derive_set_peer`: `context` is null or a live EVP_PKEY_CTX, and `peer` is a live EVP_PKEY. With a
/// stand-in, `peer` and the key that the context was made from stay alive until the secret is derived.
pub(crate) unsafe fn derive_set_peer(
    original: unsafe extern "C" fn(*mut EvpPkeyCtx, *mut EvpPkey) -> c_int,
    context: *mut EvpPkeyCtx,
    peer: *mut EvpPkey,
) -> c_int {
    if let Some(runtime) = shortcuts::behind(context, Stand::Derive) {
        // SAFETY: libssl keeps both keys alive.
        let peer = unsafe { Peer::of(peer).filter(|peer| !runtime.exchange.refuses(peer)) };
        runtime.exchange.peer.set(peer);
        return c_int::from(peer.is_some());
    }
    // SAFETY: the caller's context.
    unsafe { original(context, peer) }
}

impl Exchange {
    /// The client's key that the stand-in in use encapsulates to, or decapsulates with.
    pub(super) fn recipient(&self) -> Option<*mut EvpPkey> {
        self.recipient.get()
    }
}

/// The client's share in a key of ours.
///
/// # Safety
///
/// As [`Tag::of`].
pub(super) unsafe fn share_of<'a>(pkey: *mut EvpPkey) -> Option<Ref<'a, Vec<u8>>> {
    // SAFETY: the contract.
    let share = unsafe { Tag::of(pkey) }?.share.borrow();
    (!share.is_empty()).then_some(share)
}

type DeriveFn = unsafe extern "C" fn(*mut EvpPkeyCtx, *mut u8, *mut usize) -> c_int;

/// # Safety
///
/// As for `EVP_PKEY_derive`: `context` is null or a live EVP_PKEY_CTX, `len` is valid for reads and writes, and `out`
/// is null or valid for writes of `*len` bytes. With a stand-in, both of its keys are alive until this returns; the
/// handshake may be suspended meanwhile.
pub(crate) unsafe fn derive(
    original: DeriveFn,
    context: *mut EvpPkeyCtx,
    out: *mut u8,
    len: *mut usize,
) -> c_int {
    let Some(runtime) = shortcuts::behind(context, Stand::Derive) else {
        // SAFETY: the caller's context.
        return unsafe { original(context, out, len) };
    };
    let (Some(own), Some(peer)) = (runtime.exchange.own.get(), runtime.exchange.peer.get()) else { return 0 };
    // SAFETY: libssl keeps both keys alive during ssl_derive; the output is as long as it says.
    unsafe {
        let own = Tag::of(own).and_then(|own| Some((own, own.kind.group()?)));
        let Some((tag, group)) = own else { return 0 };
        let size = group.shared_len();
        if out.is_null() {
            *len = size;
            return 1;
        }
        if *len < size {
            return 0;
        }
        *len = size;
        let out = core::slice::from_raw_parts_mut(out, size);
        // libssl keeps its key until the SSL ends, and gives it out on request (SSL_get_tmp_key).
        c_int::from(derive_secret(runtime, tag, group, &peer, out))
    }
}

/// # Safety
///
/// The key of `peer` is alive until this returns, and nothing changes the private key of `tag`. The handshake may be
/// suspended meanwhile.
unsafe fn derive_secret(runtime: &Runtime, tag: &Tag, group: Group, peer: &Peer, out: &mut [u8]) -> bool {
    // SAFETY: the tag's bytes; nothing changes them while libssl derives with the key.
    let private = unsafe { &(&*tag.private.as_ptr())[..group.private_len()] };
    let request = Request::Derive(group, private, &peer.public[..peer.public_len]);
    match runtime.submit(&request, out) {
        Verdict::Done => true,
        Verdict::Cancelled => false,
        verdict => {
            let public = &peer.public[..peer.public_len];
            if runtime.batch.engine.derive_if_cheaper(group, private, public, out) {
                return true;
            }
            if let Verdict::Bypass(reason) = verdict {
                slot().bypass(reason);
            }
            let start = now();
            // SAFETY: both keys are alive.
            let done = unsafe { derive_with_original(tag, group, peer.pkey, out) };
            if done {
                runtime.batch.engine.original_took(group.derive(), now() - start);
            }
            done
        }
    }
}

impl Peer {
    /// The peer's key as received, or uncompressed.
    ///
    /// # Safety
    ///
    /// `pkey` is an EVP_PKEY that stays alive while the result is used, with the conditions of [`Tag::of`].
    unsafe fn of(pkey: *mut EvpPkey) -> Option<Peer> {
        // SAFETY: the caller keeps the key alive.
        unsafe {
            if let Some(tag) = Tag::of(pkey)
                && tag.public_len.get() > 0
            {
                return Some(Peer { pkey, public: tag.public.get(), public_len: tag.public_len.get() });
            }
            let (mut public, mut len) = ([0; Group::MAX_PUBLIC], 0);
            let name = c"encoded-pub-key".as_ptr();
            let read = EVP_PKEY_get_octet_string_param.get();
            let read = read(pkey, name, public.as_mut_ptr(), public.len(), &raw mut len);
            (read == 1 && len <= public.len()).then_some(Peer { pkey, public, public_len: len })
        }
    }
}

/// Does what libssl originally asked for, with a key OpenSSL can use.
///
/// # Safety
///
/// `peer` is a live EVP_PKEY.
unsafe fn derive_with_original(tag: &Tag, group: Group, peer: *mut EvpPkey, out: &mut [u8]) -> bool {
    // SAFETY: OpenSSL's own functions in their documented order; everything created is freed.
    unsafe {
        let mut own = null_mut();
        if !import(tag, group, &mut own) {
            return false;
        }
        let context = original::EVP_PKEY_CTX_new_from_pkey.get()(null_mut(), own, null());
        let mut len = out.len();
        let done = !context.is_null()
            && original::EVP_PKEY_derive_init.get()(context) > 0
            && original::EVP_PKEY_derive_set_peer.get()(context, peer) > 0
            && original::EVP_PKEY_derive.get()(context, out.as_mut_ptr(), &raw mut len) > 0;
        original::EVP_PKEY_CTX_free.get()(context);
        original::EVP_PKEY_free.get()(own);
        done && len == out.len()
    }
}

/// Imports our key pair into OpenSSL.
///
/// # Safety
///
/// `out` holds null, or a live EVP_PKEY that receives the key and that nothing else uses meanwhile.
unsafe fn import(tag: &Tag, group: Group, out: &mut *mut EvpPkey) -> bool {
    let curve = tag.kind.curve_name();
    let (mut private, public) = (tag.private.get(), tag.public.get());
    let private_len = group.private_len();
    let public = Param::octets(c"pub", &public[..tag.public_len.get()]);
    let secret = if curve.is_some() {
        // An EC scalar is a number, which OSSL_PARAM stores in the machine's byte order.
        private[..private_len].reverse();
        Param::unsigned(c"priv", &private[..private_len])
    } else {
        Param::octets(c"priv", &private[..private_len])
    };
    let curve = curve.map_or(Param::end(), |curve| Param::utf8(c"group", curve));
    let mut params = [public, secret, curve, Param::end()];
    // SAFETY: the parameters have an end marker and live during the call; the caller's promise for `out`.
    let imported = unsafe { import::key(group.key_type(), EVP_PKEY_KEYPAIR, &mut params, out) };
    wipe(&mut private);
    imported
}
