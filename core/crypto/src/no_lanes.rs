//! In place of the engines for AVX-512 IFMA on a CPU that cannot have it: nothing here can be called, because nobody has a proof.

use hasten_names::{Curve, Group};

use crate::Ifma;
use crate::ecdhe::KeyPair;
use crate::hash::Hash;
use crate::lanes::{DeriveLane, EcdsaLane, LaneEngine, LaneStatus, RsaLane};
use crate::random::Random;
use crate::rsa::RsaKey;

/// Working memory of the engine.
#[derive(Debug)]
pub enum Scratch {}

/// Working memory of single operations.
pub(crate) type Powers = Scratch;

/// A key of single operations.
pub(crate) enum Prepared {}

impl Prepared {
    pub(crate) fn new(ifma: Ifma, _: &RsaKey) -> Self {
        match ifma {}
    }

    pub(crate) fn sign(&self, _: &mut Powers, _: &RsaKey, _: &[u8], _: &mut [u8]) -> bool {
        match *self {}
    }

    pub(crate) fn wipe(&mut self) {
        match *self {}
    }
}

pub(crate) fn leave_nothing(ifma: Ifma) {
    match ifma {}
}

impl LaneEngine for Ifma {
    type Scratch = Scratch;

    const STACK: usize = 0;

    fn detect() -> Option<Self> {
        Self::prove()
    }

    fn scratch(self) -> Scratch {
        match self {}
    }

    fn rsa_private(self, _: &mut Scratch, _: &mut [RsaLane<'_>]) -> LaneStatus {
        match self {}
    }

    fn prepare_alone(self, key: &RsaKey) {
        key.prepare(self);
    }

    fn rsa_alone(self, scratch: &mut Scratch, lane: &mut RsaLane<'_>) -> bool {
        lane.key.sign_alone(self, scratch, lane.padded, lane.signature)
    }

    fn rsa_check(self, _: &mut Scratch, _: &mut [RsaLane<'_>]) -> LaneStatus {
        match self {}
    }

    fn ecdsa_sign<H: Hash>(
        self,
        _: &mut Scratch,
        _: Curve,
        _: &mut [EcdsaLane<'_>],
        _: &mut Random<'_>,
    ) -> LaneStatus {
        match self {}
    }

    fn derive(self, _: &mut Scratch, _: Group, _: &mut [DeriveLane<'_>]) -> LaneStatus {
        match self {}
    }

    fn keygen(
        self,
        _: &mut Scratch,
        _: Group,
        _: usize,
        _: &mut Random<'_>,
        _: impl FnMut(KeyPair),
    ) -> usize {
        match self {}
    }
}
