//! The read cache in a C program whose files change in every way: no read may differ.

use hasten_telemetry::Event;
use hasten_tests::product;
use hasten_tests::program::{Program, without_library};

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
        let mut command = std::process::Command::new("prlimit");
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
