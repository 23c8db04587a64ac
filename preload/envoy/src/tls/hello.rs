//! The client's hello, as far as its key shares are concerned.

/// The key that a client offers for X25519, alone or with ML-KEM-768.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offers<'a> {
    pub(super) x25519: Option<&'a [u8; KEY]>,
    /// The part for X25519.
    pub(super) hybrid: Option<&'a [u8; KEY]>,
}

/// Bytes of a public key of X25519.
pub(super) const KEY: usize = 32;

/// Bytes of one of ML-KEM-768.
const MLKEM_KEY: usize = 1184;

const X25519: u16 = 0x001d;
const X25519_MLKEM768: u16 = 0x11ec;

/// The keys in a hello of TLS 1.3 that is whole, and in one record.
pub(super) fn offers(record: &[u8]) -> Option<Offers<'_>> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    const KEY_SHARE: u16 = 51;
    let mut record = Reader(record);
    let (kind, _version) = (record.byte()?, record.short()?);
    let mut message = record.with_short_length()?;
    if kind != HANDSHAKE || message.byte()? != CLIENT_HELLO {
        return None;
    }
    let length = usize::from(message.byte()?) << 16 | usize::from(message.short()?);
    let mut hello = Reader(message.take(length)?);
    let (_version, _random) = (hello.short()?, hello.take(32)?);
    let (_session, _ciphers, _compression) =
        (hello.with_byte_length()?, hello.with_short_length()?, hello.with_byte_length()?);
    let mut extensions = hello.with_short_length()?;
    while let Some(kind) = extensions.short() {
        let mut extension = extensions.with_short_length()?;
        if kind == KEY_SHARE {
            return shares(extension.with_short_length()?);
        }
    }
    None
}

fn shares(mut shares: Reader<'_>) -> Option<Offers<'_>> {
    let mut offers = Offers { x25519: None, hybrid: None };
    while let Some(group) = shares.short() {
        let Reader(key) = shares.with_short_length()?;
        match group {
            X25519 => offers.x25519 = key.try_into().ok(),
            X25519_MLKEM768 if key.len() == MLKEM_KEY + KEY => {
                offers.hybrid = key[MLKEM_KEY..].try_into().ok();
            }
            _ => {}
        }
    }
    Some(offers)
}

/// Bytes to be read from the beginning.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn with_byte_length(&mut self) -> Option<Self> {
        let length = self.byte()?;
        self.take(length.into()).map(Self)
    }

    fn with_short_length(&mut self) -> Option<Self> {
        let length = self.short()?;
        self.take(length.into()).map(Self)
    }
}
