//! `--out`: the file is made when the recording begins, and gets its name once complete.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::RecordError;
use super::runtime;

#[derive(Debug)]
pub(super) struct Target {
    file: PathBuf,
    part: PathBuf,
    handle: File,
    is_named: bool,
}

impl Target {
    pub(super) fn open(file: &Path) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Output { file: file.to_owned(), error };
        let name = file.file_name().filter(|_| !file.is_dir());
        let Some(name) = name else {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
        };
        let mut part = name.to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = file.with_file_name(part);
        let handle =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        Ok(Self { file: file.to_owned(), part, handle, is_named: false })
    }

    /// Moves the recording here. The runtime folder may be in memory, so the recording does not stay there.
    pub(super) fn fill(mut self, recording: &Path) -> Result<PathBuf, RecordError> {
        let unreadable = |error| RecordError::Recording { file: recording.to_owned(), error };
        let mut source = open(recording).map_err(unreadable)?;
        let copied = io::copy(&mut source, &mut self.handle).and_then(|_| self.handle.sync_all());
        let named = copied.and_then(|()| fs::rename(&self.part, &self.file));
        named.map_err(|error| RecordError::Output { file: self.file.clone(), error })?;
        self.is_named = true;
        let _ = fs::remove_file(recording);
        Ok(self.file.clone())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn open(recording: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(recording)?;
    if runtime::is_own_file(&file.metadata()?) {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of this user"))
}
