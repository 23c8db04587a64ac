//! Where the bytes come from: a file or pipe as it is, or packed by gzip.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::TraceError;

const GZIP: &[u8] = &[0x1f, 0x8b];

/// Other ways to pack a log, and the command that unpacks it.
const PACKED: [(&[u8], &str, &str); 4] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstdcat"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Gives the unpacked bytes of `source` to `read`.
pub(super) fn unpacked<T>(
    mut source: impl Read,
    name: &str,
    read: impl FnOnce(&mut dyn Read) -> T,
) -> Result<T, TraceError> {
    let mut head = Vec::with_capacity(6);
    source.by_ref().take(6).read_to_end(&mut head).map_err(|error| TraceError::Read { source: error })?;
    if let Some((_, format, command)) = PACKED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(TraceError::Packed { name: name.to_owned(), format, command });
    }
    let is_gzip = head.starts_with(GZIP);
    let mut source = head.as_slice().chain(source);
    Ok(if is_gzip { read(&mut MultiGzDecoder::new(source)) } else { read(&mut source) })
}

/// Tells how much has been read.
pub(super) struct Counted<'a, R> {
    pub source: R,
    pub bytes: u64,
    pub progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.bytes += length as u64;
        (self.progress)(self.bytes);
        Ok(length)
    }
}
