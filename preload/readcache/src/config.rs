//! The settings from the environment, read once. `hasten run` turns `--read-cache` and hasten.toml into these variables,
//! and rejects what cannot be understood; here it means that there is no cache.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// `DIRECTORY,SIZE`
const CACHE: &str = "HASTEN_READ_CACHE";
/// Patterns of file names, separated by colons, in place of the usual ones.
const FILES: &str = "HASTEN_READ_CACHE_FILES";
/// Also any other file that is opened to be read and has not changed for so many seconds.
const STABLE: &str = "HASTEN_READ_CACHE_STABLE";
/// What each process may write into the cache, in MiB a second.
const WRITES: &str = "HASTEN_READ_CACHE_WRITES";
/// `1`: every read that can be answered from the cache is, and every block is kept. For tests.
const EAGER: &str = "HASTEN_READ_CACHE_EAGER";

/// Files that databases and search engines write once: RocksDB and LevelDB, Lucene, ClickHouse.
const USUAL: &str = "*.sst:*.ldb:*.blob:*.cfs:*.doc:*.pos:*.pay:*.tim:*.tip:*.fdt:*.fdx:*.dvd:*.nvd:*.kdd:*.kdi:*.bin:*.mrk:*.mrk2:*.mrk3:*.cmrk2";

const MIB: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) directory: PathBuf,
    pub(crate) budget: u64,
    patterns: Vec<Vec<u8>>,
    /// Seconds.
    pub(crate) stable: Option<u32>,
    /// Bytes a second.
    pub(crate) writes: u64,
    pub(crate) is_eager: bool,
}

/// `None`: there is no cache.
pub(crate) fn get() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    CONFIG.get_or_init(|| Config::of(|name| std::env::var_os(name))).as_ref()
}

impl Config {
    fn of(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<Self> {
        let (directory, budget) = cache(&variable(CACHE)?)?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u32>().ok();
        let files = variable(FILES).filter(|files| !files.is_empty());
        let files = files.as_deref().unwrap_or(OsStr::new(USUAL)).as_bytes();
        let patterns = files.split(|byte| *byte == b':').filter(|pattern| !pattern.is_empty());
        Some(Self {
            directory,
            budget,
            patterns: patterns.map(<[u8]>::to_vec).collect(),
            stable: number(STABLE).filter(|seconds| *seconds > 0),
            writes: number(WRITES).map_or(64, u64::from) * MIB,
            is_eager: variable(EAGER).is_some_and(|value| value == "1"),
        })
    }

    /// Whether a pattern matches the name of a file, without its directory.
    pub(crate) fn names(&self, name: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern, name))
    }
}

/// A directory and a size: `/mnt/nvme,64G`.
fn cache(value: &OsStr) -> Option<(PathBuf, u64)> {
    let value = value.as_bytes();
    let comma = value.iter().rposition(|byte| *byte == b',')?;
    let directory = PathBuf::from(OsStr::from_bytes(&value[..comma]));
    let size = str::from_utf8(&value[comma + 1..]).ok()?;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &size[digits.len()..] {
        "" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    let budget = digits.parse::<u64>().ok()?.checked_mul(factor)?;
    directory.is_absolute().then_some((directory, budget))
}

/// `*` stands for any number of bytes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        [byte, rest @ ..] => name.first() == Some(byte) && matches(rest, &name[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_directory_and_a_size() {
        let cache = |text: &str| cache(OsStr::new(text));
        assert_eq!(cache("/mnt/nvme,64G"), Some(("/mnt/nvme".into(), 64 << 30)));
        assert_eq!(cache("/a,b,1048576"), Some(("/a,b".into(), 1 << 20)));
        for wrong in ["", "/mnt", "mnt,1G", "/mnt,", "/mnt,G", "/mnt,1X", "/mnt,-1", "/mnt,99999999999T"] {
            assert_eq!(cache(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn patterns_match_names() {
        let of = |files: &'static str| {
            Config::of(move |name| match name {
                CACHE => Some("/tmp,1M".into()),
                FILES => Some(files.into()),
                _ => None,
            })
            .expect("a cache")
        };
        let usual = of("");
        for (name, is_matched) in
            [("000012.sst", true), ("x.sst.tmp", false), ("sst", false), ("MANIFEST-1", false)]
        {
            assert_eq!(usual.names(name.as_bytes()), is_matched, "{name}");
        }
        let own = of("a*z:*:");
        assert!(own.names(b"az") && own.names(b"anything"));
        assert!(!of("a*z").names(b"a"));
    }
}
