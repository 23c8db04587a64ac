//! Zstandard, as it is written: a frame for each piece, one after another.
//!
//! Most of what V8 reserves was never touched. A piece of zeros is packed once, and written as often as it comes.

use std::collections::HashMap;
use std::io::{Result, Write};

use zstd::bulk::Compressor;

/// The lowest: a copy exists as long as it is packed. Higher ones make cores smaller by a tenth, in twice the time.
const LEVEL: i32 = 1;

/// Frames go out here.
pub(crate) struct Packer<W> {
    to: W,
    packer: Compressor<'static>,
    frame: Vec<u8>,
    zeros: HashMap<usize, Vec<u8>>,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(to: W) -> Result<Self> {
        Ok(Self { to, packer: Compressor::new(LEVEL)?, frame: Vec::new(), zeros: HashMap::new() })
    }

    pub(crate) fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.packer.compress_to_buffer(bytes, &mut self.frame)?;
        self.to.write_all(&self.frame)
    }

    pub(crate) fn zeros(&mut self, length: usize) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        if !self.zeros.contains_key(&length) {
            let frame = self.packer.compress(&vec![0_u8; length])?;
            self.zeros.insert(length, frame);
        }
        self.to.write_all(&self.zeros[&length])
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
        let mut packer = Packer::new(Vec::new()).unwrap();
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
        assert_eq!(Packer::new(Full).unwrap().piece(b"text").unwrap_err().to_string(), "full");
    }
}
