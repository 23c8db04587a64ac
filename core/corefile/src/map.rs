//! A file as bytes, without reading it.

use std::fs::File;
use std::ops::Deref;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A private, read-only mapping of a whole file.
#[derive(Debug)]
pub(crate) struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

impl Mapped {
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
        if length == 0 {
            return Ok(Self { start: NonNull::dangling(), length });
        }
        // SAFETY: the kernel chooses an address that nothing else uses.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| std::io::Error::other("mapped at nothing"))?;
        Ok(Self { start, length })
    }
}

impl Mapped {
    /// Gives the memory of pages that were read back; they are read again when they are asked for.
    pub(crate) fn relieve(&self) {
        if self.length > 0 {
            // SAFETY: the mapping is ours, private and never written, so its bytes stay those of the file. If the
            // kernel refuses, the pages stay.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.length, Advice::LinuxDontNeed) };
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` begins a mapping of `length` readable bytes, or is dangling for none, and lives as long as
        // `self`. A core file is complete before anybody reads it; the tool's documentation says that cutting one
        // short while it is read ends the reader.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping is ours, and slices of it end with `self`. It cannot fail for a range that was mapped.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

// SAFETY: the bytes are only read, and belong to no thread.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}
