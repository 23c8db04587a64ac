//! Secret scalars from the host's random generator.

use crate::memory::wipe;

/// The host library's DRBG: fills the buffer, or returns false and leaves it undefined.
pub type Random<'a> = dyn FnMut(&mut [u8]) -> bool + 'a;

/// One draw in 2^32 is rejected on P-256 and one in 2^190 on P-384; after this many the generator is broken.
const DRAWS: usize = 8;

/// Draws N limbs until `accept` returns all ones, so the result is uniform in what it accepts.
pub(crate) fn scalar<const N: usize>(
    random: &mut Random<'_>,
    accept: impl Fn(&[u64; N]) -> u64,
) -> Option<[u64; N]> {
    let mut bytes = [[0; 8]; N];
    let mut scalar = None;
    for _ in 0..DRAWS {
        if !random(bytes.as_flattened_mut()) {
            break;
        }
        let candidate = bytes.map(u64::from_le_bytes);
        if accept(&candidate) == u64::MAX {
            scalar = Some(candidate);
            break;
        }
    }
    wipe(bytes.as_flattened_mut());
    scalar
}
