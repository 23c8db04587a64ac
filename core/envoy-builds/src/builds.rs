//! Written by `cargo xtask envoy`.

use crate::{Boring, Build, Class, Code, Function, Gzip, Tls};

/// All known builds, newest first.
#[rustfmt::skip]
pub const BUILDS: &[Build] = &[
    Build {
        release: "1.40.0",
        build_id: "9e5580933739775e8bce696a57a2e1bc99368f23",
        gzip: Gzip {
            compressors: Class {
                table: 0x61fe588,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x21a7e00, length: 128, fingerprint: 0x93f76f3ef8cad2b9 }] },
                ],
            },
            decompressors: Class {
                table: 0x61feb60,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x21ad920, length: 144, fingerprint: 0xb8d34c7b7778ac14 }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x61fed60,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x21b11b0, length: 1248, fingerprint: 0xbebf65d97df96c1d }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x98,
            feature_enabled: 0x5b564f0,
            bomb_protection: 0x8ffee2,
            buffer: Class {
                table: 0x64e3038,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x5b46560, length: 16, fingerprint: 0x81b2a2788631fcd0 }, Code { address: 0x5b45da0, length: 640, fingerprint: 0xdf4b6613b66e171d }] },
                    Function { slot: 12, code: &[Code { address: 0x5b471c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x5b471d0, length: 576, fingerprint: 0xac51871cff250731 }] },
                    Function { slot: 14, code: &[Code { address: 0x5b476e0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 17, code: &[Code { address: 0x5b480c0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x5b47410, length: 352, fingerprint: 0x862f6ac7c685f21b }] },
                    Function { slot: 10, code: &[Code { address: 0x5b46fa0, length: 192, fingerprint: 0xbb99cc4359186393 }] },
                ],
            },
            compressor: 0x61fe7e8,
            decompressor: 0x61fedc0,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x64bca80,
                base: 0,
                functions: &[
                    Function { slot: 49, code: &[Code { address: 0x57e8200, length: 1632, fingerprint: 0x4718a6c6f1d2aab3 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x64bcc20,
                base: 24,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x57e8860, length: 16, fingerprint: 0xc8131279fcca3d9 }, Code { address: 0x57e8200, length: 1632, fingerprint: 0x4718a6c6f1d2aab3 }] },
                ],
            },
            socket: Class {
                table: 0x64bc7a8,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x57e4830, length: 224, fingerprint: 0xf93c41e862e2d648 }] },
                    Function { slot: 1, code: &[Code { address: 0x57e4910, length: 240, fingerprint: 0x424b6dd5eef8e743 }] },
                    Function { slot: 7, code: &[Code { address: 0x57e3bf0, length: 368, fingerprint: 0x67c83d8906bca29e }] },
                ],
            },
            callbacks: Class {
                table: 0x64bc888,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x57e4c30, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x64b5bf0,
                base: 168,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4dba860, length: 32, fingerprint: 0x3d9b89645e3b6634 }] },
                    Function { slot: 6, code: &[Code { address: 0x57af650, length: 80, fingerprint: 0xa5be1c315d7de39 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x64da538,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x28dff50, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x64e81b8,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5bf8970, length: 96, fingerprint: 0xaa2136dd90166e97 }] },
                    Function { slot: 4, code: &[Code { address: 0x5bf89d0, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x5bf8a40, length: 256, fingerprint: 0x46b57076c8b93a81 }] },
                ],
            },
            ec: Class {
                table: 0x64e8140,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5bf8520, length: 240, fingerprint: 0x769258c59cfc86eb }] },
                ],
            },
            hybrid: Class {
                table: 0x64e8220,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x5bf8c60, length: 576, fingerprint: 0xa6dffb4f1d2d99f7 }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x5bfb340, length: 288, fingerprint: 0x39b049b393a7b3d1 },
                sign: Code { address: 0x5c00640, length: 1984, fingerprint: 0xf2ea7de277d311af },
                credential: 0x7e8,
                get_rsa: Code { address: 0x5cab5a0, length: 80, fingerprint: 0x9eed040df5be0268 },
                get_ec: Code { address: 0x5ca5c60, length: 80, fingerprint: 0x93c6922ba40b5575 },
                rsa: Code { address: 0x5c4d5b0, length: 1200, fingerprint: 0xc0d0b696e95e7e3a },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x5c32960, length: 944, fingerprint: 0x876e0f5d74414d1a },
                ec_private: 0x18,
                allocate: 0x5cb0c60,
                free: 0x5cb0e50,
                add_bytes: 0x5c7b560,
                parse_mlkem: 0x5cb1b20,
                encap_mlkem: 0x5cb1ad0,
            },
            epoll_wait: &[0x656aae0, 0x6570780],
        },
    },
    Build {
        release: "1.39.3",
        build_id: "6eb0d2d97489ec1b4e1584a004f5de443d97a41b",
        gzip: Gzip {
            compressors: Class {
                table: 0x6076228,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2103520, length: 128, fingerprint: 0xc374a0407f6a8e9f }] },
                ],
            },
            decompressors: Class {
                table: 0x6076800,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2108a20, length: 144, fingerprint: 0xb54da01cbde8161f }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x6076a00,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x210c250, length: 1264, fingerprint: 0x3aac94dae31f65a4 }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x59dd100,
            bomb_protection: 0x8923f3,
            buffer: Class {
                table: 0x63346b8,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x59cda50, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59cd210, length: 704, fingerprint: 0x187f8e228b0857e5 }] },
                    Function { slot: 12, code: &[Code { address: 0x59ce740, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59ce750, length: 592, fingerprint: 0x641e30b80b47c82e }] },
                    Function { slot: 14, code: &[Code { address: 0x59ceb20, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x59cf3d0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x59ce9a0, length: 384, fingerprint: 0x8023782839f54982 }] },
                    Function { slot: 10, code: &[Code { address: 0x59ce520, length: 192, fingerprint: 0x401829fc0d0822e1 }] },
                ],
            },
            compressor: 0x6076450,
            decompressor: 0x6076a18,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x6310690,
                base: 0,
                functions: &[
                    Function { slot: 47, code: &[Code { address: 0x5671960, length: 1456, fingerprint: 0x21b670b8c78db907 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x6310820,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x5671f10, length: 16, fingerprint: 0x80d726aefd459fbc }, Code { address: 0x5671960, length: 1456, fingerprint: 0x21b670b8c78db907 }] },
                ],
            },
            socket: Class {
                table: 0x63103b8,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x566f1f0, length: 224, fingerprint: 0xd049a942cdcd2c3 }] },
                    Function { slot: 1, code: &[Code { address: 0x566f2d0, length: 240, fingerprint: 0xfdc0603afba035d6 }] },
                    Function { slot: 7, code: &[Code { address: 0x566e110, length: 368, fingerprint: 0x32c0a58e5104459f }] },
                ],
            },
            callbacks: Class {
                table: 0x6310498,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x566f5f0, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x6309f30,
                base: 120,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4c312e0, length: 32, fingerprint: 0xcf0a901a28e522ac }] },
                    Function { slot: 6, code: &[Code { address: 0x5638520, length: 80, fingerprint: 0x9ced6349c2c0a21 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x632c120,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x27c3000, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x6338e68,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a777d0, length: 96, fingerprint: 0xa4dd70e20e93afd6 }] },
                    Function { slot: 4, code: &[Code { address: 0x5a77830, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x5a778a0, length: 256, fingerprint: 0x73d9b0b96342a969 }] },
                ],
            },
            ec: Class {
                table: 0x6338df0,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a77360, length: 240, fingerprint: 0x7f6b194e2124e2ae }] },
                ],
            },
            hybrid: Class {
                table: 0x6338ed0,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x5a77ac0, length: 576, fingerprint: 0xf777945bcc266737 }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x5a7a270, length: 288, fingerprint: 0x85f2118f90760214 },
                sign: Code { address: 0x5a7f320, length: 2000, fingerprint: 0x5284f31535adcfde },
                credential: 0x7e8,
                get_rsa: Code { address: 0x5b28fe0, length: 80, fingerprint: 0x38fbab07eb812764 },
                get_ec: Code { address: 0x5b234d0, length: 80, fingerprint: 0x94b751c6d3063a69 },
                rsa: Code { address: 0x5acb8d0, length: 1216, fingerprint: 0x247a4fc484a38853 },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x5ab1c90, length: 976, fingerprint: 0x23d5cff3d152df92 },
                ec_private: 0x18,
                allocate: 0x5b2e6a0,
                free: 0x5b2e860,
                add_bytes: 0x5af92a0,
                parse_mlkem: 0x5b2f520,
                encap_mlkem: 0x5b2f4d0,
            },
            epoll_wait: &[0x63b8098, 0x63bdb50],
        },
    },
    Build {
        release: "1.39.1",
        build_id: "b579d07d3ad7ee11d32b105e91a5a39ad24718d7",
        gzip: Gzip {
            compressors: Class {
                table: 0x60652e8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2101520, length: 128, fingerprint: 0xe673389997d0e80c }] },
                ],
            },
            decompressors: Class {
                table: 0x60658c0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2106a20, length: 144, fingerprint: 0x43ffee19c86625c5 }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x6065ac0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x210a250, length: 1264, fingerprint: 0x5deff65c84822987 }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x59c6780,
            bomb_protection: 0x89227b,
            buffer: Class {
                table: 0x6323778,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x59b70d0, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59b6890, length: 704, fingerprint: 0x84a564f4501e602b }] },
                    Function { slot: 12, code: &[Code { address: 0x59b7dc0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59b7dd0, length: 592, fingerprint: 0x1a28c5c6b9b3bf94 }] },
                    Function { slot: 14, code: &[Code { address: 0x59b81a0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x59b8a50, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x59b8020, length: 384, fingerprint: 0x8714c950f7403f20 }] },
                    Function { slot: 10, code: &[Code { address: 0x59b7ba0, length: 192, fingerprint: 0xf145ac473bffefef }] },
                ],
            },
            compressor: 0x6065510,
            decompressor: 0x6065ad8,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x62ff750,
                base: 0,
                functions: &[
                    Function { slot: 47, code: &[Code { address: 0x566f960, length: 1456, fingerprint: 0xb39960782bcb8230 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x62ff8e0,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x566ff10, length: 16, fingerprint: 0x80d726aefd459fbc }, Code { address: 0x566f960, length: 1456, fingerprint: 0xb39960782bcb8230 }] },
                ],
            },
            socket: Class {
                table: 0x62ff478,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x566d1f0, length: 224, fingerprint: 0xa28886ca16a321a9 }] },
                    Function { slot: 1, code: &[Code { address: 0x566d2d0, length: 240, fingerprint: 0x118c7265b62aacf6 }] },
                    Function { slot: 7, code: &[Code { address: 0x566c110, length: 368, fingerprint: 0xd1ea41f5a54dd767 }] },
                ],
            },
            callbacks: Class {
                table: 0x62ff558,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x566d5f0, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x62f8ff0,
                base: 120,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4c2f2e0, length: 32, fingerprint: 0xcf0a901a28e522ac }] },
                    Function { slot: 6, code: &[Code { address: 0x5636520, length: 80, fingerprint: 0x9ced6349c2c0a21 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x631b1e0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x27c0fc0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x6327f88,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a5f6d0, length: 96, fingerprint: 0x7d8dcdc6381e19f5 }] },
                    Function { slot: 4, code: &[Code { address: 0x5a5f730, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x5a5f7a0, length: 256, fingerprint: 0xcfe88b1b1113ffab }] },
                ],
            },
            ec: Class {
                table: 0x6327f10,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a5f260, length: 240, fingerprint: 0xe17ac608f086081d }] },
                ],
            },
            hybrid: Class {
                table: 0x6328058,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x5a5fde0, length: 576, fingerprint: 0x1a57a67f41c3216a }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x5a623e0, length: 288, fingerprint: 0x95cbe909614de5b7 },
                sign: Code { address: 0x5a67120, length: 1920, fingerprint: 0x19005120070031f2 },
                credential: 0x7e8,
                get_rsa: Code { address: 0x5b1be80, length: 80, fingerprint: 0x8308a151f91b931f },
                get_ec: Code { address: 0x5b16300, length: 80, fingerprint: 0x1f8e28828a3fb490 },
                rsa: Code { address: 0x5ab03b0, length: 1216, fingerprint: 0x58c789c8235b3d5c },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x5a98e20, length: 976, fingerprint: 0xa16cd08fd28e682f },
                ec_private: 0x18,
                allocate: 0x5b254a0,
                free: 0x5b25660,
                add_bytes: 0x5aed7c0,
                parse_mlkem: 0x5b26300,
                encap_mlkem: 0x5b262b0,
            },
            epoll_wait: &[0x63a6ff8, 0x63acab0],
        },
    },
    Build {
        release: "1.39.0",
        build_id: "9aed67d36497690a0d0dc65305ab823927441b77",
        gzip: Gzip {
            compressors: Class {
                table: 0x6061c68,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x20ff510, length: 128, fingerprint: 0x6b245778240db8ac }] },
                ],
            },
            decompressors: Class {
                table: 0x6062240,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2104a10, length: 144, fingerprint: 0x9a991a7d575ae1 }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x6062440,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2108240, length: 1264, fingerprint: 0xb2a9e43c4122e5cc }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x59c3180,
            bomb_protection: 0x8911a0,
            buffer: Class {
                table: 0x631ff48,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x59b3ad0, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59b3290, length: 704, fingerprint: 0x3921471b3494c7ed }] },
                    Function { slot: 12, code: &[Code { address: 0x59b47c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59b47d0, length: 592, fingerprint: 0xed964c7f4abae54a }] },
                    Function { slot: 14, code: &[Code { address: 0x59b4ba0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x59b5450, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x59b4a20, length: 384, fingerprint: 0x714e6690b3fb4372 }] },
                    Function { slot: 10, code: &[Code { address: 0x59b45a0, length: 192, fingerprint: 0x6296f073eaf20924 }] },
                ],
            },
            compressor: 0x6061e90,
            decompressor: 0x6062458,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x62fbf20,
                base: 0,
                functions: &[
                    Function { slot: 47, code: &[Code { address: 0x566cab0, length: 1456, fingerprint: 0x3f765e96b21176d6 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x62fc0b0,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x566d060, length: 16, fingerprint: 0x80d726aefd459fbc }, Code { address: 0x566cab0, length: 1456, fingerprint: 0x3f765e96b21176d6 }] },
                ],
            },
            socket: Class {
                table: 0x62fbc48,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x566a340, length: 224, fingerprint: 0x9c15d5a5db751887 }] },
                    Function { slot: 1, code: &[Code { address: 0x566a420, length: 240, fingerprint: 0x5c986041ee6ec68f }] },
                    Function { slot: 7, code: &[Code { address: 0x5669260, length: 368, fingerprint: 0xbb1faa686c83d8c1 }] },
                ],
            },
            callbacks: Class {
                table: 0x62fbd28,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x566a740, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x62f57c0,
                base: 120,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4c2d2e0, length: 32, fingerprint: 0xcf0a901a28e522ac }] },
                    Function { slot: 6, code: &[Code { address: 0x5633670, length: 80, fingerprint: 0x9ced6349c2c0a21 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x63179b0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x27bf750, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x6324758,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a5c050, length: 96, fingerprint: 0x7d8dcdc6381e19f5 }] },
                    Function { slot: 4, code: &[Code { address: 0x5a5c0b0, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x5a5c120, length: 256, fingerprint: 0x8fffc00517ca37c9 }] },
                ],
            },
            ec: Class {
                table: 0x63246e0,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x5a5bbe0, length: 240, fingerprint: 0x4f7fcb6238c7ee7f }] },
                ],
            },
            hybrid: Class {
                table: 0x6324828,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x5a5c760, length: 576, fingerprint: 0xafaa09947c6d154b }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x5a5ed60, length: 288, fingerprint: 0x6626426332f3226b },
                sign: Code { address: 0x5a63aa0, length: 1920, fingerprint: 0x93e158cf2f9adbce },
                credential: 0x7e8,
                get_rsa: Code { address: 0x5b18800, length: 80, fingerprint: 0xb4108eb11f5187b2 },
                get_ec: Code { address: 0x5b12c80, length: 80, fingerprint: 0x9e5196fb2fb668a2 },
                rsa: Code { address: 0x5aacd30, length: 1216, fingerprint: 0xfa00c640d8e9bf9a },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x5a957a0, length: 976, fingerprint: 0x40ea8aa89153256a },
                ec_private: 0x18,
                allocate: 0x5b21e20,
                free: 0x5b21fe0,
                add_bytes: 0x5aea140,
                parse_mlkem: 0x5b22c80,
                encap_mlkem: 0x5b22c30,
            },
            epoll_wait: &[0x63a37c8, 0x63a9278],
        },
    },
    Build {
        release: "1.38.3",
        build_id: "0ebfcfe5b0484b89ca85b761da9e05ce75dbda8d",
        gzip: Gzip {
            compressors: Class {
                table: 0x4259068,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x19c7920, length: 128, fingerprint: 0x9caed381482439b9 }] },
                ],
            },
            decompressors: Class {
                table: 0x4259528,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x19cce10, length: 144, fingerprint: 0x90dd904f79e8764e }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x4259728,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x19d05d0, length: 1232, fingerprint: 0xe2e45e25607f0636 }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x3bde8d0,
            bomb_protection: 0x71b86b,
            buffer: Class {
                table: 0x4460128,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x3bbca00, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x3bbc1f0, length: 704, fingerprint: 0x1fb58a36be451e82 }] },
                    Function { slot: 12, code: &[Code { address: 0x3bbd6c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x3bbd6d0, length: 592, fingerprint: 0x3feda23ddf48e3a5 }] },
                    Function { slot: 14, code: &[Code { address: 0x3bbdaa0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x3bbe340, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x3bbd920, length: 384, fingerprint: 0xf5d56ea079e5fb22 }] },
                    Function { slot: 10, code: &[Code { address: 0x3bbd4a0, length: 192, fingerprint: 0xeb33281d35e22e90 }] },
                ],
            },
            compressor: 0x4259290,
            decompressor: 0x4259740,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x443e590,
                base: 0,
                functions: &[
                    Function { slot: 43, code: &[Code { address: 0x3878700, length: 1296, fingerprint: 0x535a26e38a4722a3 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x443e700,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x3878c10, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x3878700, length: 1296, fingerprint: 0x535a26e38a4722a3 }] },
                ],
            },
            socket: Class {
                table: 0x443e2b8,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x3876090, length: 224, fingerprint: 0xad939e4ca6a9916d }] },
                    Function { slot: 1, code: &[Code { address: 0x3876170, length: 240, fingerprint: 0x4d9a9114568f19ff }] },
                    Function { slot: 7, code: &[Code { address: 0x38750c0, length: 336, fingerprint: 0x3e5a976805464c92 }] },
                ],
            },
            callbacks: Class {
                table: 0x443e398,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x3876490, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x4438830,
                base: 120,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2ece1e0, length: 32, fingerprint: 0xcf0a901a28e522ac }] },
                    Function { slot: 6, code: &[Code { address: 0x3845c90, length: 80, fingerprint: 0x9ced6349c2c0a21 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x4459df0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1a7a2f0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x44644d8,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x3c619d0, length: 96, fingerprint: 0x6a285c6c3e00e5be }] },
                    Function { slot: 4, code: &[Code { address: 0x3c61a30, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x3c61aa0, length: 256, fingerprint: 0x9f5414c2832e1e3b }] },
                ],
            },
            ec: Class {
                table: 0x4464460,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x3c61560, length: 240, fingerprint: 0x2b2300e4cd4b087b }] },
                ],
            },
            hybrid: Class {
                table: 0x44645a8,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x3c620e0, length: 576, fingerprint: 0x4b02dd8c127bb689 }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x3c646e0, length: 288, fingerprint: 0x29a4faab876f1769 },
                sign: Code { address: 0x3c69470, length: 1920, fingerprint: 0x9ec75ccc85e63e9e },
                credential: 0x7e8,
                get_rsa: Code { address: 0x3d1e100, length: 80, fingerprint: 0xcf6787d989f8ce86 },
                get_ec: Code { address: 0x3d18580, length: 80, fingerprint: 0xfbfbfeb9c36a7b0b },
                rsa: Code { address: 0x3cb2700, length: 1216, fingerprint: 0xec2f4d1c7c5302f3 },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x3c9b170, length: 976, fingerprint: 0x312c5b0299f38ed6 },
                ec_private: 0x18,
                allocate: 0x3d27720,
                free: 0x3d278e0,
                add_bytes: 0x3cefb10,
                parse_mlkem: 0x3d28580,
                encap_mlkem: 0x3d28530,
            },
            epoll_wait: &[0x44bdcf8, 0x44c3550],
        },
    },
    Build {
        release: "1.38.2",
        build_id: "f387231af8dd7274e37c5ae2cc797cb09a948818",
        gzip: Gzip {
            compressors: Class {
                table: 0x5d998b8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2024420, length: 128, fingerprint: 0xa68e170aeac80b25 }] },
                ],
            },
            decompressors: Class {
                table: 0x5d99d78,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x2029910, length: 144, fingerprint: 0x132c9bf17e9b80ba }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x5d99f78,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x202d0d0, length: 1232, fingerprint: 0x5aae9d40da26ebde }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x57189e0,
            bomb_protection: 0x858684,
            buffer: Class {
                table: 0x6007d18,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x56f6b10, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x56f6300, length: 704, fingerprint: 0x88d1062dd4cc51c7 }] },
                    Function { slot: 12, code: &[Code { address: 0x56f77d0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x56f77e0, length: 592, fingerprint: 0x20752a36f4bde68d }] },
                    Function { slot: 14, code: &[Code { address: 0x56f7bb0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x56f8450, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x56f7a30, length: 384, fingerprint: 0x220250130cb965d1 }] },
                    Function { slot: 10, code: &[Code { address: 0x56f75b0, length: 192, fingerprint: 0x39724e9acc275a62 }] },
                ],
            },
            compressor: 0x5d99ae0,
            decompressor: 0x5d99f90,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x5fe6180,
                base: 0,
                functions: &[
                    Function { slot: 43, code: &[Code { address: 0x53b4d30, length: 1296, fingerprint: 0x96802f2a9c5f29c }] },
                ],
            },
            handshaker_base: Class {
                table: 0x5fe62f0,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x53b5240, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x53b4d30, length: 1296, fingerprint: 0x96802f2a9c5f29c }] },
                ],
            },
            socket: Class {
                table: 0x5fe5ea8,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x53b26c0, length: 224, fingerprint: 0x1533bf849e310428 }] },
                    Function { slot: 1, code: &[Code { address: 0x53b27a0, length: 240, fingerprint: 0xead6d03b292ff681 }] },
                    Function { slot: 7, code: &[Code { address: 0x53b16f0, length: 336, fingerprint: 0x6d50bdaae5c8b9c1 }] },
                ],
            },
            callbacks: Class {
                table: 0x5fe5f88,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x53b2ac0, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x5fe0420,
                base: 120,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4a0bac0, length: 32, fingerprint: 0xcf0a901a28e522ac }] },
                    Function { slot: 6, code: &[Code { address: 0x53822c0, length: 80, fingerprint: 0x9ced6349c2c0a21 }] },
                ],
            },
            read_disabled: 0x110,
            io_handle: Class {
                table: 0x60019e0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x20d6bf0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x600c0c8,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x579b990, length: 96, fingerprint: 0x4bb5bbb628d13e26 }] },
                    Function { slot: 4, code: &[Code { address: 0x579b9f0, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x579ba60, length: 256, fingerprint: 0xbef6496fefd3fae7 }] },
                ],
            },
            ec: Class {
                table: 0x600c050,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x579b520, length: 240, fingerprint: 0x7b9c020a73fb9291 }] },
                ],
            },
            hybrid: Class {
                table: 0x600c198,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x579c0a0, length: 576, fingerprint: 0x9f960d145d7ac2df }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x579e6a0, length: 288, fingerprint: 0x1226fea63922cb3e },
                sign: Code { address: 0x57a3430, length: 1920, fingerprint: 0x54d46ca1ffc77756 },
                credential: 0x7e8,
                get_rsa: Code { address: 0x58580c0, length: 80, fingerprint: 0x42931bf9539955ed },
                get_ec: Code { address: 0x5852540, length: 80, fingerprint: 0xf62b4251b0d3b3df },
                rsa: Code { address: 0x57ec6c0, length: 1216, fingerprint: 0x784b4323507af978 },
                rsa_numbers: 0x10,
                ecdsa: Code { address: 0x57d5130, length: 976, fingerprint: 0xd203ac12e5026bad },
                ec_private: 0x18,
                allocate: 0x58616e0,
                free: 0x58618a0,
                add_bytes: 0x5829ad0,
                parse_mlkem: 0x5862540,
                encap_mlkem: 0x58624f0,
            },
            epoll_wait: &[0x6065cf8, 0x606b770],
        },
    },
    Build {
        release: "1.37.0",
        build_id: "3909deb175ef358202d6ab4f94d683ffc0fdb477",
        gzip: Gzip {
            compressors: Class {
                table: 0x52e5478,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1c55d70, length: 128, fingerprint: 0x71c546f32daadf77 }] },
                ],
            },
            decompressors: Class {
                table: 0x52e5938,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1c5b2b0, length: 144, fingerprint: 0xc7ee7348268ddf1d }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x52e5b38,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1c5eac0, length: 1232, fingerprint: 0x46093a8edb6849ee }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x4cbc390,
            bomb_protection: 0x7a6c67,
            buffer: Class {
                table: 0x5504f08,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x4c9a7b0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x4c99fa0, length: 704, fingerprint: 0xd84b1e3b12220bf }] },
                    Function { slot: 12, code: &[Code { address: 0x4c9b470, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x4c9b480, length: 592, fingerprint: 0xac58c0d3ea1150dc }] },
                    Function { slot: 14, code: &[Code { address: 0x4c9b850, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x4c9c0f0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x4c9b6d0, length: 384, fingerprint: 0x1a2ce9c2eb944d67 }] },
                    Function { slot: 10, code: &[Code { address: 0x4c9b250, length: 192, fingerprint: 0x678974018528592a }] },
                ],
            },
            compressor: 0x52e56a0,
            decompressor: 0x52e5b50,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x54e4018,
                base: 0,
                functions: &[
                    Function { slot: 38, code: &[Code { address: 0x49cc3e0, length: 1296, fingerprint: 0x3b50a65587d104ff }] },
                ],
            },
            handshaker_base: Class {
                table: 0x54e4160,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x49cc8f0, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x49cc3e0, length: 1296, fingerprint: 0x3b50a65587d104ff }] },
                ],
            },
            socket: Class {
                table: 0x54e3d48,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x49ca160, length: 224, fingerprint: 0x6d753c7a10756fb9 }] },
                    Function { slot: 1, code: &[Code { address: 0x49ca240, length: 240, fingerprint: 0x23d4170dc6854e83 }] },
                    Function { slot: 7, code: &[Code { address: 0x49c9190, length: 336, fingerprint: 0xc3772f0481883f6 }] },
                ],
            },
            callbacks: Class {
                table: 0x54e3e28,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x49ca560, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x54de5e0,
                base: 112,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x403b370, length: 32, fingerprint: 0xc87d452cb9f2d9b4 }] },
                    Function { slot: 6, code: &[Code { address: 0x499a140, length: 80, fingerprint: 0x4b1a567b87eb877b }] },
                ],
            },
            read_disabled: 0xf0,
            io_handle: Class {
                table: 0x54febd0,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1d5c3d0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x5509248,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x4d3caf0, length: 96, fingerprint: 0x8fcbd749b7f931bc }] },
                    Function { slot: 4, code: &[Code { address: 0x4d3cb50, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x4d3cbc0, length: 256, fingerprint: 0xd49a2e532f6e197d }] },
                ],
            },
            ec: Class {
                table: 0x55091d0,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x4d3c680, length: 240, fingerprint: 0x95d191d257b96d6f }] },
                ],
            },
            hybrid: Class {
                table: 0x5509318,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x4d3d210, length: 576, fingerprint: 0x2613931204584a9c }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x4d3f490, length: 288, fingerprint: 0x47a8ed113c08dcc6 },
                sign: Code { address: 0x4d43860, length: 1664, fingerprint: 0x6066ac944355d7ce },
                credential: 0x600,
                get_rsa: Code { address: 0x4dcc320, length: 64, fingerprint: 0xcd9543909f015378 },
                get_ec: Code { address: 0x4dca990, length: 64, fingerprint: 0xd281c8a1807ab01c },
                rsa: Code { address: 0x4d85f30, length: 1440, fingerprint: 0x811f848859623fec },
                rsa_numbers: 0x8,
                ecdsa: Code { address: 0x4d737c0, length: 672, fingerprint: 0xa8983d74e29f5ddc },
                ec_private: 0x10,
                allocate: 0x4dd3e90,
                free: 0x4dd4050,
                add_bytes: 0x4da8a50,
                parse_mlkem: 0x4dd4a10,
                encap_mlkem: 0x4dd49e0,
            },
            epoll_wait: &[0x5563318],
        },
    },
    Build {
        release: "1.36.4",
        build_id: "bad8280de85c25b147a90c1d9b8a8c67a13e7134",
        gzip: Gzip {
            compressors: Class {
                table: 0x4f1bb58,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0xc77528b53bb35d42 }] },
                ],
            },
            decompressors: Class {
                table: 0x4f1c018,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeffa0, length: 144, fingerprint: 0x69544484085bfa04 }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x4f1c218,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1af37b0, length: 1232, fingerprint: 0x8bd7c271572d866d }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x4933350,
            bomb_protection: 0x7585e4,
            buffer: Class {
                table: 0x5129540,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x4911ab0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x49112a0, length: 704, fingerprint: 0x5d74d9db4a5850cb }] },
                    Function { slot: 12, code: &[Code { address: 0x4912770, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x4912780, length: 592, fingerprint: 0xe6245d5648c7a82a }] },
                    Function { slot: 14, code: &[Code { address: 0x4912b50, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x49133f0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x49129d0, length: 384, fingerprint: 0xd445e132db305ed7 }] },
                    Function { slot: 10, code: &[Code { address: 0x4912550, length: 192, fingerprint: 0x1f4933a4de2ac3d4 }] },
                ],
            },
            compressor: 0x4f1bd80,
            decompressor: 0x4f1c230,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x5109068,
                base: 0,
                functions: &[
                    Function { slot: 38, code: &[Code { address: 0x4646250, length: 1296, fingerprint: 0xce65070d029a724d }] },
                ],
            },
            handshaker_base: Class {
                table: 0x51091b0,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4646760, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x4646250, length: 1296, fingerprint: 0xce65070d029a724d }] },
                ],
            },
            socket: Class {
                table: 0x5108db0,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x4643d50, length: 224, fingerprint: 0x6182be9b84c9b26 }] },
                    Function { slot: 1, code: &[Code { address: 0x4643e30, length: 240, fingerprint: 0x28319c0f28acd7ae }] },
                    Function { slot: 7, code: &[Code { address: 0x4642d80, length: 336, fingerprint: 0x24211451f2242cd5 }] },
                ],
            },
            callbacks: Class {
                table: 0x5108e90,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x4644150, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x5103048,
                base: 112,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x3de0780, length: 32, fingerprint: 0xc87d452cb9f2d9b4 }] },
                    Function { slot: 6, code: &[Code { address: 0x4612e50, length: 80, fingerprint: 0x4b1a567b87eb877b }] },
                ],
            },
            read_disabled: 0xf0,
            io_handle: Class {
                table: 0x5123020,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1bfa8d0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x512d048,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x4990a80, length: 96, fingerprint: 0xc2e24434d3723126 }] },
                    Function { slot: 4, code: &[Code { address: 0x4990ae0, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x4990b50, length: 256, fingerprint: 0xde271419a884f37b }] },
                ],
            },
            ec: Class {
                table: 0x512cfd0,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x4990610, length: 240, fingerprint: 0x6615e2d62813e09b }] },
                ],
            },
            hybrid: Class {
                table: 0x512d118,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x49911a0, length: 576, fingerprint: 0xcbb9e80e268ee06e }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x4993420, length: 288, fingerprint: 0xc96365f9f3c4bae5 },
                sign: Code { address: 0x49974f0, length: 1664, fingerprint: 0x44e8e0f0e74b259 },
                credential: 0x600,
                get_rsa: Code { address: 0x4a1fde0, length: 64, fingerprint: 0x23663cbce983f840 },
                get_ec: Code { address: 0x4a1e450, length: 64, fingerprint: 0xaae59e137d4a617 },
                rsa: Code { address: 0x49d99f0, length: 1440, fingerprint: 0x63ac16dab6e0ac30 },
                rsa_numbers: 0x8,
                ecdsa: Code { address: 0x49c7280, length: 672, fingerprint: 0x4853e1b242704265 },
                ec_private: 0x10,
                allocate: 0x4a27950,
                free: 0x4a27b10,
                add_bytes: 0x49fc510,
                parse_mlkem: 0x4a284d0,
                encap_mlkem: 0x4a284a0,
            },
            epoll_wait: &[0x5186b60],
        },
    },
    Build {
        release: "1.36.3",
        build_id: "ddabe691e1aaa74b848d0782dab9dbea3b280319",
        gzip: Gzip {
            compressors: Class {
                table: 0x4f1b818,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0x63790d7195581120 }] },
                ],
            },
            decompressors: Class {
                table: 0x4f1bcd8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeffa0, length: 144, fingerprint: 0x7bc8813543268d0e }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x4f1bed8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1af37b0, length: 1232, fingerprint: 0x7fac2792824003a7 }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x4933070,
            bomb_protection: 0x7585eb,
            buffer: Class {
                table: 0x51291a0,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x49117d0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x4910fc0, length: 704, fingerprint: 0x4111d5a3dd1a31a1 }] },
                    Function { slot: 12, code: &[Code { address: 0x4912490, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x49124a0, length: 592, fingerprint: 0x6534de3e85dded53 }] },
                    Function { slot: 14, code: &[Code { address: 0x4912870, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x4913110, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x49126f0, length: 384, fingerprint: 0x9e38072348a0b6f7 }] },
                    Function { slot: 10, code: &[Code { address: 0x4912270, length: 192, fingerprint: 0xb2ff08bb75ff6734 }] },
                ],
            },
            compressor: 0x4f1ba40,
            decompressor: 0x4f1bef0,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x5108cc8,
                base: 0,
                functions: &[
                    Function { slot: 38, code: &[Code { address: 0x4645f70, length: 1296, fingerprint: 0x4a6c2d123c1855c3 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x5108e10,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4646480, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x4645f70, length: 1296, fingerprint: 0x4a6c2d123c1855c3 }] },
                ],
            },
            socket: Class {
                table: 0x5108a10,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x4643a70, length: 224, fingerprint: 0xa0f841d9f4107a7e }] },
                    Function { slot: 1, code: &[Code { address: 0x4643b50, length: 240, fingerprint: 0xce533c5c7b75dc5a }] },
                    Function { slot: 7, code: &[Code { address: 0x4642aa0, length: 336, fingerprint: 0xac255ae1f4048ea2 }] },
                ],
            },
            callbacks: Class {
                table: 0x5108af0,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x4643e70, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x5102ca8,
                base: 112,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x3de0780, length: 32, fingerprint: 0xc87d452cb9f2d9b4 }] },
                    Function { slot: 6, code: &[Code { address: 0x4612b70, length: 80, fingerprint: 0x4b1a567b87eb877b }] },
                ],
            },
            read_disabled: 0xf0,
            io_handle: Class {
                table: 0x5122c80,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1bfa8d0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x512cca8,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x49907a0, length: 96, fingerprint: 0xffeb2cba9a85a986 }] },
                    Function { slot: 4, code: &[Code { address: 0x4990800, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x4990870, length: 256, fingerprint: 0xaa4439c0d87e8d96 }] },
                ],
            },
            ec: Class {
                table: 0x512cc30,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x4990330, length: 240, fingerprint: 0xda4353ee2d8f320b }] },
                ],
            },
            hybrid: Class {
                table: 0x512cd78,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x4990ec0, length: 576, fingerprint: 0x3fb5c3497a2d8593 }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x4993140, length: 288, fingerprint: 0xdab1976008cae47e },
                sign: Code { address: 0x4997210, length: 1664, fingerprint: 0x97ad30d326192f58 },
                credential: 0x600,
                get_rsa: Code { address: 0x4a1fb00, length: 64, fingerprint: 0x651c4cffc7933ff },
                get_ec: Code { address: 0x4a1e170, length: 64, fingerprint: 0x553d51e699af941e },
                rsa: Code { address: 0x49d9710, length: 1440, fingerprint: 0x57cd45518fa9f0d4 },
                rsa_numbers: 0x8,
                ecdsa: Code { address: 0x49c6fa0, length: 672, fingerprint: 0x1470006aa3741076 },
                ec_private: 0x10,
                allocate: 0x4a27670,
                free: 0x4a27830,
                add_bytes: 0x49fc230,
                parse_mlkem: 0x4a281f0,
                encap_mlkem: 0x4a281c0,
            },
            epoll_wait: &[0x51867c0],
        },
    },
    Build {
        release: "1.36.2",
        build_id: "dc2d3098ae5641555f15c71d5bb5ce0060a8015c",
        gzip: Gzip {
            compressors: Class {
                table: 0x4f1a918,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0x73d0f1b301ef6ff2 }] },
                ],
            },
            decompressors: Class {
                table: 0x4f1add8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1aeffa0, length: 144, fingerprint: 0xf284ec8217d9060 }] },
                ],
            },
            zlib_decompressor: Class {
                table: 0x4f1afd8,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1af37b0, length: 1232, fingerprint: 0x2f462eb169328fe }] },
                ],
            },
            data_errors: 0x88,
            increment: 0x88,
            feature_enabled: 0x4932170,
            bomb_protection: 0x758641,
            buffer: Class {
                table: 0x5128280,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x49108d0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x49100c0, length: 704, fingerprint: 0x754233d2a9621960 }] },
                    Function { slot: 12, code: &[Code { address: 0x4911590, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x49115a0, length: 592, fingerprint: 0x5e68b74b87999263 }] },
                    Function { slot: 14, code: &[Code { address: 0x4911970, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                    Function { slot: 16, code: &[Code { address: 0x4912210, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
                    Function { slot: 13, code: &[Code { address: 0x49117f0, length: 384, fingerprint: 0xc9b93015ca0d6392 }] },
                    Function { slot: 10, code: &[Code { address: 0x4911370, length: 192, fingerprint: 0xb2ff08bb75ff6734 }] },
                ],
            },
            compressor: 0x4f1ab40,
            decompressor: 0x4f1aff0,
        },
        tls: Tls {
            handshaker: Class {
                table: 0x5107da8,
                base: 0,
                functions: &[
                    Function { slot: 38, code: &[Code { address: 0x4645080, length: 1296, fingerprint: 0x77d226d293db2298 }] },
                ],
            },
            handshaker_base: Class {
                table: 0x5107ef0,
                base: 40,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x4645590, length: 16, fingerprint: 0x4c28827a6380e7dc }, Code { address: 0x4645080, length: 1296, fingerprint: 0x77d226d293db2298 }] },
                ],
            },
            socket: Class {
                table: 0x5107af0,
                base: 0,
                functions: &[
                    Function { slot: 0, code: &[Code { address: 0x4642b80, length: 224, fingerprint: 0xf5a1b66de9df174e }] },
                    Function { slot: 1, code: &[Code { address: 0x4642c60, length: 240, fingerprint: 0x23bc2305f3190cda }] },
                    Function { slot: 7, code: &[Code { address: 0x4641bb0, length: 336, fingerprint: 0xe5f0f0356268acf2 }] },
                ],
            },
            callbacks: Class {
                table: 0x5107bd0,
                base: 16,
                functions: &[
                    Function { slot: 5, code: &[Code { address: 0x4642f80, length: 16, fingerprint: 0xcefa601c315cc8d4 }] },
                ],
            },
            connection: Class {
                table: 0x5101d88,
                base: 112,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x3ddff50, length: 32, fingerprint: 0xc87d452cb9f2d9b4 }] },
                    Function { slot: 6, code: &[Code { address: 0x4611c80, length: 80, fingerprint: 0x4b1a567b87eb877b }] },
                ],
            },
            read_disabled: 0xf0,
            io_handle: Class {
                table: 0x5121d60,
                base: 0,
                functions: &[
                    Function { slot: 2, code: &[Code { address: 0x1bfa8d0, length: 16, fingerprint: 0x82b8d76faf67a2b4 }] },
                ],
            },
            x25519: Class {
                table: 0x512bd88,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x498f880, length: 96, fingerprint: 0xc2e24434d3723126 }] },
                    Function { slot: 4, code: &[Code { address: 0x498f8e0, length: 112, fingerprint: 0xf5a5c14fdad62a65 }] },
                    Function { slot: 5, code: &[Code { address: 0x498f950, length: 256, fingerprint: 0x213ba122c98612f7 }] },
                ],
            },
            ec: Class {
                table: 0x512bd10,
                base: 0,
                functions: &[
                    Function { slot: 3, code: &[Code { address: 0x498f410, length: 240, fingerprint: 0x560ff7be13a8c9fb }] },
                ],
            },
            hybrid: Class {
                table: 0x512be58,
                base: 0,
                functions: &[
                    Function { slot: 4, code: &[Code { address: 0x498ffa0, length: 576, fingerprint: 0xc11b19b7683fb1da }] },
                ],
            },
            boring: Boring {
                do_handshake: Code { address: 0x4992220, length: 288, fingerprint: 0x95c52edd338bd594 },
                sign: Code { address: 0x49962f0, length: 1664, fingerprint: 0x2f0386c06f952d42 },
                credential: 0x600,
                get_rsa: Code { address: 0x4a1ebe0, length: 64, fingerprint: 0xcc98fd0f4f56691 },
                get_ec: Code { address: 0x4a1d250, length: 64, fingerprint: 0xa1cc7147df14f1d2 },
                rsa: Code { address: 0x49d87f0, length: 1440, fingerprint: 0xe7a1b1292d3b8fe9 },
                rsa_numbers: 0x8,
                ecdsa: Code { address: 0x49c6080, length: 672, fingerprint: 0xe91a2751c994ae5b },
                ec_private: 0x10,
                allocate: 0x4a26750,
                free: 0x4a26910,
                add_bytes: 0x49fb310,
                parse_mlkem: 0x4a272d0,
                encap_mlkem: 0x4a272a0,
            },
            epoll_wait: &[0x51858a0],
        },
    },
];
