//! Queued operations and what answers them: lanes, or the advice to run the original.

use core::cell::{Cell, RefCell};

use hasten_crypto::{
    Algorithm, BreakEven, Curve, DeriveLane, EcKey, EcdsaLane, EcdsaSignature, Group, Ifma, KeyPair, KeyPool,
    LANES, LaneStatus, RandomPool, RsaKey, RsaLane, Scratch,
};
use hasten_telemetry::{BreakerState, EngineWork, Event, Reason, slot};

use crate::clock::{now, time_of_day};
use crate::config;
use crate::digest::Sha512;
use crate::handshake::Handshake;
use crate::random;

/// The largest RSA signature, 4096 bits.
pub(crate) const MAX_SIGNATURE: usize = 512;

/// What a handshake needs, as it asks for it.
pub(crate) enum Request<'a> {
    /// A key and the padded digest.
    Rsa(&'a RsaKey, &'a [u8]),
    /// A key and the digest.
    Ecdsa(&'a EcKey, &'a [u8]),
    /// Our private and the peer's public key.
    Derive(Group, &'a [u8], &'a [u8]),
}

/// What an operation reads and writes, outside of the frames that are put away meanwhile.
pub(crate) struct Buffers {
    input: [u8; MAX_SIGNATURE],
    peer: [u8; Group::MAX_PUBLIC],
    output: [u8; MAX_SIGNATURE],
    signature: Option<EcdsaSignature>,
}

/// An operation in the place of the handshake that waits for it.
pub(crate) struct Operation<'a> {
    pub(crate) work: Work<'a>,
    pub(crate) verdict: Verdict,
    pub(crate) owner: *const Handshake,
}

pub(crate) enum Work<'a> {
    Rsa(RsaLane<'a>),
    Ecdsa(Curve, EcdsaLane<'a>),
    Derive(Group, DeriveLane<'a>),
}

impl Request<'_> {
    fn output_len(&self) -> usize {
        match self {
            Request::Rsa(key, _) => key.size().bytes(),
            Request::Ecdsa(..) => 0,
            Request::Derive(group, ..) => group.shared_len(),
        }
    }

    /// Moves the request out of the handshake's frames.
    ///
    /// # Safety
    ///
    /// Owner, buffers and keys stay where they are until the operation is answered; keys do because the SSL that
    /// waits holds them.
    pub(crate) unsafe fn place(&self, owner: &Handshake, buffers: &mut Buffers) -> Operation<'static> {
        let output = self.output_len();
        // SAFETY: the contract; lifetimes end here because the operation is answered before any of this goes.
        unsafe {
            let work = match *self {
                Request::Rsa(key, padded) => Work::Rsa(RsaLane {
                    key: &*core::ptr::from_ref(key),
                    padded: keep(&mut buffers.input, padded),
                    signature: &mut *core::ptr::from_mut(&mut buffers.output[..output]),
                }),
                Request::Ecdsa(key, digest) => Work::Ecdsa(
                    key.curve(),
                    EcdsaLane {
                        key: &*core::ptr::from_ref(key),
                        digest: keep(&mut buffers.input, digest),
                        signature: &mut *core::ptr::from_mut(&mut buffers.signature),
                    },
                ),
                Request::Derive(group, private, peer) => Work::Derive(
                    group,
                    DeriveLane {
                        private: keep(&mut buffers.input, private),
                        peer: keep(&mut buffers.peer, peer),
                        shared: &mut *core::ptr::from_mut(&mut buffers.output[..output]),
                    },
                ),
            };
            Operation { work, verdict: Verdict::Cancelled, owner }
        }
    }
}

/// Copies bytes to where they can stay.
unsafe fn keep(to: &mut [u8], from: &[u8]) -> &'static [u8] {
    let kept = &mut to[..from.len()];
    kept.copy_from_slice(from);
    // SAFETY: the caller knows how long the place lasts.
    unsafe { &*core::ptr::from_ref(kept) }
}

impl Buffers {
    pub(crate) const NEW: Self = Self {
        input: [0; MAX_SIGNATURE],
        peer: [0; Group::MAX_PUBLIC],
        output: [0; MAX_SIGNATURE],
        signature: None,
    };

    /// Hands the result to who asked for it, and keeps nothing.
    pub(crate) fn deliver(&mut self, verdict: Verdict, out: &mut [u8]) -> Verdict {
        let verdict = match (verdict, self.signature.take()) {
            (Verdict::Done, Some(signature)) => {
                signature.to_der(out).map_or(Verdict::Failed, Verdict::DoneWith)
            }
            (Verdict::Done, None) => {
                out.copy_from_slice(&self.output[..out.len()]);
                Verdict::Done
            }
            (other, _) => other,
        };
        hasten_crypto::wipe(&mut self.input);
        hasten_crypto::wipe(&mut self.output);
        verdict
    }
}

/// How an operation was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The result is in its buffer.
    Done,
    /// So many bytes of it.
    DoneWith(usize),
    /// Run the original function.
    Bypass(Reason),
    /// The engine has no result it would release: run the original function.
    Failed,
    /// The connection is being torn down: fail without doing the work.
    Cancelled,
}

impl Operation<'_> {
    pub(crate) fn algorithm(&self) -> Algorithm {
        match &self.work {
            Work::Rsa(lane) => lane.key.size().sign(),
            Work::Ecdsa(curve, _) => curve.sign(),
            Work::Derive(group, _) => group.derive(),
        }
    }
}

/// Its row on the counter page.
pub(crate) const ENGINE: hasten_telemetry::Engine = hasten_telemetry::Engine::Multibuffer;

/// Whether an operator has taken the engine out of service; tells that this thread has seen it.
pub(crate) fn is_disabled() -> bool {
    let disabled = hasten_telemetry::is_disabled(ENGINE);
    let state = if disabled { BreakerState::Disabled } else { BreakerState::Closed };
    slot().engine_state(ENGINE, state, None, 0);
    disabled
}

/// The engine of one thread: scratch memory, pools, and the break-even table.
pub(crate) struct Engine {
    ifma: Option<Ifma>,
    break_even: RefCell<BreakEven>,
    parts: RefCell<Option<Parts>>,
    random: RefCell<Option<RandomPool>>,
    published: Cell<u32>,
}

/// What exists only where the CPU can use it.
struct Parts {
    scratch: Scratch,
    keys: [Option<KeyPool>; Group::COUNT],
}

impl Engine {
    pub(crate) fn new() -> Self {
        let ifma = config::get().ifma;
        let parts =
            ifma.map(|ifma| Parts { scratch: Scratch::new(ifma), keys: Group::ALL.map(KeyPool::new) });
        Self {
            ifma,
            break_even: RefCell::new(BreakEven::new(config::get().break_even)),
            parts: RefCell::new(parts),
            random: RefCell::new(RandomPool::new()),
            published: Cell::new(0),
        }
    }

    /// Whether leaving a handshake's stack can lead to anything.
    pub(crate) fn can_batch(&self) -> bool {
        (self.ifma.is_some() || config::get().suspend_only) && !is_disabled()
    }

    /// The group size from which on lanes beat the original.
    pub(crate) fn break_even(&self, algorithm: Algorithm) -> usize {
        self.break_even.borrow().lanes(algorithm)
    }

    /// Learns what the original function costs.
    pub(crate) fn scalar_took(&self, algorithm: Algorithm, nanoseconds: u64) {
        slot().scalar(algorithm, 1);
        self.break_even.borrow_mut().scalar_sample(algorithm, nanoseconds);
        self.publish(algorithm);
    }

    /// Answers a group: through lanes if there are enough, otherwise by
    /// sending each to its original.
    pub(crate) fn answer(&self, mut group: [Option<&mut Operation<'_>>; LANES]) {
        let len = group.iter().flatten().count();
        let Some(algorithm) = group[0].as_ref().map(|operation| operation.algorithm()) else { return };
        if is_disabled() {
            let verdict = Verdict::Bypass(Reason::EngineDisabled);
            group.iter_mut().flatten().for_each(|operation| operation.verdict = verdict);
            return;
        }
        if len < self.break_even(algorithm) || self.ifma.is_none() || config::get().suspend_only {
            let reason = if len == 1 { Reason::Alone } else { Reason::BelowBreakEven };
            group.iter_mut().flatten().for_each(|operation| operation.verdict = Verdict::Bypass(reason));
            return;
        }
        let start = now();
        let done = self.run_lanes(&mut group);
        let took = now() - start;
        for (lane, operation) in group.iter_mut().flatten().enumerate() {
            // A lane without a result (a bad key, a bad point, a fault) is
            // redone by the original, which reports it as it always did.
            operation.verdict = if done.is_ok(lane) { Verdict::Done } else { Verdict::Failed };
        }
        slot().event(Event::TurnsBatched);
        self.account(algorithm, len, done.count(), took);
    }

    /// What an operation costs when so many run at once.
    pub(crate) fn software_ns(&self, algorithm: Algorithm, depth: usize) -> u64 {
        let table = self.break_even.borrow();
        let alone = table.scalar_ns(algorithm);
        let depth = depth.clamp(1, LANES);
        if self.ifma.is_none() || depth < table.lanes(algorithm) {
            return alone;
        }
        alone.min(table.batch_ns(algorithm) / depth as u64)
    }

    /// Checks signatures that somebody else has made, and gives each operation its verdict; returns how many are good.
    /// Those that are not are wiped.
    pub(crate) fn check(&self, group: &mut [Option<&mut Operation<'_>>; LANES]) -> usize {
        let len = group.iter().flatten().count();
        let mut lanes = group.iter_mut().flatten().filter_map(|operation| match &mut operation.work {
            Work::Rsa(lane) => Some(reborrow_rsa(lane)),
            Work::Ecdsa(..) | Work::Derive(..) => None,
        });
        let good = with_lanes(len, || lanes.next(), |lanes| self.check_lanes(lanes));
        let mut count = 0;
        for (operation, &is_good) in group.iter_mut().flatten().zip(&good) {
            operation.verdict = if is_good { Verdict::Done } else { Verdict::Failed };
            count += usize::from(is_good);
        }
        count
    }

    fn check_lanes(&self, lanes: &mut [RsaLane<'_>]) -> [bool; LANES] {
        // Lanes take as long for one as for eight, and one alone a little longer than this does.
        if lanes.len() > 1
            && let (Some(ifma), Some(parts)) = (self.ifma, self.parts.borrow_mut().as_mut())
        {
            let status = hasten_crypto::rsa_check(ifma, &mut parts.scratch, lanes);
            return core::array::from_fn(|lane| status.is_ok(lane));
        }
        core::array::from_fn(|at| {
            lanes.get_mut(at).is_some_and(|lane| {
                let is_good = lane.key.is_signed(lane.padded, lane.signature);
                if !is_good {
                    hasten_crypto::wipe(lane.signature);
                }
                is_good
            })
        })
    }

    fn run_lanes(&self, group: &mut [Option<&mut Operation<'_>>; LANES]) -> LaneStatus {
        let mut parts = self.parts.borrow_mut();
        let (Some(ifma), Some(parts)) = (self.ifma, parts.as_mut()) else {
            return LaneStatus::NONE;
        };
        let scratch = &mut parts.scratch;
        let len = group.iter().flatten().count();
        let mut works = group.iter_mut().flatten().map(|operation| &mut operation.work);
        match works.next() {
            Some(Work::Rsa(first)) => {
                let rest = works.map(|work| match work {
                    Work::Rsa(lane) => reborrow_rsa(lane),
                    _ => unreachable!("a queue holds one algorithm"),
                });
                let mut all = core::iter::once(reborrow_rsa(first)).chain(rest);
                with_lanes(len, || all.next(), |lanes| hasten_crypto::rsa_private(ifma, scratch, lanes))
            }
            Some(Work::Ecdsa(curve, first)) => {
                let curve = *curve;
                let rest = works.map(|work| match work {
                    Work::Ecdsa(_, lane) => reborrow_ecdsa(lane),
                    _ => unreachable!("a queue holds one algorithm"),
                });
                let mut all = core::iter::once(reborrow_ecdsa(first)).chain(rest);
                with_lanes(len, || all.next(), |lanes| sign(ifma, scratch, curve, lanes))
            }
            Some(Work::Derive(which, first)) => {
                let which = *which;
                let rest = works.map(|work| match work {
                    Work::Derive(_, lane) => reborrow_derive(lane),
                    _ => unreachable!("a queue holds one algorithm"),
                });
                let mut all = core::iter::once(reborrow_derive(first)).chain(rest);
                with_lanes(len, || all.next(), |lanes| hasten_crypto::derive(ifma, scratch, which, lanes))
            }
            None => LaneStatus::NONE,
        }
    }

    fn account(&self, algorithm: Algorithm, lanes: usize, done: usize, took: u64) {
        let mut break_even = self.break_even.borrow_mut();
        break_even.batch_sample(algorithm, took);
        let saved = break_even.saved_ns(algorithm, lanes);
        drop(break_even);
        slot().batched(algorithm, lanes, took, saved);
        let failed = (lanes - done) as u64;
        let work = EngineWork { ok: done as u64, failed, busy_ns: took, ..EngineWork::default() };
        slot().engine_ran(ENGINE, &work);
        if failed > 0 {
            slot().failed(algorithm, failed);
            if matches!(algorithm, Algorithm::Rsa2048Sign | Algorithm::Rsa3072Sign | Algorithm::Rsa4096Sign) {
                slot().event_n(Event::VerifyFailed, failed);
            }
        }
        self.publish(algorithm);
    }

    /// Shows the break-even table to `hasten top`, now and then.
    fn publish(&self, algorithm: Algorithm) {
        const EVERY: u32 = 64;
        let count = self.published.get();
        self.published.set(count.wrapping_add(1));
        if count % EVERY < Algorithm::COUNT as u32 {
            let table = self.break_even.borrow();
            let (scalar, batch) = (table.scalar_ns(algorithm), table.batch_ns(algorithm));
            hasten_telemetry::page().set_break_even(algorithm, table.lanes(algorithm), scalar, batch);
        }
    }

    /// An ephemeral key pair, made eight at a time and used once.
    pub(crate) fn key_pair(&self, group: Group) -> Option<KeyPair> {
        if is_disabled() {
            slot().bypass(Reason::EngineDisabled);
            return None;
        }
        let pair = self.pooled_key_pair(group);
        slot().event(if pair.is_some() { Event::PoolHit } else { Event::PoolMiss });
        pair
    }

    fn pooled_key_pair(&self, group: Group) -> Option<KeyPair> {
        let mut parts = self.parts.borrow_mut();
        let (ifma, parts) = (self.ifma?, parts.as_mut()?);
        let pool = parts.keys[group.index()].as_mut()?;
        let time = time_of_day();
        if pool.available(time) == 0 {
            let start = now();
            let made = pool.refill(time, ifma, &mut parts.scratch, &mut random::private);
            self.account_pool(group.keygen(), made, now() - start);
        }
        pool.take(time)
    }

    /// Signs at once: a single lane, where that is cheaper than the original.
    pub(crate) fn ecdsa(&self, key: &EcKey, digest: &[u8]) -> Option<EcdsaSignature> {
        let algorithm = key.curve().sign();
        if is_disabled() || self.break_even(algorithm) > 1 {
            return None;
        }
        let mut parts = self.parts.borrow_mut();
        let (ifma, parts) = (self.ifma?, parts.as_mut()?);
        let mut signature = None;
        let start = now();
        let mut lanes = [EcdsaLane { key, digest, signature: &mut signature }];
        let status = sign(ifma, &mut parts.scratch, key.curve(), &mut lanes);
        self.account(algorithm, 1, status.count(), now() - start);
        signature
    }

    /// Random bytes that the peer will see.
    pub(crate) fn random(&self, bytes: &mut [u8]) -> bool {
        self.random
            .borrow_mut()
            .as_mut()
            .is_some_and(|pool| pool.fill(time_of_day(), bytes, &mut random::public))
    }

    fn account_pool(&self, algorithm: Algorithm, made: usize, took: u64) {
        slot().event(Event::PoolRefilled);
        if made > 0 {
            self.account(algorithm, made, made, took);
        }
    }
}

/// Each signature has a nonce of its key, its message and fresh randomness.
fn sign(ifma: Ifma, scratch: &mut Scratch, curve: Curve, lanes: &mut [EcdsaLane<'_>]) -> LaneStatus {
    hasten_crypto::ecdsa_sign::<Sha512>(ifma, scratch, curve, lanes, &mut random::private)
}

fn reborrow_ecdsa<'b>(lane: &'b mut EcdsaLane<'_>) -> EcdsaLane<'b> {
    EcdsaLane { key: lane.key, digest: lane.digest, signature: lane.signature }
}

fn reborrow_rsa<'b>(lane: &'b mut RsaLane<'_>) -> RsaLane<'b> {
    RsaLane { key: lane.key, padded: lane.padded, signature: lane.signature }
}

fn reborrow_derive<'b>(lane: &'b mut DeriveLane<'_>) -> DeriveLane<'b> {
    DeriveLane { private: lane.private, peer: lane.peer, shared: lane.shared }
}

/// Collects `len` lanes into an array on the stack and hands them on as a slice.
fn with_lanes<L, R>(len: usize, mut next: impl FnMut() -> Option<L>, run: impl FnOnce(&mut [L]) -> R) -> R {
    use core::mem::MaybeUninit;
    let mut lanes: [MaybeUninit<L>; LANES] = [const { MaybeUninit::uninit() }; LANES];
    let mut filled = 0;
    while filled < len.min(LANES)
        && let Some(lane) = next()
    {
        lanes[filled].write(lane);
        filled += 1;
    }
    // SAFETY: the first `filled` elements were written; lanes are borrows and need no drop.
    run(unsafe { core::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), filled) })
}
