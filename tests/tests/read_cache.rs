//! The read cache in a C program whose files change in every way: no read may differ.

use hasten_telemetry::Event;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hasten_tests::program::{Program, without_library};
use hasten_tests::{kills, product, tools};

#[test]
fn no_change_of_a_file_is_missed() {
    // Not in memory, where there is nothing to cache.
    let place = tempfile::tempdir_in(product::target_directory()).expect("a directory");
    let (files, cache) = (place.path().join("files"), place.path().join("cache"));
    std::fs::create_dir(&files).expect("a directory");
    let program = Program::reading_files("read_cache");
    let cache = format!("{},64M", cache.display());
    let variables = [("HASTEN_READ_CACHE", cache.as_str()), ("HASTEN_READ_CACHE_EAGER", "1")];
    let counters = program.same_as_stock(&[files.to_str().expect("a path")], &variables);
    let count = |event: Event| counters[event];
    assert!(count(Event::ReadCacheKeptBytes) > 300_000, "blocks were kept: {counters:?}");
    assert!(count(Event::ReadCacheHitBytes) > 1_000_000, "reads were answered: {counters:?}");
    assert_eq!(count(Event::ReadCacheDamaged), 0);
}

/// Writing beyond the limit would end the program with a signal. The second limit is below the length of the counter page.
#[test]
fn a_process_that_may_not_write_long_files_has_no_cache() {
    let place = tempfile::tempdir_in(product::target_directory()).expect("a directory");
    let table = place.path().join("a.sst");
    std::fs::write(&table, vec![7; 100_000]).expect("written");
    for limit in ["--fsize=20000000", "--fsize=4096", "--nofile=40"] {
        let mut command = Command::new("prlimit");
        command.args([limit, "cat"]).arg(&table);
        without_library(&mut command);
        command.env("LD_PRELOAD", product::read_cache_library());
        command.env("HASTEN_READ_CACHE", format!("{},64M", place.path().join("cache").display()));
        command.env("HASTEN_READ_CACHE_EAGER", "1");
        let output = command.output().expect("prlimit of util-linux runs");
        assert!(output.status.success(), "{limit}: {:?}", output.status);
        assert_eq!(output.stdout, vec![7; 100_000], "{limit}");
    }
}

/// RocksDB's own checksums find most wrong blocks; a comparison with the stock program finds the rest.
#[test]
fn a_store_whose_users_are_killed_has_no_wrong_byte() {
    let place = tempfile::tempdir_in(product::target_directory()).expect("a directory");
    let (database, cache) = (place.path().join("db"), place.path().join("cache"));
    let bench = |benchmarks: &str| {
        let mut command = Command::new(tools::tool("db_bench", "rocksdb-tools"));
        without_library(&mut command);
        command.arg(format!("--benchmarks={benchmarks}")).arg(format!("--db={}", database.display()));
        command.args(["--num=20000", "--value_size=500", "--compression_type=none", "--disable_wal=1"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    tools::run(&mut bench("fillrandom,compact"));
    std::thread::sleep(Duration::from_secs(4));
    // Small enough for blocks to displace each other.
    let cached = |command: &mut Command| {
        command.env("LD_PRELOAD", product::read_cache_library());
        command
            .env("HASTEN_READ_CACHE", format!("{},4M", cache.display()))
            .env("HASTEN_READ_CACHE_EAGER", "1");
    };
    for _ in 0..kills::times(6) {
        let mut readers: Vec<_> = (0..2)
            .map(|_| {
                let mut command = bench("readrandom");
                // Read-only, because a database has one writer.
                command.args([
                    "--use_existing_db=1",
                    "--readonly=1",
                    "--use_direct_reads=1",
                    "--cache_size=8192",
                ]);
                command.args(["--threads=2", "--duration=600", "--verify_checksum=1"]);
                cached(&mut command);
                command.spawn().expect("db_bench starts")
            })
            .collect();
        kills::at_some_moment(Duration::from_millis(400));
        for reader in &mut readers {
            assert_eq!(reader.try_wait().expect("a state"), None, "it reads until it is killed");
            reader.kill().expect("killed");
            reader.wait().expect("ended");
        }
    }
    assert!(std::fs::metadata(cache.join("blocks-1")).is_ok_and(|facts| facts.len() > 3_000_000));
    let scan = |is_cached: bool| {
        content(&database, &|command| {
            if is_cached {
                cached(command);
            }
        })
    };
    let stock = scan(false);
    assert!(stock.lines().count() > 10_000);
    for _ in 0..2 {
        assert!(scan(true) == stock, "with and without the store");
    }
}

/// Everything in a database.
fn content(database: &Path, prepare: &dyn Fn(&mut Command)) -> String {
    let mut command = Command::new(tools::tool("ldb", "rocksdb-tools"));
    without_library(&mut command);
    command.arg(format!("--db={}", database.display())).args(["scan", "--hex"]);
    prepare(&mut command);
    String::from_utf8_lossy(&tools::run(&mut command).stdout).into_owned()
}
