//! The curves behind one interface. Each function has a stack frame of its own, which its caller wipes.

use graviola::key_agreement::{p256, p384, x25519};
use hasten_names::{Curve, Group};

use super::generator384;
use crate::ecdhe::UNCOMPRESSED;
use crate::limbs;
use crate::memory::wipe_limbs;

/// The public key of a private one, as sent over the wire; false if the private key is out of range.
#[inline(never)]
pub(super) fn public_key(group: Group, private: &[u8], public: &mut [u8]) -> bool {
    let done = match group {
        Group::X25519 => x25519::StaticPrivateKey::try_from_slice(private).map(|private| {
            public.copy_from_slice(&private.public_key().as_bytes());
        }),
        Group::P256 => p256::StaticPrivateKey::from_bytes(private).map(|private| {
            public.copy_from_slice(&private.public_key_uncompressed());
        }),
        Group::P384 => return public_key_384(private, public),
    };
    done.is_ok()
}

fn public_key_384(private: &[u8], public: &mut [u8]) -> bool {
    let Some(mut scalar) = limbs::from_be(private) else { return false };
    let point = generator384::multiply(&scalar);
    wipe_limbs(&mut scalar);
    let Some([x, y]) = point else { return false };
    let (left, right) = public[1..].split_at_mut(Curve::P384.bytes());
    limbs::to_be(&x, left);
    limbs::to_be(&y, right);
    public[0] = UNCOMPRESSED;
    true
}

/// The secret of a private and a public key; false, and nothing written, if one of them is malformed, not on the curve or of
/// low order.
pub(super) fn shared_secret(group: Group, private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
    match group {
        Group::X25519 => x25519_secret(private, peer, shared),
        Group::P256 => p256_secret(private, peer, shared),
        Group::P384 => p384_secret(private, peer, shared),
    }
}

// Each has a frame of its own: in a frame of all three, X25519 would leave what is secret as deep in the stack as P-384 does,
// but less of the stack is wiped behind it.

#[inline(never)]
fn x25519_secret(private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
    let done = x25519::StaticPrivateKey::try_from_slice(private).and_then(|private| {
        let secret = private.diffie_hellman(&x25519::PublicKey::try_from_slice(peer)?)?;
        shared.copy_from_slice(&secret.0);
        Ok(())
    });
    done.is_ok()
}

#[inline(never)]
fn p256_secret(private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
    let done = p256::StaticPrivateKey::from_bytes(private).and_then(|private| {
        let secret = private.diffie_hellman(&p256::PublicKey::from_x962_uncompressed(peer)?)?;
        shared.copy_from_slice(&secret.0);
        Ok(())
    });
    done.is_ok()
}

#[inline(never)]
fn p384_secret(private: &[u8], peer: &[u8], shared: &mut [u8]) -> bool {
    let done = p384::StaticPrivateKey::from_bytes(private).and_then(|private| {
        let secret = private.diffie_hellman(&p384::PublicKey::from_x962_uncompressed(peer)?)?;
        shared.copy_from_slice(&secret.0);
        Ok(())
    });
    done.is_ok()
}

/// The group on a curve.
pub(super) const fn group_of(curve: Curve) -> Group {
    match curve {
        Curve::P256 => Group::P256,
        Curve::P384 => Group::P384,
    }
}
