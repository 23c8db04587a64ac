//! `/etc/ld.so.cache`, the loader's index of the system's libraries (format `glibc-ld.so.cache1.1`).
//!
//! Nothing here trusts the file: it is a fuzz target.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// 64-bit libraries of this machine for glibc: `FLAG_X8664_LIB64 | FLAG_ELF_LIBC6`, or `FLAG_AARCH64_LIB64` in place of the first.
const HOST_GLIBC: u32 = if cfg!(target_arch = "aarch64") { 0x0a03 } else { 0x0303 };

/// The entries for this machine, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    entries: Vec<(String, PathBuf)>,
}

impl Cache {
    /// The system's cache; empty if there is none or it is in another format.
    #[must_use]
    pub fn system() -> Self {
        std::fs::read("/etc/ld.so.cache").map(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    /// Damaged entries are skipped.
    pub fn parse(bytes: &[u8]) -> Self {
        // Caches made for very old loaders begin with a table in the old format.
        let start = bytes.windows(MAGIC.len()).position(|window| window == MAGIC);
        let Some(bytes) = start.and_then(|start| bytes.get(start..)) else { return Self::default() };
        let count = word(bytes, MAGIC.len()).unwrap_or(0) as usize;
        let table = bytes.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY).take(count);
        let entries = table
            .filter(|entry| word(entry, 0) == Some(HOST_GLIBC))
            .filter_map(|entry| {
                let name = string(bytes, word(entry, 4)?)?;
                let path = string(bytes, word(entry, 8)?)?;
                Some((str::from_utf8(name).ok()?.to_owned(), PathBuf::from(OsStr::from_bytes(path))))
            })
            .collect();
        Self { entries }
    }

    /// Every path in the cache for `name`; the loader's choice among them depends on the CPU.
    pub fn paths<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Path> {
        self.entries.iter().filter(move |(entry, _)| entry == name).map(|(_, path)| path.as_path())
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn string(bytes: &[u8], offset: u32) -> Option<&[u8]> {
    bytes.get(offset as usize..)?.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of (flags, name, path) entries.
    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = Vec::new();
        let base = (HEADER + entries.len() * ENTRY) as u32;
        for (flags, name, path) in entries {
            let mut add = |text: &str| {
                let offset = base + strings.len() as u32;
                strings.extend(text.bytes().chain([0]));
                offset
            };
            let (name, path) = (add(name), add(path));
            table.extend([*flags, name, path, 0, 0, 0].map(u32::to_le_bytes).concat());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.resize(HEADER, 0);
        [bytes, table, strings].concat()
    }

    #[test]
    fn finds_the_libraries_of_this_architecture_only() {
        let bytes = cache(&[
            (HOST_GLIBC, "libssl.so.3", "/lib/x86_64-linux-gnu/libssl.so.3"),
            (0x0003, "libssl.so.3", "/lib32/libssl.so.3"),
            (HOST_GLIBC, "libz.so.1", "/lib/x86_64-linux-gnu/libz.so.1"),
        ]);
        let cache = Cache::parse(&bytes);
        let found: Vec<_> = cache.paths("libssl.so.3").collect();
        assert_eq!(found, [Path::new("/lib/x86_64-linux-gnu/libssl.so.3")]);
        assert_eq!(cache.paths("libssl.so.1.1").count(), 0);
    }

    #[test]
    fn is_found_behind_a_table_in_the_old_format() {
        let bytes = [b"ld.so-1.7.0\0\0\0\0\0".to_vec(), cache(&[(HOST_GLIBC, "a.so", "/a.so")])].concat();
        assert_eq!(Cache::parse(&bytes).paths("a.so").count(), 1);
    }

    #[test]
    fn every_truncation_is_survived() {
        let bytes = cache(&[(HOST_GLIBC, "libssl.so.3", "/lib/libssl.so.3")]);
        for length in 0..bytes.len() {
            Cache::parse(&bytes[..length]);
        }
    }
}
