//! The engine: Intel crypto_mb, eight independent operations at the price of about two.
//!
//! # Soundness
//! The foreign functions take arrays of eight pointers. In this module every pointer of every call leads to memory of
//! the length the function reads or writes: to a [`Staging`] array that has the largest size for its element, or to a
//! key of the size named in the call. No call is made with fewer than eight lanes; unused lanes repeat a used one. The
//! functions keep no pointer, allocate nothing and write no global, so they run on any thread. They need no more
//! stack than stated (`tests/process.rs`).

#![allow(unsafe_code)]

mod curves;
mod ecdhe;
mod ecdsa;
mod ffi;
mod field25519;
mod rsa;
mod unreachable;
mod x25519;

use std::ffi::c_int;

use hasten_names::{Curve, Group, LANES};

use crate::Ifma;
use crate::crt::Powers;
use crate::ecdhe::KeyPair;
use crate::ecdsa::LIMBS;
use crate::hash::Hash;
use crate::lanes::{DeriveLane, EcdsaLane, LaneEngine, LaneStatus, RsaLane};
use crate::memory::{wipe, wipe_limbs};
use crate::random::Random;
use crate::rsa::{RsaKey, RsaSize};

impl LaneEngine for Ifma {
    type Scratch = Scratch;

    const STACK: usize = 48 << 10;

    fn detect() -> Option<Self> {
        Self::prove()
    }

    fn scratch(self) -> Scratch {
        Scratch::new(self)
    }

    fn rsa_private(self, scratch: &mut Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        rsa::rsa_private(self, scratch, lanes)
    }

    const SIGNS_ALONE: bool = true;

    fn prepare_alone(self, key: &RsaKey) {
        key.prepare(self);
    }

    fn rsa_alone(self, scratch: &mut Scratch, lane: &mut RsaLane<'_>) -> bool {
        lane.key.sign_alone(self, &mut scratch.powers, lane.padded, lane.signature)
    }

    fn rsa_check(self, scratch: &mut Scratch, lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        rsa::rsa_check(self, scratch, lanes)
    }

    fn ecdsa_sign<H: Hash>(
        self,
        scratch: &mut Scratch,
        curve: Curve,
        lanes: &mut [EcdsaLane<'_>],
        random: &mut Random<'_>,
    ) -> LaneStatus {
        ecdsa::ecdsa_sign::<H>(self, scratch, curve, lanes, random)
    }

    fn derive(self, scratch: &mut Scratch, group: Group, lanes: &mut [DeriveLane<'_>]) -> LaneStatus {
        ecdhe::derive(self, scratch, group, lanes)
    }

    fn keygen(
        self,
        scratch: &mut Scratch,
        group: Group,
        count: usize,
        random: &mut Random<'_>,
        sink: impl FnMut(KeyPair),
    ) -> usize {
        ecdhe::keygen(self, scratch, group, count, random, sink)
    }
}

/// The lanes that the engine reports as done.
fn lanes_done(status: ffi::Status) -> LaneStatus {
    let mut done = LaneStatus::NONE;
    (0..LANES).filter(|lane| status >> (lane * 4) & 0xf == ffi::OK).for_each(|lane| done.set(lane));
    done
}

/// Working memory of the engine. One per thread; all zero between calls.
pub struct Scratch {
    staging: Box<Staging>,
    rsa_buffer: Box<[CacheLine]>,
    powers: Powers,
}

impl Scratch {
    fn new(_: Ifma) -> Self {
        let rsa_bytes = RsaSize::ALL.map(rsa::buffer_bytes).into_iter().max().unwrap_or_default();
        let lines = rsa_bytes.div_ceil(size_of::<CacheLine>());
        Self {
            staging: Box::new(Staging {
                bytes: [[[0; RsaSize::Rsa4096.bytes()]; LANES]; 2],
                limbs: [[[0; LIMBS]; LANES]; 3],
            }),
            rsa_buffer: vec![CacheLine([0; 64]); lines].into_boxed_slice(),
            powers: Powers::new(),
        }
    }

    /// Whether no secret is left behind, as every function here promises.
    pub fn is_zero(&self) -> bool {
        self.staging.bytes.as_flattened().as_flattened().iter().all(|&byte| byte == 0)
            && self.staging.limbs.as_flattened().as_flattened().iter().all(|&limb| limb == 0)
            && self.rsa_buffer.iter().all(|line| line.0 == [0; 64])
            && self.powers.is_zero()
    }
}

/// Inputs and results in transit.
#[repr(C, align(64))]
struct Staging {
    bytes: [[[u8; RsaSize::Rsa4096.bytes()]; LANES]; 2],
    limbs: [[[u64; LIMBS]; LANES]; 3],
}

impl Staging {
    fn wipe_bytes(&mut self, used: usize) {
        for lane in self.bytes.as_flattened_mut() {
            wipe(&mut lane[..used]);
        }
    }

    fn wipe_limbs(&mut self) {
        wipe_limbs(self.limbs.as_flattened_mut().as_flattened_mut());
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

impl CacheLine {
    fn wipe(lines: &mut [Self]) {
        lines.iter_mut().for_each(|line| wipe(&mut line.0));
    }
}

fn bits(size: RsaSize) -> c_int {
    size.bits() as c_int
}
