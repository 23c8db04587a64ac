//! What a process with one of the libraries for memory and storage does: work whose results are known.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::ValueEnum;
use rustix::fs::{Advice, fadvise};

use crate::failure::Failure;
use crate::output::print;

/// A file is kept once it has not changed for two seconds, by a clock that may be half a second coarse.
const SETTLES: Duration = Duration::from_millis(3200);
const BLOCK: usize = 64 << 10;
const BLOCKS: usize = 16;
const RECORDS: usize = 200;
/// The name of one of RocksDB's logs, and the file beside it by which its folder is known.
const LOG: &str = "000004.log";
const WITNESS: &str = "LOCK";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Exercise {
    Tier,
    #[value(name = "readcache")]
    ReadCache,
    Wal,
}

impl Exercise {
    pub(super) const ALL: [Self; 3] = [Self::Tier, Self::ReadCache, Self::Wal];
    /// What a process says that found nothing wrong.
    pub(super) const DONE: &str = "done";

    pub(super) fn accelerator(self) -> &'static str {
        match self {
            Self::Tier => "tier",
            Self::ReadCache => "readcache",
            Self::Wal => "wal",
        }
    }

    /// Does the work, says what came of it, and waits until its counters have been read.
    pub(super) fn run(self, place: &Path) -> Result<ExitCode, Failure> {
        let outcome = match self {
            Self::Tier => objects(),
            Self::ReadCache => reads(place),
            Self::Wal => writes(place),
        };
        let said = outcome.err().unwrap_or_else(|| Self::DONE.to_owned());
        print(&(said + "\n")).map_err(Failure::output)?;
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        Ok(ExitCode::SUCCESS)
    }

    /// Whether the log is what was written to it.
    pub(super) fn is_left_right(self, place: &Path) -> Result<(), String> {
        let log = place.join(LOG);
        let facts = fs::symlink_metadata(&log).map_err(|error| format!("the log: {error}"))?;
        if !facts.is_symlink() {
            return Err("the log is in its folder, without a link".to_owned());
        }
        let content = fs::read(&log).map_err(|error| format!("the log: {error}"))?;
        let expected: Vec<u8> = (0..RECORDS).flat_map(record).collect();
        if content == expected { Ok(()) } else { Err("the log has another content".to_owned()) }
    }
}

/// Bytes that a place and a length make, and no other place.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn wrong(what: &'static str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{what}: {error}")
}

fn record(number: usize) -> Vec<u8> {
    pattern(number, 100 + number * 7)
}

/// Objects that are made, made longer, and dropped, out of order.
fn objects() -> Result<(), String> {
    const ROUNDS: usize = 8;
    const COUNT: usize = 2000;
    let length = |number: usize, round: usize| 16 + (number * 37 + round * 1013) % 20_000;
    let mut kept: Vec<Vec<u8>> = (0..COUNT).map(|number| pattern(number, length(number, 0))).collect();
    for round in 1..ROUNDS {
        for number in (round % 3..COUNT).step_by(3) {
            let wanted = pattern(number, length(number, round));
            // Longer or shorter in place, so that it is allocated again with its content.
            kept[number].resize(wanted.len(), 0);
            kept[number].shrink_to_fit();
            kept[number].copy_from_slice(&wanted);
        }
        for (number, object) in kept.iter().enumerate() {
            if *object != pattern(number, object.len()) {
                return Err(format!("an object of {} bytes has another content", object.len()));
            }
        }
        // The share is looked at every few milliseconds.
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn reads(place: &Path) -> Result<(), String> {
    const ROUNDS: usize = 4;
    let path = place.join("000004.sst");
    let content: Vec<u8> = (0..BLOCKS).flat_map(|number| pattern(number, BLOCK)).collect();
    let written =
        File::create(&path).and_then(|mut file| file.write_all(&content).and_then(|()| file.sync_all()));
    written.map_err(wrong("a file cannot be written"))?;
    sleep(SETTLES);
    let file = File::open(&path).map_err(wrong("a file cannot be opened"))?;
    for _ in 0..ROUNDS {
        // What the kernel has in memory is read from there.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        for (number, expected) in content.chunks(BLOCK).enumerate() {
            let mut block = vec![0; BLOCK];
            file.read_exact_at(&mut block, (number * BLOCK) as u64)
                .map_err(wrong("a file cannot be read"))?;
            if block != expected {
                return Err(format!("block {number} has another content"));
            }
        }
    }
    Ok(())
}

fn writes(place: &Path) -> Result<(), String> {
    fs::write(place.join(WITNESS), "").map_err(wrong("a file cannot be written"))?;
    let path = place.join(LOG);
    let mut log = OpenOptions::new().append(true).create_new(true).open(&path).map_err(wrong("no log"))?;
    let mut length = 0;
    for number in 0..RECORDS {
        let record = record(number);
        log.write_all(&record).and_then(|()| log.sync_data()).map_err(wrong("a record cannot be written"))?;
        length += record.len() as u64;
        if fs::metadata(&path).map_err(wrong("the log's length"))?.len() != length {
            return Err(format!("the log has another length after {} records", number + 1));
        }
    }
    Ok(())
}
