//! Files, packed ones unpacked into a nameless file beside the temporary ones.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::CoreError;
use crate::map::Mapped;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];
const PIECE: usize = 64 << 10;

/// The bytes of a file, and whether its packed form ended too early.
pub(crate) fn open(path: &Path) -> Result<(Mapped, bool), CoreError> {
    let read = |error| CoreError::Read { path: path.to_owned(), error };
    let packed = |why: String| CoreError::Packed { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(read)?;
    let mut magic = [0; 4];
    let length = file.read(&mut magic).map_err(read)?;
    file.seek(SeekFrom::Start(0)).map_err(read)?;
    if length == 4 && magic == ZSTD {
        let frame =
            ruzstd::decoding::StreamingDecoder::new(file).map_err(|error| packed(error.to_string()))?;
        return unpack(frame).map_err(|error| packed(error.to_string()));
    }
    if magic[..2] == GZIP {
        return unpack(flate2::read::MultiGzDecoder::new(file)).map_err(|error| packed(error.to_string()));
    }
    Ok((Mapped::of(&file).map_err(read)?, false))
}

/// Zeros stay holes: a core file is mostly those.
fn unpack(mut from: impl Read) -> std::io::Result<(Mapped, bool)> {
    let mut to = tempfile::tempfile()?;
    let mut piece = vec![0; PIECE];
    let (mut length, mut cut) = (0_u64, false);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            // What came before is as good as the core of a full disk.
            Err(_) if length > 0 => {
                cut = true;
                break;
            }
            Err(error) => return Err(error),
        };
        length += read as u64;
        if piece[..read].iter().all(|&byte| byte == 0) {
            to.seek(SeekFrom::Start(length))?;
        } else {
            to.write_all(&piece[..read])?;
        }
    }
    to.set_len(length)?;
    Ok((Mapped::of(&to)?, cut))
}
