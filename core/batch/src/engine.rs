//! What computes the operations of one thread: lanes, the engine for single operations, pools, and what has been learnt about
//! their cost.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use std::env;
use std::sync::Arc;

use hasten_crypto::{
    Algorithm, BreakEven, Curve, DeriveLane, EcKey, EcdsaLane, EcdsaSignature, Group, KeyPair, KeyPool,
    LANES, LaneEngine, LaneStatus, Overrides, RandomPool, RsaKey, RsaLane, Single, Way,
};
use hasten_guard::breaker::Permit;
use hasten_guard::clock::{now, time_of_day};
use hasten_telemetry::{BreakerState, EngineWork, Event, Reason, slot};

use crate::host::Host;
use crate::lanes::{ENGINE, Lanes};
use crate::operation::{Operation, Verdict, Work};

/// An engine's settings.
#[derive(Clone, Debug)]
pub struct Settings<L> {
    /// The engine for lanes, if the CPU runs one.
    pub lane_engine: Option<L>,
    /// The engine for single operations, likewise.
    pub single: Option<Single>,
    pub break_even: Overrides,
    /// Collect operations, but answer each with the advice to run the original: for tests of waiting.
    pub bypass: bool,
    /// State shared by the threads of a process.
    pub lanes: Arc<Lanes>,
}

/// `1`: queue every operation but answer it with the original, to test the machinery where the engine cannot run
/// (valgrind, CPUs without IFMA).
const SUSPEND_ONLY: &str = "HASTEN_TLS_SUSPEND_ONLY";

impl<L: LaneEngine> Settings<L> {
    /// The settings in the environment. A list that does not parse is ignored here, where errors cannot be reported;
    /// `hasten run` rejects it. If tests are `eager` to wait, operations do so on every CPU: without lanes, the original
    /// answers.
    #[must_use]
    pub fn from_environment(eager: bool) -> Self {
        let break_even = env::var(Overrides::VARIABLE).ok().and_then(|list| list.parse().ok());
        let lane_engine = L::detect();
        let suspend_only = env::var_os(SUSPEND_ONLY).is_some_and(|value| value == "1");
        Self {
            bypass: suspend_only || eager && lane_engine.is_none(),
            lane_engine,
            single: Single::detect(),
            break_even: break_even.unwrap_or_default(),
            lanes: Arc::default(),
        }
    }
}

/// The row of the engine for single operations on the counter page.
pub const SINGLE: hasten_telemetry::Engine = hasten_telemetry::Engine::Graviola;

/// Scratch memory, pools, and the break-even table.
pub struct Engine<H: Host> {
    lane_engine: Option<H::Lanes>,
    single: Option<Single>,
    /// Whether the engine for lanes also signs with RSA one at a time.
    signs_alone: bool,
    bypass: bool,
    lanes: Arc<Lanes>,
    break_even: RefCell<BreakEven>,
    parts: RefCell<Option<Parts<H::Lanes>>>,
    random: RefCell<Option<RandomPool>>,
    published: Cell<u32>,
    host: PhantomData<H>,
}

/// An operation's place in a group of up to eight.
pub(crate) type Group8<'a, W> = [Option<&'a mut Operation<W>>; LANES];

type Scratch<H> = <<H as Host>::Lanes as LaneEngine>::Scratch;

/// The parts that exist only if the CPU can use them.
struct Parts<L: LaneEngine> {
    scratch: L::Scratch,
    keys: [Option<KeyPool>; Group::COUNT],
}

impl<H: Host> Engine<H> {
    pub(crate) fn new(settings: &Settings<H::Lanes>) -> Self {
        let lane_engine = settings.lane_engine;
        let single = settings.single.filter(|_| !settings.bypass);
        let signs_alone = H::Lanes::SIGNS_ALONE && lane_engine.is_some() && !settings.bypass;
        let parts =
            lane_engine.map(|engine| Parts { scratch: engine.scratch(), keys: Group::ALL.map(KeyPool::new) });
        Self {
            lane_engine,
            single,
            signs_alone,
            bypass: settings.bypass,
            lanes: Arc::clone(&settings.lanes),
            break_even: RefCell::new(BreakEven::new(settings.break_even, |algorithm| {
                if is_rsa(algorithm) { signs_alone } else { single.is_some() }
            })),
            parts: RefCell::new(parts),
            random: RefCell::new(RandomPool::new()),
            published: Cell::new(0),
            host: PhantomData,
        }
    }

    /// Whether waiting for others can pay at all.
    pub fn can_batch(&self) -> bool {
        (self.lane_engine.is_some() || self.bypass) && self.refusal().is_none()
    }

    /// Why lanes are out of service, if they are.
    pub fn refusal(&self) -> Option<Reason> {
        self.lanes.refusal()
    }

    /// The group size from which lanes beat the original.
    pub fn break_even(&self, algorithm: Algorithm) -> usize {
        self.break_even.borrow().lanes(algorithm)
    }

    /// Records what the original function cost.
    pub fn original_took(&self, algorithm: Algorithm, nanoseconds: u64) {
        slot().scalar(algorithm, 1);
        self.break_even.borrow_mut().sample(algorithm, Way::Original, nanoseconds);
        self.publish(algorithm);
    }

    /// Answers operations of one kind: in lanes if there are enough of them, otherwise by sending each to its original.
    pub(crate) fn answer<W>(&self, mut group: Group8<'_, W>) {
        let len = group.iter().flatten().count();
        let Some(algorithm) = group[0].as_ref().map(|operation| operation.algorithm()) else { return };
        let permit = match self.admit(algorithm, len) {
            Ok(permit) => permit,
            Err(reason) => {
                let verdict = Verdict::Bypass(reason);
                return group.iter_mut().flatten().for_each(|operation| operation.verdict = verdict);
            }
        };
        let start = now();
        let done = self.run_lanes(&mut group);
        let took = now() - start;
        for (lane, operation) in group.iter_mut().flatten().enumerate() {
            // A lane without a result (a bad key, a bad point, a fault) is redone by the original, which reports it as
            // it always has.
            operation.verdict = if done.is_ok(lane) { Verdict::Done } else { Verdict::Failed };
        }
        slot().event(Event::TurnsBatched);
        self.account(algorithm, len, done.count(), took);
        self.lanes.report(permit, done.all_ok(len));
    }

    /// Whether this many operations of a kind may go through lanes now.
    fn admit(&self, algorithm: Algorithm, len: usize) -> Result<Option<Permit>, Reason> {
        let pays = self.lane_engine.is_some() && !self.bypass && len >= self.break_even(algorithm);
        if pays && !H::has_stack(H::Lanes::STACK) {
            return Err(Reason::NotNativeStack);
        }
        if pays {
            return self.lanes.admit(algorithm);
        }
        let alone = if len == 1 { Reason::Alone } else { Reason::BelowBreakEven };
        Err(self.refusal().unwrap_or(alone))
    }

    /// The cost of one operation in software when this many run at once.
    pub fn software_ns(&self, algorithm: Algorithm, depth: usize) -> u64 {
        let table = self.break_even.borrow();
        let alone = table.alone_ns(algorithm);
        let depth = depth.clamp(1, LANES);
        if self.lane_engine.is_none() || depth < table.lanes(algorithm) {
            return alone;
        }
        alone.min(table.ns(algorithm, Way::Batch) / depth as u64)
    }

    /// Checks signatures made elsewhere, and gives each operation its verdict; returns how many are good. The others
    /// are wiped.
    pub(crate) fn check<W>(&self, group: &mut Group8<'_, W>) -> usize {
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
        // Lanes take as long for one as for eight, and slightly longer for one than the scalar check.
        if lanes.len() > 1
            && let (Some(engine), Some(parts)) = (self.lane_engine, self.parts.borrow_mut().as_mut())
        {
            let status = engine.rsa_check(&mut parts.scratch, lanes);
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

    fn run_lanes<W>(&self, group: &mut Group8<'_, W>) -> LaneStatus {
        let mut parts = self.parts.borrow_mut();
        let (Some(engine), Some(parts)) = (self.lane_engine, parts.as_mut()) else {
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
                with_lanes(len, || all.next(), |lanes| engine.rsa_private(scratch, lanes))
            }
            Some(Work::Ecdsa(curve, first)) => {
                let curve = *curve;
                let rest = works.map(|work| match work {
                    Work::Ecdsa(_, lane) => reborrow_ecdsa(lane),
                    _ => unreachable!("a queue holds one algorithm"),
                });
                let mut all = core::iter::once(reborrow_ecdsa(first)).chain(rest);
                with_lanes(len, || all.next(), |lanes| sign::<H>(engine, scratch, curve, lanes))
            }
            Some(Work::Derive(which, first)) => {
                let which = *which;
                let rest = works.map(|work| match work {
                    Work::Derive(_, lane) => reborrow_derive(lane),
                    _ => unreachable!("a queue holds one algorithm"),
                });
                let mut all = core::iter::once(reborrow_derive(first)).chain(rest);
                with_lanes(len, || all.next(), |lanes| engine.derive(scratch, which, lanes))
            }
            None => LaneStatus::NONE,
        }
    }

    fn account(&self, algorithm: Algorithm, lanes: usize, done: usize, took: u64) {
        let mut break_even = self.break_even.borrow_mut();
        break_even.sample(algorithm, Way::Batch, took);
        let saved = break_even.saved_ns(algorithm, Way::Batch, lanes);
        drop(break_even);
        slot().batched(algorithm, lanes, took, saved);
        let failed = (lanes - done) as u64;
        let work = EngineWork { ok: done as u64, failed, busy_ns: took, ..EngineWork::default() };
        slot().engine_ran(ENGINE, &work);
        if failed > 0 {
            slot().failed(algorithm, failed);
            if is_rsa(algorithm) {
                slot().event_n(Event::VerifyFailed, failed);
            }
        }
        self.publish(algorithm);
    }

    /// Publishes the break-even table for `hasten top`, now and then. Without lanes there is none.
    fn publish(&self, algorithm: Algorithm) {
        const EVERY: u32 = 64;
        if self.lane_engine.is_none() {
            return;
        }
        let count = self.published.get();
        self.published.set(count.wrapping_add(1));
        if count % EVERY < Algorithm::COUNT as u32 {
            let table = self.break_even.borrow();
            let (alone, batch) = (table.alone_ns(algorithm), table.ns(algorithm, Way::Batch));
            hasten_telemetry::page().set_break_even(algorithm, table.lanes(algorithm), alone, batch);
        }
    }

    /// An ephemeral key pair, used once: from the pool, which lanes fill, or made on the spot.
    pub fn key_pair(&self, group: Group) -> Option<KeyPair> {
        let refusal = self.lanes.refusal_without_proof();
        let pooled = if refusal.is_none() { self.pooled_key_pair(group) } else { None };
        if pooled.is_some() {
            slot().event(Event::PoolHit);
            return pooled;
        }
        if refusal.is_none() && self.lane_engine.is_some() {
            slot().event(Event::PoolMiss);
        }
        let pair = self.single_key_pair(group);
        if let (None, Some(reason)) = (&pair, refusal) {
            slot().bypass(reason);
        }
        pair
    }

    fn pooled_key_pair(&self, group: Group) -> Option<KeyPair> {
        let mut parts = self.parts.borrow_mut();
        let (engine, parts) = (self.lane_engine?, parts.as_mut()?);
        let pool = parts.keys[group.index()].as_mut()?;
        let time = time_of_day();
        if pool.available(time) == 0 && H::has_stack(H::Lanes::STACK) {
            let start = now();
            let made = pool.refill(time, engine, &mut parts.scratch, &mut H::private_random);
            self.account_pool(group.keygen(), made, now() - start);
        }
        pool.take(time)
    }

    fn single_key_pair(&self, group: Group) -> Option<KeyPair> {
        // The original is not measured: the shipped figures speak for themselves.
        let single = self.single_in_service()?;
        let mut pair = None;
        let start = now();
        let sink = |made| pair = Some(made);
        let made = single.keygen(&mut (), group, 1, &mut H::private_random, sink);
        self.account_single(group.keygen(), made == 1, now() - start);
        pair
    }

    /// Signs at once, in a single lane or by the engine for single operations, if that is cheaper than the original.
    pub fn ecdsa(&self, key: &EcKey, digest: &[u8]) -> Option<EcdsaSignature> {
        self.ecdsa_in_a_lane(key, digest).or_else(|| {
            let algorithm = key.curve().sign();
            let single = self.single(algorithm)?;
            let mut signature = None;
            let start = now();
            let mut lane = [EcdsaLane { key, digest, signature: &mut signature }];
            single.ecdsa_sign::<H::Sha512>(&mut (), key.curve(), &mut lane, &mut H::private_random);
            self.account_single(algorithm, signature.is_some(), now() - start);
            signature
        })
    }

    fn ecdsa_in_a_lane(&self, key: &EcKey, digest: &[u8]) -> Option<EcdsaSignature> {
        let algorithm = key.curve().sign();
        let mut parts = self.parts.borrow_mut();
        let (engine, parts) = (self.lane_engine?, parts.as_mut()?);
        let permit = self.admit(algorithm, 1).ok()?;
        let mut signature = None;
        let start = now();
        let mut lanes = [EcdsaLane { key, digest, signature: &mut signature }];
        let status = sign::<H>(engine, &mut parts.scratch, key.curve(), &mut lanes);
        self.account(algorithm, 1, status.count(), now() - start);
        self.lanes.report(permit, status.all_ok(1));
        signature
    }

    /// Whether there is a private operation for one in service.
    pub fn has_rsa(&self) -> bool {
        self.signs_alone && self.refusal().is_none()
    }

    /// Whether any number of these operations is better done together than one by one. If not, it is tried now and then.
    pub fn may_batch(&self, algorithm: Algorithm) -> bool {
        self.bypass || self.break_even(algorithm) <= LANES
    }

    /// Signs at once by the private operation for one, if that is cheaper than the original; both are as long as the modulus.
    pub fn rsa(&self, key: &RsaKey, padded: &[u8], signature: &mut [u8]) -> bool {
        let algorithm = key.size().sign();
        if self.break_even.borrow().alone(algorithm) != Way::Single || !H::has_stack(H::Lanes::STACK) {
            return false;
        }
        let mut parts = self.parts.borrow_mut();
        let (Some(engine), Some(parts)) = (self.lane_engine, parts.as_mut()) else { return false };
        let Ok(permit) = self.lanes.admit(algorithm) else { return false };
        // Once for each key: no part of what an operation costs.
        engine.prepare_alone(key);
        let start = now();
        let is_done = engine.rsa_alone(&mut parts.scratch, &mut RsaLane { key, padded, signature });
        self.account_alone(ENGINE, algorithm, is_done, now() - start);
        if !is_done {
            slot().failed(algorithm, 1);
            slot().event(Event::VerifyFailed);
        }
        self.lanes.report(permit, is_done);
        is_done
    }

    /// Derives a shared secret at once. Without one, the original has the last word: the peer's key is refused, or there is no
    /// engine for single operations in service.
    pub fn derive(&self, group: Group, private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
        if group != Group::X25519 && !H::has_stack(Single::STACK) {
            return false;
        }
        let Some(single) = self.single_in_service() else { return false };
        let start = now();
        let mut lane = [DeriveLane { private, peer, shared }];
        let is_done = single.derive(&mut (), group, &mut lane).all_ok(1);
        self.account_single(group.derive(), is_done, now() - start);
        is_done
    }

    /// The same, if it is cheaper than the original.
    pub fn derive_if_cheaper(&self, group: Group, private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
        self.single(group.derive()).is_some() && self.derive(group, private, peer, shared)
    }

    /// Whether there is an engine for signatures with EC keys, or why there is none at the moment.
    pub fn can_sign(&self) -> Result<(), Reason> {
        let has_lanes = self.lane_engine.is_some() || self.bypass;
        match self.refusal() {
            None if has_lanes => Ok(()),
            _ if self.single_in_service().is_some() => Ok(()),
            refusal => Err(refusal.unwrap_or(Reason::NoIfma)),
        }
    }

    /// The engine for single operations, if it is in service and cheaper than the original, which gets a trial now and then:
    /// the caller reports what that took.
    fn single(&self, algorithm: Algorithm) -> Option<Single> {
        let single = self.single_in_service()?;
        (self.break_even.borrow().alone(algorithm) == Way::Single).then_some(single)
    }

    fn single_in_service(&self) -> Option<Single> {
        let single = self.single?;
        let is_disabled = hasten_telemetry::is_disabled(SINGLE);
        let state = if is_disabled { BreakerState::Disabled } else { BreakerState::Closed };
        slot().engine_state(SINGLE, state, None, 0);
        (!is_disabled).then_some(single)
    }

    fn account_single(&self, algorithm: Algorithm, is_done: bool, took: u64) {
        self.account_alone(SINGLE, algorithm, is_done, took);
    }

    /// Accounts for an operation that an engine has done at once.
    fn account_alone(
        &self,
        engine: hasten_telemetry::Engine,
        algorithm: Algorithm,
        is_done: bool,
        took: u64,
    ) {
        let work = EngineWork {
            ok: u64::from(is_done),
            failed: u64::from(!is_done),
            busy_ns: took,
            ..EngineWork::default()
        };
        slot().engine_ran(engine, &work);
        if is_done {
            let mut break_even = self.break_even.borrow_mut();
            break_even.sample(algorithm, Way::Single, took);
            let saved = break_even.saved_ns(algorithm, Way::Single, 1);
            drop(break_even);
            slot().single(algorithm, saved);
            self.publish(algorithm);
        }
    }

    /// Random bytes that the peer will see.
    pub fn random(&self, bytes: &mut [u8]) -> bool {
        self.random
            .borrow_mut()
            .as_mut()
            .is_some_and(|pool| pool.fill(time_of_day(), bytes, &mut H::public_random))
    }

    fn account_pool(&self, algorithm: Algorithm, made: usize, took: u64) {
        slot().event(Event::PoolRefilled);
        if made > 0 {
            self.account(algorithm, made, made, took);
        }
    }
}

const fn is_rsa(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Rsa2048Sign | Algorithm::Rsa3072Sign | Algorithm::Rsa4096Sign)
}

/// Each signature has a nonce derived from its key, its message and fresh randomness.
fn sign<H: Host>(
    engine: H::Lanes,
    scratch: &mut Scratch<H>,
    curve: Curve,
    lanes: &mut [EcdsaLane<'_>],
) -> LaneStatus {
    engine.ecdsa_sign::<H::Sha512>(scratch, curve, lanes, &mut H::private_random)
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

/// Collects `len` lanes into an array on the stack and passes them on as a slice.
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
