//! EMSA-PKCS1-v1_5 (RFC 8017, section 9.2): the padding of TLS 1.2 and older.

/// A hash function as named in a padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DigestKind {
    /// MD5 followed by SHA-1, without a name: TLS 1.0 and 1.1.
    Md5Sha1,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl DigestKind {
    pub const ALL: [Self; 6] =
        [Self::Md5Sha1, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// The length of a digest in bytes.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Md5Sha1 => 36,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The DER of a `DigestInfo` up to the digest itself (RFC 8017, section 9.2, note 1).
    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Md5Sha1 => &[],
            Self::Sha1 => b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
            Self::Sha224 => const { &nist_prefix(0x04, 28) },
            Self::Sha256 => const { &nist_prefix(0x01, 32) },
            Self::Sha384 => const { &nist_prefix(0x02, 48) },
            Self::Sha512 => const { &nist_prefix(0x03, 64) },
        }
    }
}

/// The SHA-2 functions differ only in the last arc of their identifier and in the length.
const fn nist_prefix(arc: u8, length: u8) -> [u8; 19] {
    let mut prefix = *b"\x30\x00\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x00\x05\x00\x04\x00";
    prefix[1] = 17 + length;
    prefix[14] = arc;
    prefix[18] = length;
    prefix
}

/// The minimum number of 0xff bytes.
const MIN_FILL: usize = 8;

/// Fills `out`, as long as the modulus, with the padded digest; `None` if the digest has the wrong length or `out` is
/// too short.
pub fn pad(kind: DigestKind, digest: &[u8], out: &mut [u8]) -> Option<()> {
    let prefix = kind.prefix();
    let fill = out.len().checked_sub(3 + prefix.len() + digest.len())?;
    if digest.len() != kind.output_len() || fill < MIN_FILL {
        return None;
    }
    let (header, rest) = out.split_at_mut(2 + fill);
    header.fill(0xff);
    header[..2].copy_from_slice(&[0, 1]);
    rest[0] = 0;
    rest[1..][..prefix.len()].copy_from_slice(prefix);
    rest[1 + prefix.len()..].copy_from_slice(digest);
    Some(())
}
