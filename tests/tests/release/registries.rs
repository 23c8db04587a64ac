//! The packages for pip and npm; and what the loader is told about everything that is shipped.

use std::path::Path;
use std::process::Command;

use hasten_tests::program::without_library;
use hasten_tests::{product, tools};

use crate::made::{only, release, tree};

/// Runs an installed command, which must find its libraries beside itself.
fn finds_its_libraries(hasten: &Path, library: &Path) {
    let mut command = Command::new(hasten);
    without_library(&mut command);
    let command = command.args(["run", "--quiet", "--only", "gzip", "--", "cat", "/proc/self/maps"]);
    let maps = String::from_utf8(tools::run(command).stdout).unwrap();
    assert!(maps.contains(library.to_str().unwrap()), "{library:?}: {maps}");
}

#[test]
fn the_wheel_works_in_an_environment_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap().join("environment");
    let python = tools::tool("python3", "python3");
    tools::run(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&place));
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "--python"]).arg(place.join("bin/python")).arg("install");
    pip.args(["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]);
    tools::run(pip.arg(only(release(), ".whl")));
    finds_its_libraries(&place.join("bin/hasten"), &place.join("lib/hasten/libhasten_gzip.so"));
}

#[test]
fn the_package_for_npm_works_where_npm_links_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let mut npm = Command::new(tools::tool("npm", "npm"));
    npm.args(["install", "--global", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    tools::run(npm.arg(&place).arg(only(release(), ".tgz")).env("HOME", &place));
    let library = place.join("lib/node_modules/hasten/lib/hasten/libhasten_gzip.so");
    finds_its_libraries(&place.join("bin/hasten"), &library);
}

/// No stack is executable, no table stays writable, every function is bound at start, and no code needs relocation.
#[test]
fn what_is_shipped_is_hardened() {
    let tree = tree();
    let libraries = |folder: &str| {
        let entries =
            std::fs::read_dir(tree.join(folder)).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "so")).collect::<Vec<_>>()
    };
    let mut files =
        [libraries("lib/hasten"), libraries("lib/hasten/musl"), vec![tree.join("bin/hasten")]].concat();
    files.sort();
    let least = if product::musl_libraries().is_some() { 9 } else { 7 };
    assert!(files.len() >= least, "{files:?}");
    for file in files {
        let mut readelf = Command::new(tools::tool("readelf", "binutils"));
        let text =
            tools::run(readelf.args(["--segments", "--dynamic", "--notes", "--wide"]).arg(&file)).stdout;
        let text = String::from_utf8(text).unwrap();
        let stack = text.lines().find(|line| line.contains("GNU_STACK")).expect("it says what the stack may");
        assert!(stack.contains(" RW ") && !stack.contains('E'), "{file:?}: {stack}");
        assert!(text.contains("GNU_RELRO") && text.contains("BIND_NOW"), "{file:?}: {text}");
        for bad in ["TEXTREL", "(RPATH)", "(RUNPATH)", " RWE "] {
            assert!(!text.contains(bad), "{file:?} has {bad}: {text}");
        }
        // The mark is true of what is C alone; rustc generates no such code, and a wrong mark would end a process that checks it.
        let is_marked = text.contains("x86 feature: IBT, SHSTK");
        assert_eq!(is_marked, file.file_name().unwrap() == "libhasten.so", "{file:?}: {text}");
    }
}
