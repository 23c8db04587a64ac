//! Files, packed ones unpacked into a nameless file beside the temporary ones.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;

use crate::error::CoreError;
use crate::map::Mapped;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];
const PIECE: usize = 64 << 10;
/// What is unpacked must leave so much of the disk to others, in percent, and no more than so many bytes.
const SPARE: u64 = 5;
const MOST_SPARE: u64 = 1 << 30;
/// The disk is looked at after so many bytes.
const LOOK: u64 = 64 << 20;
/// More memory than any process has.
const MOST: u64 = 1 << 44;

/// The bytes of a file, and whether its packed form ended too early.
pub(crate) fn open(path: &Path) -> Result<(Mapped, bool), CoreError> {
    let read = |error| CoreError::Read { path: path.to_owned(), error };
    let packed = |error: std::io::Error| match error.kind() {
        ErrorKind::StorageFull => CoreError::NoRoom { path: path.to_owned(), folder: std::env::temp_dir() },
        _ => CoreError::Packed { path: path.to_owned(), why: error.to_string() },
    };
    let mut file = File::open(path).map_err(read)?;
    let mut magic = [0; 4];
    let length = file.read(&mut magic).map_err(read)?;
    file.seek(SeekFrom::Start(0)).map_err(read)?;
    if length == 4 && magic == ZSTD {
        return frames(BufReader::with_capacity(PIECE, file)).map_err(packed);
    }
    if magic[..2] == GZIP {
        return unpack(flate2::read::MultiGzDecoder::new(file)).map_err(packed);
    }
    Ok((Mapped::of(&file).map_err(read)?, false))
}

/// Frames of zstd, one after another.
fn frames(mut from: impl BufRead) -> std::io::Result<(Mapped, bool)> {
    let mut to = Unpacked::new()?;
    while !to.cut && !from.fill_buf()?.is_empty() {
        match StreamingDecoder::new(&mut from) {
            Ok(frame) => to.take(frame)?,
            Err(_) if to.length > 0 => to.cut = true,
            Err(error) => return Err(std::io::Error::other(error.to_string())),
        }
    }
    to.finish()
}

fn unpack(from: impl Read) -> std::io::Result<(Mapped, bool)> {
    let mut to = Unpacked::new()?;
    to.take(from)?;
    to.finish()
}

/// A nameless file. Zeros stay holes: a core file is mostly those.
struct Unpacked {
    to: File,
    piece: Vec<u8>,
    length: u64,
    /// Without the holes, since the disk was looked at.
    written: u64,
    cut: bool,
}

impl Unpacked {
    fn new() -> std::io::Result<Self> {
        Ok(Self { to: tempfile::tempfile()?, piece: vec![0; PIECE], length: 0, written: LOOK, cut: false })
    }

    fn take(&mut self, mut from: impl Read) -> std::io::Result<()> {
        loop {
            let read = match from.read(&mut self.piece) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                // What came before is as good as the core of a full disk.
                Err(_) if self.length > 0 => {
                    self.cut = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            self.length += read as u64;
            if self.length > MOST {
                return Err(std::io::Error::other("it is larger unpacked than any memory"));
            }
            if self.piece[..read].iter().all(|&byte| byte == 0) {
                self.to.seek(SeekFrom::Start(self.length))?;
            } else {
                self.room(read as u64)?;
                self.to.write_all(&self.piece[..read])?;
            }
        }
    }

    /// A small file may become a huge one.
    fn room(&mut self, bytes: u64) -> std::io::Result<()> {
        self.written += bytes;
        if self.written < LOOK {
            return Ok(());
        }
        self.written = 0;
        let disk = rustix::fs::fstatvfs(&self.to)?;
        let spare = (disk.f_blocks / 100 * SPARE).min(MOST_SPARE / disk.f_frsize.max(1));
        if disk.f_bavail < spare {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn finish(self) -> std::io::Result<(Mapped, bool)> {
        self.to.set_len(self.length)?;
        Ok((Mapped::of(&self.to)?, self.cut))
    }
}
