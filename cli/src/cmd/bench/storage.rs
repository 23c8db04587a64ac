//! `hasten bench readcache` and `hasten bench wal`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use hasten_bench::storage::{self, Options, Report, Saved, Workload};

use super::{INTERRUPTED, Output, own_program, watch};
use crate::failure::Failure;
use crate::output::print;
use crate::render::say;

const CACHE_EXAMPLES: &str = "\
Examples:
  hasten bench readcache --data /mnt/network --fast /mnt/nvme
  hasten bench readcache --data /mnt/disk --fast /mnt/nvme --limit 3000   as a network disk with 3,000 operations a second

Each directory gets a folder of its own, which is removed at the end. db_bench comes from Debian's rocksdb-tools.

The exit code is 130 after Ctrl-C; finished rows are kept.
";

const WAL_EXAMPLES: &str = "\
Examples:
  hasten bench wal --data /mnt/network --fast /mnt/nvme
  hasten bench wal --data /mnt/disk --fast /mnt/nvme --limit 1000   as a network disk with 1,000 operations a second

Each directory gets a folder of its own, which is removed at the end. db_bench comes from Debian's rocksdb-tools.

The exit code is 130 after Ctrl-C; finished rows are kept.
";

/// RocksDB's random reads, with a cache on a fast device
#[derive(Debug, Args)]
#[command(after_help = CACHE_EXAMPLES, long_about = "\
Runs db_bench on files on a slow disk, in turn as it is and with `hasten run --read-cache`, and compares the time of a \
read: with the cache warm, with the cache empty, and with RocksDB's own persistent cache in its place.")]
pub(super) struct ReadCacheArgs {
    #[command(flatten)]
    storage: StorageArgs,
}

/// RocksDB's synced writes, with its log on a fast device
#[derive(Debug, Args)]
#[command(after_help = WAL_EXAMPLES, long_about = "\
Runs db_bench on a slow disk, in turn as it is, with `hasten run --wal`, and with the whole database on the fast device, \
and compares the time of a synced write.")]
pub(super) struct WalArgs {
    #[command(flatten)]
    storage: StorageArgs,

    /// The fast device may lose what is synced to it
    #[arg(long)]
    ephemeral: bool,
}

#[derive(Debug, Args)]
struct StorageArgs {
    /// A directory on the slow disk
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// A directory on the fast device
    #[arg(long, value_name = "DIR")]
    fast: PathBuf,

    /// Slow the disk down to so many reads and writes a second; needs root
    #[arg(long, value_name = "IOPS", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Keys of 16 bytes, with values of 1,000 bytes
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1000..))]
    keys: u32,

    /// Pairs of rounds for each row
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100))]
    pairs: u32,

    /// Seconds of a round
    #[arg(long, value_name = "S", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    #[command(flatten)]
    output: Output,
}

pub(super) fn read_cache(args: &ReadCacheArgs) -> Result<ExitCode, Failure> {
    args.storage.run(Workload::ReadCache, false)
}

pub(super) fn wal(args: &WalArgs) -> Result<ExitCode, Failure> {
    args.storage.run(Workload::Wal, args.ephemeral)
}

impl StorageArgs {
    fn run(&self, workload: Workload, is_ephemeral: bool) -> Result<ExitCode, Failure> {
        let interrupted = watch()?;
        let (data, fast) = (directory("--data", &self.data)?, directory("--fast", &self.fast)?);
        on_two_devices(&data, &fast)?;
        storage::requirements()?;
        let options = Options {
            command: self.command_line(workload, is_ephemeral),
            workload,
            data,
            fast,
            is_ephemeral,
            limit: self.limit,
            keys: self.keys,
            round: Duration::from_secs(self.seconds.into()),
            pairs: self.pairs as usize,
            hasten: own_program()?,
            out: self.output.out.clone(),
        };
        let (report, saved) = storage::run(&options, &interrupted)?;
        self.print(&report, &saved)?;
        let was_interrupted = interrupted.load(Ordering::Relaxed);
        Ok(if was_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }

    /// The result goes to standard output; with JSON, nothing else does.
    fn print(&self, report: &Report, saved: &Saved) -> Result<(), Failure> {
        let path =
            format!("Data: {}", saved.json.canonicalize().unwrap_or_else(|_| saved.json.clone()).display());
        if self.output.json {
            print(&report.json()?).map_err(Failure::output)?;
            say(path);
            return Ok(());
        }
        print(&format!("{}\n{}\n{path}\n", report.table(), report.method)).map_err(Failure::output)
    }

    /// The command line that repeats this run.
    fn command_line(&self, workload: Workload, is_ephemeral: bool) -> String {
        let (data, fast) = (self.data.display(), self.fast.display());
        let mut line = format!("hasten bench {} --data {data} --fast {fast}", workload.as_str());
        if let Some(limit) = self.limit {
            line += &format!(" --limit {limit}");
        }
        line += &format!(" --keys {} --pairs {} --seconds {}", self.keys, self.pairs, self.seconds);
        if is_ephemeral { line + " --ephemeral" } else { line }
    }
}

/// A directory that exists, by a path that holds in any other: db_bench and the library need one.
fn directory(flag: &str, path: &Path) -> Result<PathBuf, Failure> {
    let failure = |what: String| {
        Failure::new(format!("{flag} {}: {what}", path.display()), "name a directory that exists")
    };
    if !path.is_dir() {
        return Err(failure("no such directory".into()));
    }
    path.canonicalize().map_err(|error| failure(error.to_string()))
}

/// On one device, what is to be faster would be as slow.
fn on_two_devices(data: &Path, fast: &Path) -> Result<(), Failure> {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    if device(data) != device(fast) {
        return Ok(());
    }
    Err(Failure::new(
        format!(
            "{} and {} are on one file system: there is nothing to compare",
            data.display(),
            fast.display()
        ),
        "name a directory on another device: --fast DIR",
    ))
}
