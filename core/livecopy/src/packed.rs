//! Zstandard, as it is written: a frame for each piece, one after another.
//!
//! Most of what V8 reserves was never touched. A piece of zeros is packed once, and written as often as it comes.

use std::collections::HashMap;
use std::io::{Result, Write};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Frames go out here.
pub(crate) struct Packer<W> {
    to: W,
    zeros: HashMap<usize, Vec<u8>>,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, zeros: HashMap::new() }
    }

    pub(crate) fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.to.write_all(&compress_to_vec(bytes, CompressionLevel::Fastest))
    }

    pub(crate) fn zeros(&mut self, length: usize) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let frame = self
            .zeros
            .entry(length)
            .or_insert_with(|| compress_to_vec(&*vec![0_u8; length], CompressionLevel::Fastest));
        self.to.write_all(frame)
    }

    pub(crate) fn finish(mut self) -> Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, Read};

    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> Result<usize> {
            Err(Error::other("full"))
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_follow_each_other_and_zeros_take_no_room() {
        let mut packer = Packer::new(Vec::new());
        packer.piece(b"a core file").unwrap();
        packer.zeros(1 << 20).unwrap();
        packer.zeros(1 << 20).unwrap();
        packer.piece(&[7; 5000]).unwrap();
        let packed = packer.finish().unwrap();
        assert!(packed.len() < 1000, "{}", packed.len());
        let (mut rest, mut plain) = (&*packed, Vec::new());
        while !rest.is_empty() {
            ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap().read_to_end(&mut plain).unwrap();
        }
        assert_eq!(plain.len(), 11 + (2 << 20) + 5000);
        assert!(plain.starts_with(b"a core file\0") && plain.ends_with(&[7; 5000]));
    }

    #[test]
    fn a_full_disk_is_an_error() {
        assert_eq!(Packer::new(Full).piece(b"text").unwrap_err().to_string(), "full");
    }
}
