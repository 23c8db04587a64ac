//! Third-party test suites and examples for zlib.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hasten_telemetry::{Counters, Event};
use hasten_tests::program::{Library, Program, Run};
use hasten_tests::{bodies, tools};

/// Runs a command both ways, which must make no difference; returns the counters up to its `end`.
fn same_as_stock(command: impl Fn() -> Command) -> Counters {
    let stock = Run::of(command(), false).succeeded();
    let mut preloaded = command();
    Library::Gzip.preload(&mut preloaded, &[]);
    let preloaded = Run::of(preloaded, true).succeeded();
    assert_eq!(preloaded.output, stock.output, "preloaded (left) and stock differ\n{}", preloaded.errors);
    assert!(!stock.output.is_empty());
    preloaded.counters
}

fn assert_worked(counters: &Counters) {
    assert!(counters[Event::DeflateStreams] > 0, "nothing was packed by the library");
    assert!(counters[Event::InflateStreams] > 0, "nothing was unpacked by the library");
    assert_eq!(counters[Event::DeflateMismatch], 0);
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

fn cpython(test: &str) {
    tools::file_of("/usr/lib/python3.11/test/test_zlib.py", "libpython3.11-testsuite");
    let counters = same_as_stock(|| {
        let mut python = Command::new("/usr/bin/python3.11");
        python.arg(script("cpython.py")).arg(test);
        python
    });
    assert_worked(&counters);
}

#[test]
fn cpython_zlib() {
    cpython("test.test_zlib");
}

#[test]
fn cpython_gzip() {
    cpython("test.test_gzip");
}

#[test]
fn cpython_zipfile() {
    cpython("test.test_zipfile");
}

#[test]
fn perl_modules() {
    let page = page_file(400_000);
    let counters = same_as_stock(|| {
        let mut perl = Command::new(tools::tool("perl", "perl"));
        perl.arg(script("zlib.pl")).arg(page.path());
        perl
    });
    assert_worked(&counters);
}

/// Some builds of Node contain their own zlib: nothing is counted there, and nothing may break either.
#[test]
fn node_streams() {
    let page = page_file(400_000);
    same_as_stock(|| {
        let mut node = Command::new(tools::tool("node", "nodejs"));
        node.arg(script("zlib.js")).arg(page.path());
        node
    });
}

fn page_file(length: usize) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file for a page");
    std::fs::write(file.path(), bodies::page(length)).expect("a page");
    file
}

/// One of zlib's own programs.
fn example(name: &str) -> Program {
    let source = format!("/usr/share/doc/zlib1g-dev/examples/{name}.c");
    Program::of(Library::Gzip, &tools::file_of(&source, "zlib1g-dev"), &["-O1", "-w"])
}

#[test]
fn zlib_example() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = example("example");
    let file = directory.path().join("example.gz");
    let counters = program.same_as_stock(&[file.to_str().expect("a path that is text")], &[]);
    // It ends without waiting for anybody to read them.
    assert_eq!(counters, Counters::default());
}

/// What one side has compressed the other must decompress.
#[test]
fn zlib_minigzip_and_zpipe() {
    let page = bodies::page(300_000);
    let (minigzip, zpipe) = (example("minigzip"), example("zpipe"));
    let packers: Vec<(&Program, Vec<&str>)> = ["-1", "-6", "-9", "-h", "-f", "-r"]
        .iter()
        .map(|option| (&minigzip, vec![*option]))
        .chain([(&zpipe, vec![])])
        .collect();
    for (program, options) in packers {
        for packs in [false, true] {
            let packed = filter(program, &options, packs, &page);
            assert!(packed.len() < page.len());
            for unpacks in [false, true] {
                let plain = filter(program, &["-d"], unpacks, &packed);
                assert!(plain == page, "{options:?}, preloaded: packing {packs}, unpacking {unpacks}");
            }
        }
    }
}

/// gznorm finds the beginnings of blocks, with `Z_BLOCK`, and reassembles them.
#[test]
fn zlib_gznorm() {
    let program = example("gznorm");
    let page = bodies::page(300_000);
    let packed = filter(&example("minigzip"), &["-6"], false, &page);
    let stock = filter(&program, &[], false, &packed);
    assert!(filter(&program, &[], true, &packed) == stock);
    assert!(hasten_tests::http::unpack(&stock).expect("a good member") == page);
}

/// A program's output for this input, with or without the library.
fn filter(program: &Program, arguments: &[&str], preloaded: bool, input: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a file for the input");
    std::io::Write::write_all(&mut file, input).expect("room for the input");
    std::io::Seek::rewind(&mut file).expect("a file that can be read again");
    let mut command = Command::new(program.path());
    if preloaded {
        Library::Gzip.preload(&mut command, &[]);
    }
    tools::run(command.args(arguments).stdin(Stdio::from(file))).stdout
}

#[test]
fn threads_and_forks() {
    let counters = Program::using_zlib("zlib_threads").same_as_stock(&[], &[]);
    assert_worked(&counters);
    assert!(counters[Event::DeflateStreams] >= 8 * 24 + 9);
}
