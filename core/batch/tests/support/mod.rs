//! Owners other than handshakes, a host's randomness and hash, and keys.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod scripted;
pub(crate) mod trial;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

use hasten_batch::{Batch, Buffers, Host, Operation, Request, Settings, Verdict, Waker};
use hasten_crypto::{Curve, EcKey, Hash, Ifma, LaneEngine, RsaKey, RsaParts};
use openssl::bn::{BigNum, BigNumContext, BigNumRef};
use openssl::ec::{EcGroup, EcKey as HostKey};
use openssl::ecdsa::EcdsaSig;
use openssl::nid::Nid;
use openssl::pkey::Private;
use openssl::rsa::Rsa;
use openssl::sha;

#[derive(Clone)]
pub(crate) struct Sha512(sha::Sha512);

impl Hash for Sha512 {
    const OUTPUT: usize = 64;
    const BLOCK: usize = 128;

    fn new() -> Self {
        Self(sha::Sha512::new())
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.finish());
    }
}

pub(crate) struct OpenSsl<L>(PhantomData<L>);

impl<L: LaneEngine> Host for OpenSsl<L> {
    type Lanes = L;
    type Sha512 = Sha512;

    fn private_random(bytes: &mut [u8]) -> bool {
        openssl::rand::rand_bytes(bytes).is_ok()
    }

    fn public_random(bytes: &mut [u8]) -> bool {
        openssl::rand::rand_bytes(bytes).is_ok()
    }

    fn has_stack(bytes: usize) -> bool {
        bytes <= STACK.get()
    }
}

thread_local! {
    /// What the host says of its stack.
    pub(crate) static STACK: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A connection that waits for one operation at a time.
pub(crate) struct Owner {
    buffers: UnsafeCell<Buffers>,
    place: UnsafeCell<MaybeUninit<Operation<Woken>>>,
    pub(crate) woken: Cell<u32>,
    /// Its action when it is woken.
    pub(crate) then: RefCell<Option<Box<dyn FnOnce()>>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Woken(*const Owner);

impl Waker for Woken {
    fn wake(self) {
        // SAFETY: owners outlive the batch's interest in them.
        let owner = unsafe { &*self.0 };
        owner.woken.set(owner.woken.get() + 1);
        let then = owner.then.borrow_mut().take();
        if let Some(then) = then {
            then();
        }
    }
}

pub(crate) type Operations<L = Ifma> = Batch<Woken, OpenSsl<L>>;

impl Owner {
    pub(crate) fn new() -> Self {
        Self {
            buffers: UnsafeCell::new(Buffers::NEW),
            place: UnsafeCell::new(MaybeUninit::uninit()),
            woken: Cell::new(0),
            then: RefCell::new(None),
        }
    }

    pub(crate) fn submit<L: LaneEngine>(&self, batch: &Operations<L>, request: &Request<'_>, turn: u32) {
        // SAFETY: owners and keys stay where they are, and an owner submits again only after it was answered.
        unsafe {
            let operation = request.place(Woken(self), &mut *self.buffers.get());
            let operation: *mut _ = (*self.place.get()).write(operation);
            batch.submit(operation, turn);
        }
    }

    pub(crate) fn operation(&self) -> *mut Operation<Woken> {
        self.place.get().cast()
    }

    /// Whether its group is complete and answered.
    pub(crate) fn completes<L: LaneEngine>(&self, batch: &Operations<L>) -> bool {
        // SAFETY: it waits.
        unsafe { batch.run_if_complete(self.operation()) }
    }

    pub(crate) fn withdraw<L: LaneEngine>(&self, batch: &Operations<L>) {
        // SAFETY: it waits.
        unsafe { batch.withdraw(self.operation()) }
    }

    pub(crate) fn result(&self, out: &mut [u8]) -> Verdict {
        // SAFETY: the operation was written, and is answered.
        unsafe {
            let verdict = (*self.operation()).verdict();
            (*self.buffers.get()).deliver(verdict, out)
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.result(&mut [])
    }
}

pub(crate) fn owners(count: usize) -> Vec<Owner> {
    (0..count).map(|_| Owner::new()).collect()
}

pub(crate) fn woken(owners: &[Owner]) -> Vec<u32> {
    owners.iter().map(|owner| owner.woken.get()).collect()
}

/// A batch with lanes from `break_even` operations on, or `None` after saying why the test is skipped.
pub(crate) fn with_lanes(break_even: usize) -> Option<Operations> {
    let ifma = Ifma::detect();
    if ifma.is_none() {
        eprintln!("skipped: this CPU has no AVX-512 IFMA, or {} is set", Ifma::DISABLE);
    }
    let overrides = format!("p-256-sign:{break_even},p-384-sign:{break_even},x25519-derive:{break_even}");
    Some(Batch::new(&Settings {
        lane_engine: Some(ifma?),
        single: None,
        break_even: overrides.parse().unwrap(),
        bypass: false,
        lanes: Arc::default(),
    }))
}

/// A batch that always advises running the original.
pub(crate) fn without_lanes() -> Operations {
    Batch::new(&Settings {
        lane_engine: None,
        single: None,
        break_even: Default::default(),
        bypass: true,
        lanes: Arc::default(),
    })
}

pub(crate) fn key(curve: Curve) -> (HostKey<Private>, EcKey) {
    let nid = if curve == Curve::P256 { Nid::X9_62_PRIME256V1 } else { Nid::SECP384R1 };
    let host = HostKey::generate(&EcGroup::from_curve_name(nid).unwrap()).unwrap();
    let mut scalar = host.private_key().to_vec();
    scalar.reverse();
    let key = EcKey::new(curve, &scalar).unwrap();
    (host, key)
}

pub(crate) fn digest(number: usize) -> [u8; 32] {
    sha::sha256(&number.to_le_bytes())
}

pub(crate) fn is_signed(owner: &Owner, host: &HostKey<Private>, digest: &[u8]) -> bool {
    let mut der = [0; 128];
    let Verdict::DoneWith(len) = owner.result(&mut der) else { return false };
    EcdsaSig::from_der(&der[..len]).unwrap().verify(digest, host).unwrap()
}

pub(crate) struct RsaKeys {
    pub(crate) good: Box<RsaKey>,
    /// One of its "primes" is the product of two: no power leads back, and no signature passes its verification.
    pub(crate) spoiled: Box<RsaKey>,
}

pub(crate) fn rsa_keys() -> RsaKeys {
    let host = Rsa::generate(2048).unwrap();
    let mut context = BigNumContext::new().unwrap();
    let (e, q, one) = (host.e(), host.q().unwrap(), BigNum::from_u32(1).unwrap());
    let prime = || {
        let mut prime = BigNum::new().unwrap();
        prime.generate_prime(512, false, None, None).unwrap();
        prime
    };
    let [mut p, mut dp, mut qinv] = core::array::from_fn(|_| BigNum::new().unwrap());
    while (&p * q).num_bits() != 2048 || dp.mod_inverse(e, &(&p - &one), &mut context).is_err() {
        p = &prime() * &prime();
    }
    qinv.mod_inverse(q, &p, &mut context).unwrap();
    let dq = host.dmq1().unwrap();
    let good = [host.n(), e, host.p().unwrap(), q, host.dmp1().unwrap(), dq, host.iqmp().unwrap()];
    RsaKeys { good: rsa_key(good), spoiled: rsa_key([&(&p * q), e, &p, q, &dp, dq, &qinv]) }
}

fn rsa_key(numbers: [&BigNumRef; 7]) -> Box<RsaKey> {
    let little_endian = |number: &BigNumRef| number.to_vec().into_iter().rev().collect::<Vec<_>>();
    let [n, e, p, q, dp, dq, qinv] = &numbers.map(little_endian);
    RsaKey::new(&RsaParts { n, e, p, q, dp, dq, qinv }).expect("nobody asks whether primes are prime")
}
