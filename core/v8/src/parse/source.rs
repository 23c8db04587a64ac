//! Where the bytes come from: a plain file or pipe, or one packed by gzip.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver};
use std::{panic, thread};

use flate2::read::MultiGzDecoder;

use super::TraceError;
use super::relay::{self, Taker};

const GZIP: &[u8] = &[0x1f, 0x8b];

/// Other compression formats, and the command that unpacks each.
const PACKED: [(&[u8], &str, &str); 4] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstdcat"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Unpacking is as much work as reading the result, so another thread reads it, in blocks of this size.
const BLOCK: usize = 128 << 10;

/// Passes the unpacked bytes of `source` to `read`.
pub(super) fn unpacked<T: Send>(
    mut source: impl Read,
    name: &str,
    read: impl FnOnce(&mut dyn Read) -> T + Send,
) -> Result<T, TraceError> {
    let mut head = Vec::with_capacity(6);
    source.by_ref().take(6).read_to_end(&mut head).map_err(|error| TraceError::Read { source: error })?;
    if let Some((_, format, command)) = PACKED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(TraceError::Packed { name: name.to_owned(), format, command });
    }
    let is_gzip = head.starts_with(GZIP);
    let mut source = head.as_slice().chain(source);
    Ok(match is_gzip {
        true if relay::is_worth_it() => relayed(MultiGzDecoder::new(source), read),
        true => read(&mut MultiGzDecoder::new(source)),
        false => read(&mut source),
    })
}

/// Calls `read` on another thread and reads `source` on this one; does both here if the system permits no thread.
fn relayed<T: Send, F: FnOnce(&mut dyn Read) -> T + Send>(mut source: impl Read, read: F) -> T {
    thread::scope(|scope| {
        let (giver, taker) = relay::relay::<Vec<u8>>();
        let (fail, failure) = mpsc::channel();
        let mut blocks = Blocks { taker, failure, block: Vec::new(), start: 0 };
        // A closure given to a thread that fails to start is lost, so the work is sent once it runs.
        let (work, works) = mpsc::channel::<F>();
        let reader = thread::Builder::new()
            .name("lines".to_owned())
            .spawn_scoped(scope, move || works.recv().map(|read| read(&mut blocks)));
        let Ok(reader) = reader else { return read(&mut source) };
        let _ = work.send(read);
        let mut block = Vec::new();
        loop {
            block.resize(BLOCK, 0);
            match source.read(&mut block) {
                Ok(0) => break,
                Ok(length) => block.truncate(length),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    // The reader exists until it has seen the end, which is below.
                    let _ = fail.send(error);
                    break;
                }
            }
            giver.give(&mut block);
        }
        drop(giver);
        let result = reader.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        result.expect("it waits for its work")
    })
}

/// The blocks from the other thread, followed by its error.
struct Blocks {
    taker: Taker<Vec<u8>>,
    failure: Receiver<io::Error>,
    block: Vec<u8>,
    start: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.block.len() {
            self.start = 0;
            self.taker.give_back(std::mem::take(&mut self.block));
            match self.taker.take() {
                Some(block) => self.block = block,
                None => return self.failure.try_recv().map_or(Ok(0), Err),
            }
        }
        let rest = &self.block[self.start..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.start += length;
        Ok(length)
    }
}

/// How often progress is reported, besides the end: the first bytes do not predict the remaining time.
const STEP: u64 = 1 << 20;

/// Reports how much has been read.
pub(super) struct Counted<'a, R> {
    source: R,
    bytes: u64,
    reported: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a, R> Counted<'a, R> {
    pub(super) fn new(source: R, progress: &'a mut dyn FnMut(u64)) -> Self {
        Self { source, bytes: 0, reported: 0, progress }
    }
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.bytes += length as u64;
        let is_end = length == 0;
        if is_end || self.bytes - self.reported >= STEP {
            self.reported = self.bytes;
            (self.progress)(self.bytes);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers small pieces, is interrupted between them, and then fails.
    struct Failing<'a>(&'a [u8], bool);

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            match self {
                Self(_, true) => Err(io::ErrorKind::Interrupted.into()),
                Self([], _) => Err(io::Error::other("the disk is gone")),
                Self(rest, _) => {
                    let length = rest.len().min(buffer.len()).min(50_000);
                    buffer[..length].copy_from_slice(&rest[..length]);
                    *rest = &rest[length..];
                    Ok(length)
                }
            }
        }
    }

    #[test]
    fn progress_is_told_in_steps() {
        let mut reported = Vec::new();
        let mut tell = |bytes| reported.push(bytes);
        let mut source = Counted::new(io::repeat(b'x').take(5 * STEP + 10), &mut tell);
        let mut block = [0; 100_000];
        while source.read(&mut block).expect("bytes") > 0 {}
        // The last one is the end.
        assert_eq!((reported.len(), reported.pop()), (5, Some(5 * STEP + 10)));
        let steps: Vec<u64> =
            [0].iter().chain(&reported).zip(&reported).map(|(from, to)| to - from).collect();
        assert!(steps.iter().all(|step| (STEP..STEP + 100_000).contains(step)), "{reported:?}");
    }

    #[test]
    fn bytes_come_in_their_order_and_an_error_behind_them() {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (read, end) = relayed(Failing(&bytes, false), |source| {
            let mut read = Vec::new();
            let end = source.read_to_end(&mut read);
            (read, end.map_err(|error| error.to_string()))
        });
        assert!(read == bytes, "{} bytes", read.len());
        assert_eq!(end, Err("the disk is gone".to_owned()));
    }

    #[test]
    fn who_does_not_read_to_the_end_holds_nobody_up() {
        let first = relayed(io::repeat(7).take(100 << 20), |source| {
            let mut byte = [0];
            source.read_exact(&mut byte).map(|()| byte)
        });
        assert_eq!(first.expect("a byte"), [7]);
    }
}
