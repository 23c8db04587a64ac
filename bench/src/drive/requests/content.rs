use std::io::Read;
use std::sync::{PoisonError, RwLock};

use flate2::bufread::GzDecoder;

use crate::drive::failure::Failure;

/// More encodings of one body than any server makes; others are decompressed each time.
const MAX_KNOWN: usize = 32;

/// How a body is encoded on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::drive) enum Encoding {
    #[default]
    Gzip,
    /// Unencoded.
    Identity,
}

impl Encoding {
    /// Its name in a request and in an answer.
    pub(in crate::drive) fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}

/// The body that an answer must have, and its compressed forms seen so far.
///
/// A server compresses a body the same way each time. Each form is decompressed once, with a decoder that
/// shares no code with what is measured; after that, equal bytes suffice.
#[derive(Debug)]
pub struct Content {
    body: Vec<u8>,
    encoding: Encoding,
    known: RwLock<Vec<Box<[u8]>>>,
}

impl Content {
    #[must_use]
    pub fn new(body: Vec<u8>) -> Self {
        Self { body, encoding: Encoding::Gzip, known: RwLock::default() }
    }

    /// A body that must come unencoded.
    #[must_use]
    pub fn plain(body: Vec<u8>) -> Self {
        Self { encoding: Encoding::Identity, ..Self::new(body) }
    }

    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(in crate::drive) fn check(&self, received: &[u8]) -> Result<(), Failure> {
        match self.encoding {
            Encoding::Gzip => self.check_compressed(received),
            Encoding::Identity if self.body == received => Ok(()),
            Encoding::Identity => Err(Failure::Body),
        }
    }

    fn check_compressed(&self, compressed: &[u8]) -> Result<(), Failure> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|known| **known == *compressed) {
            return Ok(());
        }
        drop(known);
        if !self.is_encoded_by(compressed) {
            return Err(Failure::Body);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_KNOWN {
            known.push(compressed.into());
        }
        Ok(())
    }

    /// Whether `compressed` is one gzip member with this body, and nothing after it.
    fn is_encoded_by(&self, compressed: &[u8]) -> bool {
        let mut decoder = GzDecoder::new(compressed);
        let mut body = Vec::with_capacity(self.body.len());
        // One byte more than expected is enough to know: a bomb must not exhaust the driver's memory.
        let limit = self.body.len() as u64 + 1;
        let complete = decoder.by_ref().take(limit).read_to_end(&mut body).is_ok();
        complete && body == self.body && decoder.into_inner().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_right_encoding_is_known_after_its_first_time() {
        let content = Content::new(b"a body, a body, a body".to_vec());
        for level in [0, 1, 9, 1] {
            content.check(&gzip(content.body(), level)).unwrap();
        }
        assert!((2..=3).contains(&content.known.read().unwrap().len()));
    }

    #[test]
    fn a_plain_body_is_compared_as_it_is() {
        let content = Content::plain(b"a body".to_vec());
        content.check(b"a body").unwrap();
        for wrong in [&b"a bod"[..], b"a body and more", b"", &gzip(b"a body", 6)] {
            assert!(matches!(content.check(wrong), Err(Failure::Body)), "{wrong:?}");
        }
    }

    #[test]
    fn other_bodies_damage_and_trailing_bytes_are_failures() {
        let content = Content::new(b"a body".to_vec());
        let right = gzip(content.body(), 6);
        let mut damaged = right.clone();
        damaged[right.len() - 5] ^= 1;
        let longer = [&right[..], b"x"].concat();
        for wrong in [&gzip(b"another", 6), &gzip(b"a body and more", 6), &damaged, &longer] {
            assert!(matches!(content.check(wrong), Err(Failure::Body)), "{wrong:?}");
        }
        assert!(content.check(&right[..right.len() - 1]).is_err(), "truncated");
        assert!(content.known.read().unwrap().is_empty());
    }
}
