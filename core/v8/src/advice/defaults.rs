//! V8's own choice for the size of a semi-space. It depends on the release, and on the container's memory limit.

use super::MIB;

const GIB: u64 = 1024 * MIB;

/// Measured, by memory limit: from 4 GB on (and without a limit), 2 GB, 1 GB, 512 MB; in MB.
const SEMI_SPACE: [(u32, [u64; 4]); 4] =
    [(20, [16, 8, 4, 1]), (22, [16, 8, 4, 1]), (24, [64, 32, 16, 1]), (26, [32, 16, 8, 4])];

/// One semi-space, in bytes, if known.
pub(super) fn semi_space(major: u32, memory_limit: Option<u64>) -> Option<u64> {
    let (_, sizes) = SEMI_SPACE.iter().find(|(release, _)| *release == major)?;
    let at = match memory_limit.unwrap_or(u64::MAX) {
        4294967296.. => 0,
        limit if limit >= 2 * GIB => 1,
        limit if limit >= GIB => 2,
        limit if limit <= GIB / 2 => 3,
        // Between 512 MB and 1 GB it changes from one to the other.
        _ => return None,
    };
    Some(sizes[at] * MIB)
}

/// The size without a limit.
pub(super) fn unlimited(major: u32) -> Option<u64> {
    semi_space(major, None)
}
