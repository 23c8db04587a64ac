//! How functions of Envoy begin that somebody has read, by their machine code. Two points stand for a byte that differs
//! between builds: a part of a distance. The same letter twice, from G on, stands for a byte of a number that is read
//! from there, little-endian.

/// A function.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// The code it had in the releases so far.
    codes: &'static [&'static str],
    /// How many functions of a class have it, one after the other: the first is meant.
    pub(super) overloads: usize,
}

/// `GzipCompressorFactory`.
pub(super) const COMPRESSORS: [Shape; 1] = [Shape {
    name: "createCompressor",
    codes: &[concat!(
        // rsi is the factory, rdi the place for the result.
        "554889e54157415653504989f74989febf70000000e8........4889c3418b77204889c7e8........",
        // init(level, strategy, window bits, memory level)
        "498b7708498b571049634f1c4d6347184889dfe8........49891e4c89f04883c4085b415e415f5dc3",
    )],
    overloads: 1,
}];

/// `GzipDecompressorFactory`.
pub(super) const DECOMPRESSORS: [Shape; 1] = [Shape {
    name: "createDecompressor",
    codes: &[concat!(
        // rsi is the factory, rdx the prefix of the statistics, rdi the place for the result. The scope is at 8.
        "554889e5415741564155415453504989d44989f74989fe4c8b6e08bfb0000000e8........4889c3",
        // ZlibDecompressorImpl(scope, prefix, chunk size, ratio); init(window bits)
        "418b4f144d8b47184889c74c89ee4c89e2e8........496377104889dfe8........49891e4c89f0",
    )],
    overloads: 1,
}];

/// `ZlibDecompressorImpl`.
pub(super) const ZLIB_DECOMPRESSOR: [Shape; 1] = [Shape {
    name: "decompress(input, output)",
    codes: &[
        // Until 1.39.
        concat!(
            // limit = input.length() * ratio
            "554889e54157415641554154534881ec680100004889d34989f54989ff64488b042528000000488945d04c8bb7a8000000488b064889f7ff90....",
            // input.getRawSlices(nullopt); nothing to do without any
            "....4989c4498b4500488dbdc8feffff4c89ad98feffff4c89ee31d231c9ff5068488b8dc8feffff4889c84883e001743d488b95d0feffff4883",
            "f902733d4885c07417488bbdd0feffff488bb5d8feffff48c1e604e8........4983c7104c89ff4889dee8........e9........488d95d0feff",
            // The name of the feature, for later; the next slice: into the zlib stream, which is at 0x30
            "ff4883f90272c34d0fafe64883e1fe488d04ca48898590feffff4d8d6f104c8d35JJJJJJJJeb22662e0f1f840000000000488b9588feffff4883",
            "c210483b9590feffff0f84........8b4208498b4f3089410848899588feffff488b02488901904c89ffe8........84c074c4498b4730837820",
            // updateOutput(output) if the chunk is full; runtimeFeatureEnabled(name, 60); output.length() > limit; inc()
            "00750b4c89ef4889dee8........be3c0000004c89f7e8IIIIIIII84c074ce488b034889dfff90........4c39e076bd498bbfGGGGGGGG488b07",
            "ff90HHHHHHHH",
        ),
        // Since 1.40.
        concat!(
            "554889e54157415641554154534881ec680100004889d34989f54989ff64488b042528000000488945d04c8bb7a8000000488b064889f7ff90....",
            "....4989c4498b4500488dbdc8feffff4c89ad98feffff4c89ee31d231c9ff5068488b85c8feffff4889c14883e00174094c8badd0feffffeb07",
            "4c8dadd0feffff48c1e1034883e1f00f84........4d0fafe64c01e94c8d35JJJJJJJJ48898d90feffffeb236666666666662e0f1f8400000000",
            "004983c510488b8d90feffff4939cd0f84........418b4508498b4f30894108498b4500488901662e0f1f8400000000004c89ffe8........84",
            "c074c4498b473083782000750c498d7f104889dee8........be3c0000004c89f7e8IIIIIIII84c074cd488b034889dfff90........4c39e076",
            "bc498bbfGGGGGGGG488b07ff90HHHHHHHH",
        ),
    ],
    overloads: 1,
}];

/// In the order of `hasten_envoy_builds::buffer`.
pub(super) const BUFFER: [Shape; 6] = [
    Shape {
        name: "add(data, size)",
        codes: &[
            // Until 1.39, and since 1.40: nothing to do for a size of 0; then the last slice.
            "554889e54157415641554154534881eca800000064488b042528000000488945d04885d20f84........4889d34989f64989ff488d4710",
            "554889e54157415641554154534881ec8800000064488b042528000000488945d04885d20f84........4889d34989f64989ff488b8f28040000",
        ],
        overloads: 1,
    },
    Shape {
        name: "drain(size)",
        codes: &[
            "554889e54157415641554154534881ec980000004889fb64488b042528000000488945d04885f60f84........4989f64c8dbd78ffffff488d8340040000",
            "554889e54157415641554154534881ec880000004889fb64488b042528000000488945d04885f60f84........4989f64c8dbd78ffffff4c8da550ffffff",
        ],
        overloads: 1,
    },
    Shape {
        name: "frontSlice()",
        codes: &[
            "488b8f280400004885c97464554889e5488b8718040000488bb720040000488bbf300400004889f248c1e2074c8d0402",
        ],
        overloads: 1,
    },
    Shape { name: "length()", codes: &["554889e5488b87400400005dc3"], overloads: 1 },
    Shape {
        name: "getRawSlices(max_slices)",
        // As many as there are, or rdx if cl is set.
        codes: &[
            "554889e54157415641554154534883ec184989d64989f74889fb4c8bae280400004939d54d0f42f5",
            "554889e54157415641554154534883ec184989d64989f74889fb488b86280400004839c24c0f43f0",
        ],
        overloads: 1,
    },
    Shape {
        name: "copyOut(start, size, data)",
        codes: &[
            "4c8b87280400004d85c00f84ad000000554889e5415741564155415453504989ce4989d74889fb45",
            "554889e5415741564155415453504889fb488bbf280400004885ff0f848b0000004989ce4989d745",
        ],
        overloads: 1,
    },
];

/// `SslHandshakerImpl`, as what is behind `SslSocket` calls it.
pub(super) const HANDSHAKER: [Shape; 1] = [Shape {
    name: "doHandshake",
    // rdi is the object; it is passed to SSL_do_handshake by the function `ssl` of its table.
    codes: &[
        "554889e54157415641554154534883ec784889fb488b07ff90........4889c7e8GGGGGGGG",
        "554889e5415741564154534883ec704889fb488b07ff90........4889c7e8GGGGGGGG",
    ],
    overloads: 1,
}];

/// In the order of `hasten_envoy_builds::socket`.
pub(super) const SOCKET: [Shape; 3] = [
    Shape {
        name: "~SslSocket()",
        codes: &[
            "554889e54156534889fb488d05........488d481048890f488d88c800000048894f084805f0000000488947104c8b77..4d85f67412",
        ],
        overloads: 1,
    },
    Shape {
        name: "~SslSocket() and delete",
        codes: &[
            "554889e54156534889fb488d05........488d481048890f488d88c800000048894f084805f0000000488947104c8b77..4d85f67416",
        ],
        overloads: 1,
    },
    Shape {
        name: "closeSocket(event)",
        codes: &[
            "554889e54157415641554154534883ec184189d64889fb488b7730488d7dc0e8........4c8b65c04c8b6dc84d39ec7439",
            "554889e5415741564154534883ec204889fb488b7730488d7dc8e8........4c8b7dc84c8b65d04d39e7742d",
        ],
        overloads: 1,
    },
];

/// `SslSocket`, as its handshaker calls it back.
pub(super) const HANDSHAKE_CALLBACKS: [Shape; 1] =
    [Shape { name: "transportSocketCallbacks()", codes: &["554889e5488b47185dc3"], overloads: 1 }];

/// A connection, as its transport socket calls it back: in the order of `hasten_envoy_builds::connection`.
pub(super) const CONNECTION: [Shape; 2] = [
    Shape {
        name: "ioHandle()",
        codes: &["554889e5488b47..488b08488b89..ffffff488d3c08488b04085dff6028"],
        overloads: 2,
    },
    Shape {
        name: "setTransportSocketIsReadable()",
        codes: &[
            // It wants to read; nothing more if reading is disabled.
            "808fHHHHHHHH8083bfGGGGGGGG007401c3554889e5488b47",
            "808fHHHHHHHH0183bfGGGGGGGG007401c3554889e5488b47",
        ],
        overloads: 1,
    },
];

/// `IoSocketHandleImpl`.
pub(super) const IO_HANDLE: [Shape; 1] =
    [Shape { name: "fdDoNotUse()", codes: &["554889e58b47..5dc3"], overloads: 1 }];

/// In the order of `hasten_envoy_builds::x25519`.
pub(super) const X25519: [Shape; 3] = [
    Shape {
        name: "Generate(out)",
        // X25519_keypair(public, &private); CBB_add_bytes(out, public, 32)
        codes: &[
            "554889e54156534883ec304889f364488b042528000000488945e8488d77084c8d75c04c89f7e8........ba200000004889df4c89f6e8GGGGGGGG85c00f95c0",
        ],
        overloads: 1,
    },
    Shape {
        name: "Encap(out, secret, alert, peer)",
        // Generate and Decap, by the table.
        codes: &[
            "554889e5415741564155415453504c89cb4d89c64989cf4989d44989fdc60150488b07ff501884c07427498b4500488b4028",
        ],
        overloads: 1,
    },
    Shape {
        name: "Decap(secret, alert, ciphertext)",
        // secret.Reset(); OPENSSL_malloc(32); X25519(secret, &private, peer)
        codes: &[
            "554889e54157415641554154534883ec184d89c64989cc4989d7488975d04989fdc602500f57c00f2945c031ffe8GGGGGGGG0f57c00f2945c0bf20000000e8HHHHHHHH4889c3",
        ],
        overloads: 1,
    },
];

/// `ECKeyShare`.
pub(super) const EC: [Shape; 1] = [Shape {
    name: "Generate(out)",
    codes: &["554889e54157415653504889f34989fee8........498b7e08498946084885ff7410e8........4d8b7e084d85ff"],
    overloads: 1,
}];

/// `X25519MLKEM768KeyShare`.
pub(super) const HYBRID: [Shape; 1] = [Shape {
    name: "Encap(out, secret, alert, peer)",
    codes: &[concat!(
        "554889e54157415641554154534881ecf81c00004d89ce4d89c74989cc48899518e3ffff4889b510e3ffff4989fd64488b0425280000004889",
        "45d00f57c00f298520e3ffff31ffe8........0f57c00f298520e3ffffbf40000000e8........4889c348898520e3ffff4885c00f845b0100",
        "0048c78528e3ffff400000004983c508488dbd70e7ffff4c89eee8........4c89bd00e3ffff4c89b508e3ffff488dbd00e3ffff488db5e0e2",
        // MLKEM768_parse_public_key(key, the first 1184 bytes)
        "ffffbaa0040000e8........85c00f84e7000000488dbd90e7ffff488db5e0e2ffffe8GGGGGGGG85c00f84cc000000488dbd00e3ffff488db5",
        "f0e2ffffba20000000e8........85c00f84ac0000004883bd08e3ffff000f859e0000004889df4883c720488b95f0e2ffff4c89eee8......",
        // MLKEM768_encap(ciphertext, secret, key)
        "..85c00f8480000000488dbd30e3ffff488d9590e7ffff4889dee8HHHHHHHH488db530e3ffffba40040000",
    )],
    overloads: 1,
}];

/// `SSL_do_handshake(ssl)`: its state is at 0x30, and in that the handshake at 0x118.
pub(super) const DO_HANDSHAKE: Shape = Shape {
    name: "SSL_do_handshake",
    codes: &[
        "554889e54156534883ec104889fb488b4730c780c400000000000000e8........e8........48837b28000f84b5000000488b4330488bb818010000b8010000004885ff",
    ],
    overloads: 1,
};

/// `ssl_private_key_sign(handshake, out, length, room, algorithm, message)`: the credential is in the handshake, and has
/// the private key at 0x10 and the method at 0x18.
pub(super) const SIGN: Shape = Shape {
    name: "ssl_private_key_sign",
    codes: &[
        "554889e54157415641554154534881ec28010000448985e0feffff4989cf488995d0feffff4889b5d8feffff4989fc64488b042528000000488945d04c8b37488b9fGGGGGGGG",
        "554889e54157415641554154534881ec38010000448985d8feffff4989ce488995d0feffff4889b5e0feffff4989ff64488b042528000000488945d04c8b27488b9fGGGGGGGG",
        "554889e54157415641554154534881ec28010000448985e0feffff4989ce488995d0feffff4889b5d8feffff4989fd64488b042528000000488945d04c8b3f488b9fGGGGGGGG",
        "554889e54157415641554154534883ec68448945cc4989ce488955c0488975d04989fd4c8b3f488b9fGGGGGGGG",
    ],
    overloads: 1,
};

/// `EVP_PKEY_get0_RSA(key)`
pub(super) const GET_RSA: Shape = Shape {
    name: "EVP_PKEY_get0_RSA",
    codes: &[
        "554889e553504889fbe8........83f80674073d900300007506488b4308eb",
        "554889e55350837f04067506488b5f08eb20",
    ],
    overloads: 1,
};

/// `EVP_PKEY_get0_EC_KEY(key)`
pub(super) const GET_EC: Shape = Shape {
    name: "EVP_PKEY_get0_EC_KEY",
    codes: &[
        "554889e553504889fbe8........3d980100007506488b5b08eb",
        "554889e55350817f04980100007506488b5f08eb",
    ],
    overloads: 1,
};

/// `rsa_default_private_transform(key, out, in, length)`: n, e, d, p, q, d mod p - 1, d mod q - 1, 1 / q mod p are eight
/// numbers in a row.
pub(super) const RSA: Shape = Shape {
    name: "rsa_default_private_transform",
    codes: &[
        // n, then d, then OPENSSL_malloc(64).
        "554889e54157415641554154534883ec3848837fGG0074764989fc48837f200074",
        "554889e54157415641554154534883ec3848837fGG0074734989fe4883",
    ],
    overloads: 1,
};

/// `ecdsa_sign_impl`'s caller, which checks that the key has a group and a private half.
pub(super) const ECDSA: Shape = Shape {
    name: "ECDSA_sign",
    codes: &[
        concat!(
            "554889e54157415641554154534881ec9801000064488b042528000000488945d0498b41284885c0742848837820007421488d0d........45",
            "31e4bf1a00000031f6ba6700000041b8db000000e9........498b59084885db....498b41GG4885c0",
        ),
        concat!(
            "554889e54157415641554154534881ec980100004989fd64488b042528000000488945d0498b41284885c0742848837820007421488d0d....",
            "....4531ffbf1a00000031f6ba6700000041b8db000000e9........498b59084885db....498b41GG4885c0",
        ),
        concat!(
            "554889e54157415641554154534881eca80100004c898580feffff48898d88feffff48899590feffff4889b598feffff4889bda0feffff6448",
            "8b042528000000488945d0498b41284885c0742848837820007421488d0d........4531e4bf1a00000031f6ba6700000041b8da000000e9..",
            "......498b194885db0f84ac0100004d8b71GG4d85f6",
        ),
    ],
    overloads: 1,
};

/// A number that a pattern has a letter for, and where it is in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    at: usize,
    value: u32,
}

impl Number {
    pub(super) const fn value(self) -> u32 {
        self.value
    }

    /// What is called or referred to, if this is the distance at the end of an instruction of the code at `start`.
    pub(super) fn target(self, start: u64) -> u64 {
        (start + self.at as u64 + 4).wrapping_add_signed(i64::from(self.value.cast_signed()))
    }
}

impl Shape {
    /// Whether the code begins like this function.
    pub(super) fn fits(&self, code: &[u8]) -> bool {
        self.codes.iter().any(|pattern| begins(code, pattern))
    }

    /// The number that the letter stands for in this code, which fits.
    pub(super) fn number(&self, code: &[u8], letter: char) -> Option<Number> {
        let pattern = self.codes.iter().find(|pattern| begins(code, pattern))?;
        let pair = [letter as u8; 2];
        let pairs = pattern.as_bytes().as_chunks::<2>().0;
        let at = pairs.iter().position(|other| *other == pair)?;
        let length = pairs[at..].iter().take_while(|other| **other == pair).count();
        let bytes = code.get(at..at + length)?;
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        Some(Number { at, value })
    }
}

fn begins(code: &[u8], pattern: &str) -> bool {
    let pairs = pattern.as_bytes().as_chunks::<2>().0;
    pairs.len() <= code.len()
        && pairs.iter().zip(code).all(|(pair, byte)| match pair {
            b".." => true,
            [letter @ b'G'..=b'Z', _] => letter == &pair[1],
            digits => str::from_utf8(digits).is_ok_and(|text| u8::from_str_radix(text, 16) == Ok(*byte)),
        })
}

/// Where a function jumps that does nothing else, or only finds the whole object before, from its beginning.
pub(super) fn jump(code: &[u8]) -> Option<i64> {
    // push rbp; mov rbp, rsp; pop rbp; jmp
    const ONLY: &[u8] = &[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xe9];
    // push rbp; mov rbp, rsp; add rdi, -BASE; pop rbp; jmp
    const WHOLE: [&[u8]; 2] = [&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc7], &[0x5d, 0xe9]];
    let distance = code.strip_prefix(ONLY).or_else(|| {
        let (_, rest) = code.strip_prefix(WHOLE[0])?.split_first()?;
        rest.strip_prefix(WHOLE[1])
    })?;
    let at = code.len() - distance.len();
    let (distance, _) = distance.split_first_chunk::<4>()?;
    Some(i64::from(i32::from_le_bytes(*distance)) + at as i64 + 4)
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
        for shape in COMPRESSORS.iter().chain(&BUFFER) {
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
