//! The tree of an installation: its contents, and that it works in any place.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hasten_tests::{product, tools};

use crate::made::{self, files_below, only, release, script, tree};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Unpacks the tarball in a folder that nobody installs into. Without a space: the loader takes one for the end of a
/// path.
fn unpacked(folder: &Path) -> std::path::PathBuf {
    let place = folder.join("some-where");
    fs::create_dir(&place).unwrap();
    tools::run(Command::new("tar").arg("-xzf").arg(only(release(), ".tar.gz")).arg("-C").arg(&place));
    let tops: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [top] = &tops[..] else { panic!("{tops:?}") };
    top.clone()
}

#[test]
fn the_tarball_works_wherever_it_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let top = unpacked(folder.path());
    tools::run(
        Command::new("sha256sum").args(["--quiet", "--check", "share/hasten/SHA256SUMS"]).current_dir(&top),
    );
    let mut grep = Command::new(top.join("bin/hasten"));
    grep.args(["run", "--quiet", "--only", "gzip", "--", "grep", "libhasten", "/proc/self/maps"]);
    let maps = text(&tools::run(&mut grep));
    let library = top.join("lib/hasten/libhasten_gzip.so");
    assert!(maps.contains(library.to_str().unwrap()), "{maps}");
    // In no plan that nobody asked for.
    for file in ["libhasten_readcache.so", "libhasten_wal.so", "libhasten_tier.so"] {
        assert!(top.join("lib/hasten").join(file).is_file(), "{file}");
    }
    let plan = text(&tools::run(Command::new(top.join("bin/hasten")).args(["check", "--json"])));
    for file in ["libhasten_tls.so", "libhasten_gzip.so", "libhasten_envoy.so", "node/register.js"] {
        assert!(
            plan.contains(&format!(
                "some-where/{}/lib/hasten/{file}",
                top.file_name().unwrap().to_str().unwrap()
            )),
            "{file}: {plan}"
        );
    }
}

/// Two builds, by different makers or at different times, have the same bytes.
#[test]
fn the_same_tree_makes_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again");
    release();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(made::repository().join("scripts/release.sh"));
    let scripted = script("release.sh");
    shell.args(scripted.get_args()).arg(&again).current_dir(made::repository()).env("TZ", "Asia/Tokyo");
    shell.envs(scripted.get_envs().filter_map(|(name, value)| Some((name, value?))));
    tools::run(&mut shell);
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&again), sums(release()));
    let release_file = |folder: &Path| fs::read_to_string(folder.join("apt/dists/stable/Release")).unwrap();
    assert_eq!(release_file(&again), release_file(release()));
}

#[test]
fn an_installation_is_stripped_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let install = || tools::run(script("install.sh").arg(&prefix));
    tree();
    install();
    assert_eq!(files_below(&prefix), files_below(&tree()));
    let mut files = vec![
        "bin/hasten",
        "lib/hasten/libhasten_tls.so",
        "lib/hasten/libhasten_gzip.so",
        "lib/hasten/libhasten_envoy.so",
        "lib/hasten/libhasten_readcache.so",
        "lib/hasten/libhasten_wal.so",
        "lib/hasten/libhasten_tier.so",
        "lib/hasten/libhasten.so",
    ];
    if product::musl_libraries().is_some() {
        files.extend(["lib/hasten/musl/libhasten_tls.so", "lib/hasten/musl/libhasten_gzip.so"]);
    }
    for file in files {
        let sections = text(&tools::run(
            Command::new(tools::tool("readelf", "binutils")).args(["-SW"]).arg(prefix.join(file)),
        ));
        assert!(
            sections.contains(".dynsym")
                && !sections.contains(".symtab")
                && !sections.contains(".debug_info"),
            "{file}: {sections}"
        );
    }
    // An older version's files go with the next installation, and other files stay.
    let sums = prefix.join("share/hasten/SHA256SUMS");
    fs::write(&sums, fs::read_to_string(&sums).unwrap() + "0  lib/hasten/old.so\n").unwrap();
    for file in ["lib/hasten/old.so", "bin/other", "lib/hasten/mine.txt"] {
        fs::write(prefix.join(file), "").unwrap();
    }
    install();
    assert!(!prefix.join("lib/hasten/old.so").exists());
    let mut remove = Command::new(made::repository().join("scripts/install.sh"));
    tools::run(remove.arg("--remove").arg(&prefix));
    assert_eq!(files_below(&prefix), ["bin/other", "lib/hasten/mine.txt"]);
    let again = remove.output().unwrap();
    assert!(
        !again.status.success() && String::from_utf8_lossy(&again.stderr).contains("not installed"),
        "{again:?}"
    );
}
