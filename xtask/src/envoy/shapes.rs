//! How functions of Envoy begin that somebody has read, by their machine code. Two points stand for a byte that differs
//! between builds: a part of a distance.

/// A function.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// The code it had in the releases so far.
    codes: &'static [&'static str],
}

/// In the order of `hasten_envoy_builds::gzip`.
pub(super) const GZIP: [Shape; 1] = [Shape {
    name: "createCompressor",
    codes: &[concat!(
        // rsi is the factory, rdi the place for the result.
        "554889e54157415653504989f74989febf70000000e8........4889c3418b77204889c7e8........",
        // init(level, strategy, window bits, memory level)
        "498b7708498b571049634f1c4d6347184889dfe8........49891e4c89f04883c4085b415e415f5dc3",
    )],
}];

/// In the order of `hasten_envoy_builds::buffer`.
pub(super) const BUFFER: [Shape; 4] = [
    Shape {
        name: "add(data, size)",
        codes: &[
            // Until 1.39, and since 1.40: nothing to do for a size of 0; then the last slice.
            "554889e54157415641554154534881eca800000064488b042528000000488945d04885d20f84........4889d34989f64989ff488d4710",
            "554889e54157415641554154534881ec8800000064488b042528000000488945d04885d20f84........4889d34989f64989ff488b8f28040000",
        ],
    },
    Shape {
        name: "drain(size)",
        codes: &[
            "554889e54157415641554154534881ec980000004889fb64488b042528000000488945d04885f60f84........4989f64c8dbd78ffffff488d8340040000",
            "554889e54157415641554154534881ec880000004889fb64488b042528000000488945d04885f60f84........4989f64c8dbd78ffffff4c8da550ffffff",
        ],
    },
    Shape {
        name: "frontSlice()",
        codes: &[
            "488b8f280400004885c97464554889e5488b8718040000488bb720040000488bbf300400004889f248c1e2074c8d0402",
        ],
    },
    Shape { name: "length()", codes: &["554889e5488b87400400005dc3"] },
];

impl Shape {
    /// Whether the code begins like this function.
    pub(super) fn fits(&self, code: &[u8]) -> bool {
        self.codes.iter().any(|pattern| begins(code, pattern))
    }
}

fn begins(code: &[u8], pattern: &str) -> bool {
    let pairs = pattern.as_bytes().as_chunks::<2>().0;
    pairs.len() <= code.len()
        && pairs.iter().zip(code).all(|(pair, byte)| match pair {
            b".." => true,
            digits => str::from_utf8(digits).is_ok_and(|text| u8::from_str_radix(text, 16) == Ok(*byte)),
        })
}

/// Where a function jumps that does nothing else, from its beginning.
pub(super) fn jump(code: &[u8]) -> Option<i64> {
    // push rbp; mov rbp, rsp; pop rbp; jmp
    const ONLY: [u8; 6] = [0x55, 0x48, 0x89, 0xe5, 0x5d, 0xe9];
    let (distance, _) = code.strip_prefix(&ONLY)?.split_first_chunk::<4>()?;
    Some(i64::from(i32::from_le_bytes(*distance)) + ONLY.len() as i64 + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_gaps() {
        assert!(begins(&[0x55, 1, 2], "55..02") && begins(&[0x55, 9, 2, 7], "55..02"));
        assert!(!begins(&[0x55, 1, 3], "55..02") && !begins(&[0x55, 1], "55..02"));
    }

    #[test]
    fn patterns_are_whole_bytes_and_distinct() {
        for shape in GZIP.iter().chain(&BUFFER) {
            for code in shape.codes {
                assert!(
                    code.len() % 2 == 0 && code.bytes().all(|byte| byte == b'.' || byte.is_ascii_hexdigit())
                );
            }
        }
    }

    #[test]
    fn distance_of_a_jump_counts_from_the_beginning() {
        assert_eq!(jump(&[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xe9, 6, 0, 0, 0]), Some(16));
        assert_eq!(jump(&[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xe9, 0xf6, 0xff, 0xff, 0xff, 0xcc]), Some(0));
        assert_eq!(jump(&[0xe9, 6, 0, 0, 0]), None);
    }
}
