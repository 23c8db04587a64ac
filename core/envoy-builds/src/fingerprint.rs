//! Whether code is the code that was read.

/// A number that differs for different code: FNV-1a of 64 bits. It guards against other builds, not against somebody who
/// makes one with the same number.
pub const fn fingerprint(code: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < code.len() {
        hash = (hash ^ code[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the algorithm's authors.
    #[test]
    fn it_is_fnv_1a() {
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
