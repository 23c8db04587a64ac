//! What a connection asks for, where the request waits, and how it is answered.

use hasten_crypto::{
    Algorithm, Curve, DeriveLane, EcKey, EcdsaLane, EcdsaSignature, Group, RsaKey, RsaLane, wipe,
};
use hasten_telemetry::Reason;

/// The largest RSA signature, 4096 bits.
pub const MAX_SIGNATURE: usize = 512;

/// The owner of a waiting operation: a suspended handshake, or a connection whose callback asked to be called again.
pub trait Waker: Copy {
    /// Called when the operation has its verdict and its owner can go on, on the thread that submitted it.
    fn wake(self);
}

/// The operation that a connection needs.
pub enum Request<'a> {
    /// A key and the padded digest.
    Rsa(&'a RsaKey, &'a [u8]),
    /// A key and the digest.
    Ecdsa(&'a EcKey, &'a [u8]),
    /// Our private and the peer's public key.
    Derive(Group, &'a [u8], &'a [u8]),
}

/// How an operation was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The result is in its buffer.
    Done,
    /// This many bytes of the result are in its buffer.
    DoneWith(usize),
    /// Run the original function.
    Bypass(Reason),
    /// The engine has no result that may be released: run the original function.
    Failed,
    /// The connection is being torn down: fail without doing the work.
    Cancelled,
}

/// The memory that an operation reads and writes while it waits.
pub struct Buffers {
    input: [u8; MAX_SIGNATURE],
    peer: [u8; Group::MAX_PUBLIC],
    output: [u8; MAX_SIGNATURE],
    signature: Option<EcdsaSignature>,
}

/// A request that waits. Queues and devices refer to it by address.
pub struct Operation<W> {
    pub(crate) work: Work<'static>,
    pub(crate) verdict: Verdict,
    pub(crate) waker: W,
}

pub(crate) enum Work<'a> {
    Rsa(RsaLane<'a>),
    Ecdsa(Curve, EcdsaLane<'a>),
    Derive(Group, DeriveLane<'a>),
}

impl Request<'_> {
    /// Whether it is an RSA signature, the only operation that devices do.
    #[must_use]
    pub const fn is_rsa(&self) -> bool {
        matches!(self, Request::Rsa(..))
    }

    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Request::Rsa(key, _) => key.size().sign(),
            Request::Ecdsa(key, _) => key.curve().sign(),
            Request::Derive(group, ..) => group.derive(),
        }
    }

    fn output_len(&self) -> usize {
        match self {
            Request::Rsa(key, _) => key.size().bytes(),
            Request::Ecdsa(..) => 0,
            Request::Derive(group, ..) => group.shared_len(),
        }
    }

    /// Copies the request to where it can wait.
    ///
    /// # Safety
    ///
    /// Buffers and keys stay where they are, and nothing else accesses the buffers, until the operation is answered or
    /// withdrawn.
    pub unsafe fn place<W: Waker>(&self, waker: W, buffers: &mut Buffers) -> Operation<W> {
        let output = self.output_len();
        // SAFETY: as the contract says: the lifetimes can be erased here because the operation ends before any of this
        // is freed.
        let work = unsafe {
            match *self {
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
            }
        };
        Operation { work, verdict: Verdict::Cancelled, waker }
    }
}

/// Copies bytes to where they can stay.
///
/// # Safety
///
/// The place lasts as long as the result is used.
unsafe fn keep(to: &mut [u8], from: &[u8]) -> &'static [u8] {
    let kept = &mut to[..from.len()];
    kept.copy_from_slice(from);
    // SAFETY: as the contract says.
    unsafe { &*core::ptr::from_ref(kept) }
}

impl Buffers {
    pub const NEW: Self = Self {
        input: [0; MAX_SIGNATURE],
        peer: [0; Group::MAX_PUBLIC],
        output: [0; MAX_SIGNATURE],
        signature: None,
    };

    /// Passes the result to the caller, and keeps nothing.
    pub fn deliver(&mut self, verdict: Verdict, out: &mut [u8]) -> Verdict {
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
        wipe(&mut self.input);
        wipe(&mut self.output);
        verdict
    }
}

impl<W> Operation<W> {
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Makes it fail whatever its result is: its owner is being torn down.
    pub const fn cancel(&mut self) {
        self.verdict = Verdict::Cancelled;
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match &self.work {
            Work::Rsa(lane) => lane.key.size().sign(),
            Work::Ecdsa(curve, _) => curve.sign(),
            Work::Derive(group, _) => group.derive(),
        }
    }
}
