//! HMAC, HKDF and the key derivations of TLS over the host's hash, without the host's frameworks around them.
//!
//! They replace `EVP_KDF_derive` and `EVP_Q_mac`, which cost OpenSSL more in look-ups and allocations than in
//! hashing. A key is absorbed once ([`Hmac::new`]) and then serves any number of messages: the TLS 1.3 key schedule
//! expands every secret several times.

use crate::hash::{Hash, MAX_BLOCK, MAX_OUTPUT, digest_into};
use crate::memory::wipe;

/// HMAC (RFC 2104) with its key absorbed.
#[derive(Clone)]
pub struct Hmac<H: Hash> {
    inner: H,
    outer: H,
}

impl<H: Hash> Hmac<H> {
    pub fn new(key: &[u8]) -> Self {
        let mut block = [0; MAX_BLOCK];
        if key.len() <= H::BLOCK {
            block[..key.len()].copy_from_slice(key);
        } else {
            let mut digest = [0; MAX_OUTPUT];
            digest_into::<H>(&[key], &mut digest);
            block[..H::OUTPUT].copy_from_slice(&digest[..H::OUTPUT]);
            wipe(&mut digest);
        }
        let block = &mut block[..H::BLOCK];
        let mut absorb = |pad: u8| {
            block.iter_mut().for_each(|byte| *byte ^= pad);
            let mut state = H::new();
            state.update(block);
            state
        };
        let inner = absorb(0x36);
        // Applied on top of the inner pad, this XOR leaves the outer one.
        let outer = absorb(0x36 ^ 0x5c);
        wipe(block);
        Self { inner, outer }
    }

    /// The MAC of `parts`, concatenated, in the first [`Hash::OUTPUT`] bytes of `out`.
    fn mac_into(&self, parts: &[&[u8]], out: &mut [u8; MAX_OUTPUT]) {
        let mut inner = self.inner.clone();
        parts.iter().for_each(|part| inner.update(part));
        inner.finish(&mut out[..H::OUTPUT]);
        let mut outer = self.outer.clone();
        outer.update(&out[..H::OUTPUT]);
        outer.finish(&mut out[..H::OUTPUT]);
    }

    /// The MAC of `parts`, truncated to the length of `out`; `None` if that is longer than a digest.
    pub fn mac(&self, parts: &[&[u8]], out: &mut [u8]) -> Option<()> {
        if out.len() > H::OUTPUT {
            return None;
        }
        let mut code = [0; MAX_OUTPUT];
        self.mac_into(parts, &mut code);
        out.copy_from_slice(&code[..out.len()]);
        wipe(&mut code);
        Some(())
    }
}

/// HKDF-Extract (RFC 5869): a pseudo-random key of [`Hash::OUTPUT`] bytes; `None` if `out` has another length.
pub fn hkdf_extract<H: Hash>(salt: &[u8], secret: &[u8], out: &mut [u8]) -> Option<()> {
    if out.len() != H::OUTPUT {
        return None;
    }
    Hmac::<H>::new(salt).mac(&[secret], out)
}

/// HKDF-Expand (RFC 5869) of a pseudo-random key, with `info` in parts; `None` if `out` is longer than 255 digests.
pub fn hkdf_expand<H: Hash>(key: &Hmac<H>, info: &[&[u8]], out: &mut [u8]) -> Option<()> {
    if out.len() > 255 * H::OUTPUT {
        return None;
    }
    let mut previous = [0; MAX_OUTPUT];
    for (i, chunk) in out.chunks_mut(H::OUTPUT).enumerate() {
        let mut inner = key.inner.clone();
        if i > 0 {
            inner.update(&previous[..H::OUTPUT]);
        }
        info.iter().for_each(|part| inner.update(part));
        inner.update(&[i as u8 + 1]);
        inner.finish(&mut previous[..H::OUTPUT]);
        let mut outer = key.outer.clone();
        outer.update(&previous[..H::OUTPUT]);
        outer.finish(&mut previous[..H::OUTPUT]);
        chunk.copy_from_slice(&previous[..chunk.len()]);
    }
    wipe(&mut previous);
    Some(())
}

/// The prefix of every label in TLS 1.3.
const LABEL_PREFIX: &[u8] = b"tls13 ";

/// HKDF-Expand-Label (RFC 8446, section 7.1). `label` excludes the prefix `tls13 `.
///
/// `None` if the label, the context or `out` is longer than the structure can express.
pub fn hkdf_expand_label<H: Hash>(
    secret: &Hmac<H>,
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let out_len = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_len = u8::try_from(LABEL_PREFIX.len() + label.len()).ok()?;
    let context_len = u8::try_from(context.len()).ok()?;
    hkdf_expand(secret, &[&out_len, &[label_len], LABEL_PREFIX, label, &[context_len], context], out)
}

/// The PRF of TLS 1.2 (RFC 5246, section 5). The seed comes in two parts: the two randoms, or one part empty.
pub fn tls12_prf<H: Hash>(secret: &Hmac<H>, label: &[u8], seed: [&[u8]; 2], out: &mut [u8]) {
    let [first, second] = seed;
    let mut link = [0; MAX_OUTPUT];
    let mut previous = [0; MAX_OUTPUT];
    let mut block = [0; MAX_OUTPUT];
    secret.mac_into(&[label, first, second], &mut link);
    for chunk in out.chunks_mut(H::OUTPUT) {
        secret.mac_into(&[&link[..H::OUTPUT], label, first, second], &mut block);
        chunk.copy_from_slice(&block[..chunk.len()]);
        previous.copy_from_slice(&link);
        secret.mac_into(&[&previous[..H::OUTPUT]], &mut link);
    }
    [&mut link, &mut previous, &mut block].into_iter().for_each(|secret| wipe(secret));
}
