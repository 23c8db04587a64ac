//! Lanes without any arithmetic, on every CPU: what they answer is easy to check, and they fail where a test says so.

use std::cell::Cell;

use hasten_crypto::{
    Curve, DeriveLane, EcdsaLane, Group, Hash, KeyPair, LANES, LaneEngine, LaneStatus, Random, RsaLane,
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripted;

thread_local! {
    static SPOILED: Cell<[bool; LANES]> = const { Cell::new([false; LANES]) };
}

impl Scripted {
    /// These lanes have no result until another call says otherwise.
    pub(crate) fn spoil(lanes: [bool; LANES]) {
        SPOILED.set(lanes);
    }

    /// The RSA signature of this engine.
    pub(crate) fn signature(padded: &[u8]) -> Vec<u8> {
        padded.iter().map(|byte| !byte).collect()
    }

    /// The shared secret of this engine.
    pub(crate) fn secret(private: &[u8], peer: &[u8]) -> Vec<u8> {
        private.iter().zip(peer).map(|(ours, theirs)| ours ^ theirs).collect()
    }
}

/// Answers the lanes that are not spoiled.
fn each<T>(lanes: &mut [T], mut answer: impl FnMut(&mut T)) -> LaneStatus {
    let mut status = LaneStatus::NONE;
    for (at, lane) in lanes.iter_mut().enumerate().filter(|(at, _)| !SPOILED.get()[*at]) {
        answer(lane);
        status.set(at);
    }
    status
}

impl LaneEngine for Scripted {
    const STACK: usize = 0;

    type Scratch = ();

    fn detect() -> Option<Self> {
        Some(Self)
    }

    fn scratch(self) {}

    fn rsa_private(self, (): &mut (), lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        each(lanes, |lane| lane.signature.copy_from_slice(&Self::signature(lane.padded)))
    }

    const SIGNS_ALONE: bool = true;

    fn rsa_alone(self, scratch: &mut (), lane: &mut RsaLane<'_>) -> bool {
        self.rsa_private(scratch, core::slice::from_mut(lane)).all_ok(1)
    }

    fn rsa_check(self, (): &mut (), lanes: &mut [RsaLane<'_>]) -> LaneStatus {
        let mut status = LaneStatus::NONE;
        for (at, lane) in lanes.iter().enumerate() {
            if *lane.signature == *Self::signature(lane.padded) {
                status.set(at);
            }
        }
        status
    }

    /// It has no ECDSA: no lane has a result.
    fn ecdsa_sign<H: Hash>(
        self,
        (): &mut (),
        _: Curve,
        _: &mut [EcdsaLane<'_>],
        _: &mut Random<'_>,
    ) -> LaneStatus {
        LaneStatus::NONE
    }

    fn derive(self, (): &mut (), _: Group, lanes: &mut [DeriveLane<'_>]) -> LaneStatus {
        each(lanes, |lane| lane.shared.copy_from_slice(&Self::secret(lane.private, lane.peer)))
    }

    fn keygen(
        self,
        (): &mut (),
        group: Group,
        count: usize,
        random: &mut Random<'_>,
        mut sink: impl FnMut(KeyPair),
    ) -> usize {
        let mut keys = vec![0; group.private_len() + group.public_len()];
        let pairs = (0..count).map_while(|_| {
            if !random(&mut keys) {
                return None;
            }
            let (private, public) = keys.split_at(group.private_len());
            KeyPair::from_keys(group, private, public)
        });
        pairs.map(&mut sink).count()
    }
}
