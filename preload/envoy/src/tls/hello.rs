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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes behind their length, in so many bytes.
    fn with_length(bytes: usize, content: &[u8]) -> Vec<u8> {
        [&content.len().to_be_bytes()[8 - bytes..], content].concat()
    }

    fn hello(shares: &[(u16, &[u8])]) -> Vec<u8> {
        let shares: Vec<_> = shares
            .iter()
            .flat_map(|(group, key)| [group.to_be_bytes().to_vec(), with_length(2, key)].concat())
            .collect();
        let other = [&[0, 16][..], &with_length(2, b"another extension")].concat();
        let shares = [&[0, 51][..], &with_length(2, &with_length(2, &shares))].concat();
        let hello = [
            &[3, 3][..],
            &[7; 32],
            &with_length(1, &[1; 32]),
            &with_length(2, &[0x13, 1]),
            &with_length(1, &[0]),
            &with_length(2, &[other, shares].concat()),
        ]
        .concat();
        let message = [&[1][..], &with_length(3, &hello)].concat();
        [&[22, 3, 1][..], &with_length(2, &message)].concat()
    }

    #[test]
    fn keys_are_found() {
        let hybrid = [[1; MLKEM_KEY].as_slice(), &[2; KEY]].concat();
        let both = hello(&[(X25519_MLKEM768, &hybrid), (X25519, &[3; KEY])]);
        assert_eq!(offers(&both), Some(Offers { x25519: Some(&[3; KEY]), hybrid: Some(&[2; KEY]) }));
        let one = hello(&[(0x17, &[4; 65]), (X25519, &[3; KEY])]);
        assert_eq!(offers(&one), Some(Offers { x25519: Some(&[3; KEY]), hybrid: None }));
    }

    #[test]
    fn keys_of_another_length_are_not_taken() {
        let wrong = hello(&[(X25519_MLKEM768, &[1; KEY]), (X25519, &[3; KEY + 1])]);
        assert_eq!(offers(&wrong), Some(Offers { x25519: None, hybrid: None }));
        assert_eq!(offers(&hello(&[])), Some(Offers { x25519: None, hybrid: None }));
    }

    #[test]
    fn other_records_and_parts_have_no_keys() {
        let whole = hello(&[(X25519, &[3; KEY])]);
        (0..whole.len()).for_each(|length| assert_eq!(offers(&whole[..length]), None, "{length} bytes"));
        let changed = |at: usize, to: u8| {
            let mut record = whole.clone();
            record[at] = to;
            record
        };
        assert_eq!(offers(&changed(0, 23)), None, "data");
        assert_eq!(offers(&changed(5, 2)), None, "a server's hello");
        assert_eq!(offers(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), None);
        // What comes behind the record is no part of it.
        assert_eq!(offers(&[&whole[..], b"more"].concat()), offers(&whole));
    }
}
