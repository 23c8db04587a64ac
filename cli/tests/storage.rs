//! Directories for the read cache and the logs, and nodes, that are not what they should be.

mod support;

use support::Place;

#[test]
fn a_read_cache_needs_its_directory() {
    let place = Place::new();
    let gone = place.path("gone");
    let told =
        place.run(&["run", "--read-cache", &format!("{},1G", gone.display()), "--dry-run", "--", "true"]);
    let output = String::from_utf8_lossy(&told.get_output().stderr).into_owned()
        + &String::from_utf8_lossy(&told.get_output().stdout);
    assert!(output.contains("gone is no directory"), "{output}");
    assert!(output.contains("mkdir -p"), "{output}");
    assert!(!gone.exists(), "it is not made");
}

#[test]
fn a_bench_of_memory_needs_nodes_that_are_there() {
    let place = Place::new();
    for (tier, problem) in
        [("0:999=1:3", "there is no node 999"), ("0:0=1:0", "a share of 0"), ("half", "--tier")]
    {
        let told = place.run(&["bench", "tier", "--tier", tier]).failure();
        let error = String::from_utf8_lossy(&told.get_output().stderr).into_owned();
        assert!(error.contains(problem), "{error}");
    }
    assert!(!place.path("hasten-report.json").exists(), "nothing was measured");
}

#[test]
fn a_bench_of_storage_needs_both_directories_on_two_devices() {
    let place = Place::new();
    let here = place.path("").display().to_string();
    for workload in ["readcache", "wal"] {
        for (data, fast, expected) in [
            ("/nowhere", &*here, "--data /nowhere: no such directory"),
            (&*here, "/nowhere", "--fast /nowhere: no such directory"),
            (&*here, &*here, "are on one file system"),
        ] {
            let told = place.run(&["bench", workload, "--data", data, "--fast", fast]).failure();
            let error = String::from_utf8_lossy(&told.get_output().stderr).into_owned();
            assert!(error.contains(expected), "{error}");
        }
    }
    assert_eq!(
        std::fs::read_dir(place.path(""))
            .unwrap()
            .filter_map(Result::ok)
            .filter(|entry| { entry.file_name().to_string_lossy().starts_with("hasten") })
            .count(),
        0,
        "nothing was made"
    );
}
