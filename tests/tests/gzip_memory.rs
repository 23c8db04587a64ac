//! Every function of deflate and inflate under valgrind's memcheck: no invalid access, no uninitialised reads,
//! no leaks.
//!
//! Valgrind has no AVX-512, which the engines detect by themselves.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use hasten_tests::program::{Library, Program, Variables};
use hasten_tests::tools;

/// A program's output in a run without complaints from valgrind.
fn clean(program: &Path, arguments: &[&str], variables: Variables, input: Option<File>) -> String {
    const COMPLAINT: i32 = 9;
    let mut command = Command::new(tools::tool("valgrind", "valgrind"));
    command.args(["--quiet", "--leak-check=full", "--num-callers=30"]);
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    command.arg(format!("--error-exitcode={COMPLAINT}")).arg(program).args(arguments);
    Library::Gzip.preload(&mut command, variables);
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    String::from_utf8(tools::run(&mut command).stdout).expect("text")
}

/// The same scripts every time: valgrind sees in them what a comparison of results does not.
fn scripts(count: usize) -> File {
    let mut file = tempfile::tempfile().expect("a file for scripts");
    let mut state = 1_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (state >> 23) as u8
    };
    for number in 0..count {
        let script: Vec<u8> = (0..20 + number * 7 % 300).map(|_| byte()).collect();
        let length = u32::try_from(script.len()).expect("a short script");
        file.write_all(&[&length.to_le_bytes()[..], &script].concat()).expect("room for scripts");
    }
    file.rewind().expect("a file that can be read again");
    file
}

#[test]
fn deflate_in_any_order() {
    const SCRIPTS: usize = 60;
    let player = Program::using_zlib("deflate_script");
    for verify in ["0", "1"] {
        // Valgrind does not track the allocations of a second C library.
        let variables = [("HASTEN_GZIP_VERIFY", verify)];
        let output = clean(player.path(), &["one-namespace"], &variables, Some(scripts(SCRIPTS)));
        assert_eq!(output, "ok\n".repeat(SCRIPTS));
    }
}

#[test]
fn one_engine_at_a_time() {
    const SCRIPTS: usize = 20;
    let player = Program::using_zlib("deflate_script");
    for engine in ["isal", "libdeflate", "bucket", "zlib-rs"] {
        let variables = [("HASTEN_GZIP_ENGINES", engine)];
        let output = clean(player.path(), &["one-namespace"], &variables, Some(scripts(SCRIPTS)));
        assert_eq!(output, "ok\n".repeat(SCRIPTS), "{engine}");
    }
}

/// zlib's own tour of its functions, inflate's among them.
#[test]
fn zlib_example() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = tools::file_of("/usr/share/doc/zlib1g-dev/examples/example.c", "zlib1g-dev");
    let program = Program::of(Library::Gzip, &source, &["-O1", "-w"]);
    let file = directory.path().join("example.gz");
    let output = clean(program.path(), &[file.to_str().expect("a path that is text")], &[], None);
    assert!(output.contains("inflate with dictionary: hello, hello!"), "{output}");
}
