//! Local storage for programs that do not know of it: a cache for what they read, a fast device for their logs. Both
//! need a directory from the user, so neither is in a plan that nobody asked for.

use std::ffi::OsString;
use std::path::Path;

use hasten_probe::storage::{Durability, Medium};
use hasten_probe::{Cpu, Program};

use super::Accelerator;
use crate::config::Config;
use crate::plan::{Reason, Side};
use crate::preload;
use crate::surroundings::Surroundings;

pub struct ReadCache;
pub struct Wal;

pub(crate) const READ_CACHE: &str = "HASTEN_READ_CACHE";
const READ_CACHE_FILES: &str = "HASTEN_READ_CACHE_FILES";
const READ_CACHE_STABLE: &str = "HASTEN_READ_CACHE_STABLE";
const READ_CACHE_WRITES: &str = "HASTEN_READ_CACHE_WRITES";
pub(crate) const WAL: &str = "HASTEN_WAL";
const WAL_EPHEMERAL: &str = "HASTEN_WAL_EPHEMERAL";

impl Accelerator for ReadCache {
    fn name(&self) -> &'static str {
        "readcache"
    }

    fn summary(&self) -> &'static str {
        "files that do not change are read from a cache on local storage"
    }

    fn library(&self) -> &'static str {
        "libhasten_readcache.so"
    }

    fn uses(&self) -> &'static [&'static str] {
        &[]
    }

    fn needs_asking(&self) -> bool {
        true
    }

    fn judge_host(&self, _: &Cpu, config: &Config, _: &Surroundings) -> Vec<Reason> {
        let Some(cache) = &config.storage.read_cache else {
            return vec![unasked("--read-cache DIRECTORY,SIZE")];
        };
        if !cache.directory.is_dir() {
            return vec![missing(&cache.directory)];
        }
        let place = cache.directory.display();
        let medium = Medium::of(&cache.directory);
        match medium.file_system.as_deref() {
            Some(memory @ ("tmpfs" | "ramfs")) => {
                let why = format!("{place} is in memory ({memory}), where the page cache is already");
                vec![Reason::against(why).fix("name a directory on a local disk")]
            }
            _ => vec![Reason::favour(format!(
                "up to {} in {place}, on {medium}; whether it is faster than the disk is found out by trials",
                in_units(cache.size)
            ))],
        }
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        vec![preload::accepts(program)]
    }

    fn regards(&self, _: &Program) -> bool {
        false
    }

    fn environment(&self, config: &Config, _: &Surroundings) -> Vec<(&'static str, OsString)> {
        let storage = &config.storage;
        let cache = storage.read_cache.iter().map(|cache| (READ_CACHE, cache.as_variable()));
        let files = (!storage.read_cache_files.is_empty())
            .then(|| (READ_CACHE_FILES, storage.read_cache_files.join(":")));
        let stable = storage.read_cache_stable.map(|seconds| (READ_CACHE_STABLE, seconds.to_string()));
        let writes = storage.read_cache_writes.map(|rate| (READ_CACHE_WRITES, rate.to_string()));
        let all = cache.chain(files).chain(stable).chain(writes);
        all.map(|(name, value)| (name, value.into())).collect()
    }
}

impl Accelerator for Wal {
    fn name(&self) -> &'static str {
        "wal"
    }

    fn summary(&self) -> &'static str {
        "new logs are made on a faster durable device, with links in their place"
    }

    fn library(&self) -> &'static str {
        "libhasten_wal.so"
    }

    fn uses(&self) -> &'static [&'static str] {
        &[]
    }

    fn needs_asking(&self) -> bool {
        true
    }

    fn judge_host(&self, _: &Cpu, config: &Config, _: &Surroundings) -> Vec<Reason> {
        let Some(directory) = &config.storage.wal else { return vec![unasked("--wal DIRECTORY")] };
        let (place, medium) = (directory.display(), Medium::of(directory));
        if !directory.is_dir() {
            return vec![missing(directory)];
        }
        match medium.durability() {
            Durability::Lost(why) if !config.storage.wal_ephemeral => vec![
                Reason::against(format!("what is synced to {place} does not last: {why}")).fix(
                    "name a durable device; if these logs may be lost with the machine, say so with --wal-ephemeral",
                ),
            ],
            Durability::Lost(why) => {
                vec![Reason::favour(format!("{place} may be lost with the machine ({why}), as --wal-ephemeral says"))]
            }
            Durability::Flushed(how) => vec![Reason::favour(format!("{place} is on {medium}: {how}"))],
            Durability::Unknown => vec![Reason::favour(format!(
                "{place} is on {medium}, of which the kernel does not say whether it is durable: you do"
            ))],
        }
    }

    fn judge_program(&self, program: &Program) -> Vec<Reason> {
        vec![preload::accepts(program)]
    }

    fn regards(&self, _: &Program) -> bool {
        false
    }

    fn follow_up(&self, _: &Config, _: &Surroundings) -> String {
        "`hasten wal home DIRECTORY` moves its logs back".into()
    }

    fn environment(&self, config: &Config, _: &Surroundings) -> Vec<(&'static str, OsString)> {
        let storage = &config.storage;
        let directory = storage.wal.iter().map(|directory| (WAL, directory.clone().into_os_string()));
        let word = storage.wal_ephemeral.then(|| (WAL_EPHEMERAL, "1".into()));
        directory.chain(word).collect()
    }
}

fn unasked(flag: &str) -> Reason {
    let reason =
        Reason::against("it needs a directory from you").fix(format!("hasten run {flag} -- COMMAND"));
    debug_assert_eq!(reason.side, Side::Against);
    reason
}

fn missing(directory: &Path) -> Reason {
    let place = directory.display();
    Reason::against(format!("{place} is no directory"))
        .fix(format!("mount the device, and make the directory: mkdir -p {place}"))
}

fn in_units(size: u64) -> String {
    match size {
        size if size >= 10 << 30 => format!("{} GiB", size >> 30),
        size => format!("{} MiB", size >> 20),
    }
}
