//! Written by `cargo xtask envoy`.

use crate::{Build, Class, Code, Function};

/// All known builds, newest first.
#[rustfmt::skip]
pub const BUILDS: &[Build] = &[
    Build {
        release: "1.40.0",
        build_id: "9e5580933739775e8bce696a57a2e1bc99368f23",
        gzip: Class {
            table: 0x61fe588,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x21a7e00, length: 128, fingerprint: 0x93f76f3ef8cad2b9 }] },
            ],
        },
        buffer: Class {
            table: 0x64e3038,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x5b46560, length: 16, fingerprint: 0x81b2a2788631fcd0 }, Code { address: 0x5b45da0, length: 640, fingerprint: 0xdf4b6613b66e171d }] },
                Function { slot: 12, code: &[Code { address: 0x5b471c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x5b471d0, length: 576, fingerprint: 0xac51871cff250731 }] },
                Function { slot: 14, code: &[Code { address: 0x5b476e0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 17, code: &[Code { address: 0x5b480c0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x61fe7e8,
    },
    Build {
        release: "1.39.3",
        build_id: "6eb0d2d97489ec1b4e1584a004f5de443d97a41b",
        gzip: Class {
            table: 0x6076228,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x2103520, length: 128, fingerprint: 0xc374a0407f6a8e9f }] },
            ],
        },
        buffer: Class {
            table: 0x63346b8,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x59cda50, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59cd210, length: 704, fingerprint: 0x187f8e228b0857e5 }] },
                Function { slot: 12, code: &[Code { address: 0x59ce740, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59ce750, length: 592, fingerprint: 0x641e30b80b47c82e }] },
                Function { slot: 14, code: &[Code { address: 0x59ceb20, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x59cf3d0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x6076450,
    },
    Build {
        release: "1.39.1",
        build_id: "b579d07d3ad7ee11d32b105e91a5a39ad24718d7",
        gzip: Class {
            table: 0x60652e8,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x2101520, length: 128, fingerprint: 0xe673389997d0e80c }] },
            ],
        },
        buffer: Class {
            table: 0x6323778,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x59b70d0, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59b6890, length: 704, fingerprint: 0x84a564f4501e602b }] },
                Function { slot: 12, code: &[Code { address: 0x59b7dc0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59b7dd0, length: 592, fingerprint: 0x1a28c5c6b9b3bf94 }] },
                Function { slot: 14, code: &[Code { address: 0x59b81a0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x59b8a50, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x6065510,
    },
    Build {
        release: "1.39.0",
        build_id: "9aed67d36497690a0d0dc65305ab823927441b77",
        gzip: Class {
            table: 0x6061c68,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x20ff510, length: 128, fingerprint: 0x6b245778240db8ac }] },
            ],
        },
        buffer: Class {
            table: 0x631ff48,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x59b3ad0, length: 16, fingerprint: 0x1c6297162716ee49 }, Code { address: 0x59b3290, length: 704, fingerprint: 0x3921471b3494c7ed }] },
                Function { slot: 12, code: &[Code { address: 0x59b47c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x59b47d0, length: 592, fingerprint: 0xed964c7f4abae54a }] },
                Function { slot: 14, code: &[Code { address: 0x59b4ba0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x59b5450, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x6061e90,
    },
    Build {
        release: "1.38.3",
        build_id: "0ebfcfe5b0484b89ca85b761da9e05ce75dbda8d",
        gzip: Class {
            table: 0x4259068,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x19c7920, length: 128, fingerprint: 0x9caed381482439b9 }] },
            ],
        },
        buffer: Class {
            table: 0x4460128,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x3bbca00, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x3bbc1f0, length: 704, fingerprint: 0x1fb58a36be451e82 }] },
                Function { slot: 12, code: &[Code { address: 0x3bbd6c0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x3bbd6d0, length: 592, fingerprint: 0x3feda23ddf48e3a5 }] },
                Function { slot: 14, code: &[Code { address: 0x3bbdaa0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x3bbe340, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x4259290,
    },
    Build {
        release: "1.38.2",
        build_id: "f387231af8dd7274e37c5ae2cc797cb09a948818",
        gzip: Class {
            table: 0x5d998b8,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x2024420, length: 128, fingerprint: 0xa68e170aeac80b25 }] },
            ],
        },
        buffer: Class {
            table: 0x6007d18,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x56f6b10, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x56f6300, length: 704, fingerprint: 0x88d1062dd4cc51c7 }] },
                Function { slot: 12, code: &[Code { address: 0x56f77d0, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x56f77e0, length: 592, fingerprint: 0x20752a36f4bde68d }] },
                Function { slot: 14, code: &[Code { address: 0x56f7bb0, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x56f8450, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x5d99ae0,
    },
    Build {
        release: "1.37.0",
        build_id: "3909deb175ef358202d6ab4f94d683ffc0fdb477",
        gzip: Class {
            table: 0x52e5478,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x1c55d70, length: 128, fingerprint: 0x71c546f32daadf77 }] },
            ],
        },
        buffer: Class {
            table: 0x5504f08,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x4c9a7b0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x4c99fa0, length: 704, fingerprint: 0xd84b1e3b12220bf }] },
                Function { slot: 12, code: &[Code { address: 0x4c9b470, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x4c9b480, length: 592, fingerprint: 0xac58c0d3ea1150dc }] },
                Function { slot: 14, code: &[Code { address: 0x4c9b850, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x4c9c0f0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x52e56a0,
    },
    Build {
        release: "1.36.4",
        build_id: "bad8280de85c25b147a90c1d9b8a8c67a13e7134",
        gzip: Class {
            table: 0x4f1bb58,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0xc77528b53bb35d42 }] },
            ],
        },
        buffer: Class {
            table: 0x5129540,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x4911ab0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x49112a0, length: 704, fingerprint: 0x5d74d9db4a5850cb }] },
                Function { slot: 12, code: &[Code { address: 0x4912770, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x4912780, length: 592, fingerprint: 0xe6245d5648c7a82a }] },
                Function { slot: 14, code: &[Code { address: 0x4912b50, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x49133f0, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x4f1bd80,
    },
    Build {
        release: "1.36.3",
        build_id: "ddabe691e1aaa74b848d0782dab9dbea3b280319",
        gzip: Class {
            table: 0x4f1b818,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0x63790d7195581120 }] },
            ],
        },
        buffer: Class {
            table: 0x51291a0,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x49117d0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x4910fc0, length: 704, fingerprint: 0x4111d5a3dd1a31a1 }] },
                Function { slot: 12, code: &[Code { address: 0x4912490, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x49124a0, length: 592, fingerprint: 0x6534de3e85dded53 }] },
                Function { slot: 14, code: &[Code { address: 0x4912870, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x4913110, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x4f1ba40,
    },
    Build {
        release: "1.36.2",
        build_id: "dc2d3098ae5641555f15c71d5bb5ce0060a8015c",
        gzip: Class {
            table: 0x4f1a918,
            functions: &[
                Function { slot: 2, code: &[Code { address: 0x1aeaa70, length: 128, fingerprint: 0x73d0f1b301ef6ff2 }] },
            ],
        },
        buffer: Class {
            table: 0x5128280,
            functions: &[
                Function { slot: 4, code: &[Code { address: 0x49108d0, length: 16, fingerprint: 0xf0f9ee4f480899 }, Code { address: 0x49100c0, length: 704, fingerprint: 0x754233d2a9621960 }] },
                Function { slot: 12, code: &[Code { address: 0x4911590, length: 16, fingerprint: 0x8d83f96a69f6bdfa }, Code { address: 0x49115a0, length: 592, fingerprint: 0x5e68b74b87999263 }] },
                Function { slot: 14, code: &[Code { address: 0x4911970, length: 128, fingerprint: 0x5c6538de4bbe06ca }] },
                Function { slot: 16, code: &[Code { address: 0x4912210, length: 16, fingerprint: 0x211fd52d5b18f5e4 }] },
            ],
        },
        compressor: 0x4f1ab40,
    },
];
