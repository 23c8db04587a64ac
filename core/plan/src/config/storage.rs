//! `[readcache]` and `[wal]` in `hasten.toml`, and the values of their flags.

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::file::{Reader, Value};

/// Where files are read from and logs written to, besides where the program put them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageConfig {
    pub read_cache: Option<ReadCache>,
    /// Patterns of file names, in place of the usual ones.
    pub read_cache_files: Vec<String>,
    /// Also files that have not changed for so many seconds.
    pub read_cache_stable: Option<u64>,
    /// MiB that each process may write into the cache in a second.
    pub read_cache_writes: Option<u64>,
    /// A directory on the fast device for logs.
    pub wal: Option<PathBuf>,
    /// The user's word that its content need not outlive the machine.
    pub wal_ephemeral: bool,
}

impl StorageConfig {
    /// Whether an accelerator has what it needs from the user.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        match name {
            "readcache" => self.read_cache.is_some(),
            "wal" => self.wal.is_some(),
            _ => false,
        }
    }
}

/// A directory for the cache, and its size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCache {
    pub directory: PathBuf,
    pub size: u64,
}

/// The smallest cache of which anything can be expected.
const LEAST: u64 = 1 << 20;

impl ReadCache {
    /// Reads `DIRECTORY,SIZE`; the error says what is wrong and what to do.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let example = "write a directory and a size, such as /mnt/nvme/cache,64G".to_owned();
        let Some((directory, size)) = text.rsplit_once(',') else {
            return Err((format!("`{text}` has no size"), example));
        };
        let Some(size) = bytes(size) else {
            return Err((
                format!("`{size}` is no size"),
                "write a number with K, M, G or T behind it".into(),
            ));
        };
        if size < LEAST {
            return Err((format!("{size} bytes are too few"), "allow at least 1M".into()));
        }
        Ok(Self { directory: absolute(Path::new(directory))?, size })
    }

    /// As the library reads it.
    pub(crate) fn as_variable(&self) -> String {
        format!("{},{}", self.directory.display(), self.size)
    }
}

/// The directory for logs.
pub fn wal_directory(text: &str) -> Result<PathBuf, (String, String)> {
    absolute(Path::new(text))
}

fn absolute(path: &Path) -> Result<PathBuf, (String, String)> {
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    // The program may change its own directory.
    Err((format!("`{}` is no absolute path", path.display()), "begin it with a slash".into()))
}

/// A number of bytes, such as `64G`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

const CACHE_KEYS: [&str; 5] = ["directory", "size", "files", "stable", "writes"];
const WAL_KEYS: [&str; 2] = ["directory", "ephemeral"];

impl Reader<'_> {
    pub(super) fn read_cache(
        &self,
        table: &Value<'_>,
        config: &mut StorageConfig,
    ) -> Result<(), ConfigError> {
        let (mut directory, mut size) = (None, None);
        for (key, value) in self.table("readcache", table)? {
            match key.get_ref().as_ref() {
                "directory" => directory = Some(self.file("directory", value)?),
                "size" => size = Some(self.size(value)?),
                "files" => config.read_cache_files = self.patterns(value)?,
                "stable" => config.read_cache_stable = Some(self.count("stable", value, u32::MAX.into())?),
                "writes" => config.read_cache_writes = Some(self.count("writes", value, 1 << 20)?),
                name => return Err(self.unknown(key.span(), ("key", " in [readcache]"), name, &CACHE_KEYS)),
            }
        }
        match (directory, size) {
            (Some(directory), Some(size)) => {
                let directory = std::path::absolute(&directory).unwrap_or(directory);
                config.read_cache = Some(ReadCache { directory, size });
                Ok(())
            }
            _ => Err(self.wrong("readcache", "a table with `directory` and `size`", table)),
        }
    }

    pub(super) fn wal(&self, table: &Value<'_>, config: &mut StorageConfig) -> Result<(), ConfigError> {
        for (key, value) in self.table("wal", table)? {
            match key.get_ref().as_ref() {
                "directory" => {
                    let directory = self.file("directory", value)?;
                    config.wal = Some(std::path::absolute(&directory).unwrap_or(directory));
                }
                "ephemeral" => config.wal_ephemeral = self.boolean("ephemeral", value)?,
                name => return Err(self.unknown(key.span(), ("key", " in [wal]"), name, &WAL_KEYS)),
            }
        }
        if config.wal.is_some() { Ok(()) } else { Err(self.wrong("wal", "a table with `directory`", table)) }
    }

    fn size(&self, value: &Value<'_>) -> Result<u64, ConfigError> {
        let size = value.get_ref().as_str().and_then(bytes).filter(|size| *size >= LEAST);
        size.ok_or_else(|| self.wrong("size", "a size of at least \"1M\", such as \"64G\"", value))
    }

    fn patterns(&self, value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
        let expected = "a list of names, such as [\"*.sst\"]";
        let list = value.get_ref().as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| self.wrong("files", expected, value))?;
        let pattern = |item: &Value<'_>| {
            let text = item.get_ref().as_str().filter(|text| !text.is_empty() && !text.contains([':', '/']));
            text.map(str::to_owned).ok_or_else(|| self.wrong("files", expected, item))
        };
        list.iter().map(pattern).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_needs_a_directory_and_a_size() {
        let cache = ReadCache::parse("/mnt/a,b,64G").expect("a cache");
        assert_eq!((cache.directory.to_str(), cache.size), (Some("/mnt/a,b"), 64 << 30));
        assert_eq!(cache.as_variable(), "/mnt/a,b,68719476736");
        for wrong in ["/mnt", "mnt,1G", "/mnt,1X", "/mnt,", "/mnt,1K", "/mnt,99999999999T"] {
            assert!(ReadCache::parse(wrong).is_err(), "{wrong}");
        }
    }
}
