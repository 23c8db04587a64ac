//! Logs on another device: a program that sees no difference, and servers whose logs stock programs recover.

use std::fs;
use std::path::{Path, PathBuf};

use hasten_telemetry::Event;
use hasten_tests::product;
use hasten_tests::program::Program;

/// A directory on a disk, and one on another device: memory, which has to be allowed.
struct Devices {
    home: tempfile::TempDir,
    fast: tempfile::TempDir,
}

impl Devices {
    fn new() -> Self {
        let home = tempfile::tempdir_in(product::target_directory()).expect("a directory");
        let fast = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        Self { home, fast }
    }

    fn made(&self) -> Vec<PathBuf> {
        let logs = fs::read_dir(self.fast.path().join("hasten-logs")).expect("logs were made");
        logs.map(|entry| entry.expect("an entry").path()).collect()
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir(&path).expect("a directory");
        path
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_log_away_from_home_is_a_file_like_any_other() {
    let devices = Devices::new();
    let program = Program::writing_logs("wal_files");
    let stock = program.stock(&[text(&devices.directory("stock"))]).succeeded();
    let away = devices.directory("away");
    let variables = [("HASTEN_WAL", text(devices.fast.path())), ("HASTEN_WAL_EPHEMERAL", "1")];
    let run = program.preloaded(&[text(&away)], &variables).succeeded();
    assert_eq!(run.output, stock.output, "away (left) and at home differ");
    assert_eq!(run.counters[Event::WalMade], 4, "{:?}", run.counters);
    assert_eq!(devices.made(), Vec::<PathBuf>::new(), "what was removed is gone");
}

#[test]
fn memory_takes_no_log_unless_it_is_allowed() {
    let devices = Devices::new();
    let program = Program::writing_logs("wal_files");
    let variables = [("HASTEN_WAL", text(devices.fast.path()))];
    let run = program.preloaded(&[text(&devices.directory("db"))], &variables).succeeded();
    assert_eq!((run.counters[Event::WalMade], run.counters[Event::WalAtHome]), (0, 4));
}
