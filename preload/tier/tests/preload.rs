//! C programs under the real library.

use std::path::{Path, PathBuf};
use std::process::Command;

fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    let folder = test.parent().and_then(Path::parent).expect("it is in target/PROFILE/deps");
    let library = folder.join("libhasten_tier.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).with_extension("c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tier-{name}"));
    // The compiler must not leave out pairs of malloc and free.
    let status =
        Command::new("cc").args(["-O1", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(status.expect("a C compiler").success());
    program
}

fn run(program: &Path, tier: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", library()).env("HASTEN_TIER", tier);
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn no_object_is_damaged_whatever_threads_do() {
    let output = run(&compile("torture"), "0:0=1:3", &[]);
    assert!(output.starts_with("ok"), "{output}");
}

#[test]
fn the_share_is_kept_whatever_the_sizes_are() {
    let program = compile("share");
    let mixes: [&[&str]; 5] =
        [&["64"], &["1024"], &["16384"], &["64", "1024", "16384"], &["40", "64", "100", "1000", "5000"]];
    for (tier, target) in [("0:0=1:3", 75.0), ("0:0=1:1", 50.0), ("0:0=3:1", 25.0)] {
        for sizes in mixes {
            let share: f64 = run(&program, tier, sizes).trim().parse().expect("a number");
            assert!((share - target).abs() <= 2.0, "{tier}, {sizes:?}: {share}");
        }
    }
}
