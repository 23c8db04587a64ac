//! In a change root without `/proc`, where much is unknown: the output has no holes.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_probe::program::Linkage;
use hasten_probe::{Environment, Program};
use support::{HASTEN, Place, is_root};

/// A folder with the command, a server, and the libraries of both.
struct Root(tempfile::TempDir);

impl Root {
    fn new(place: &Place) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        root.install(Path::new(HASTEN), "usr/bin/hasten");
        root.install(&place.path("server"), "server");
        for library in ["libhasten_tls.so", "libhasten_gzip.so"] {
            root.copy(&place.path(library), format!("usr/lib/hasten/{library}"));
        }
        root
    }

    fn copy(&self, file: &Path, to: impl AsRef<Path>) {
        let to = self.0.path().join(to.as_ref().strip_prefix("/").unwrap_or(to.as_ref()));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }

    fn install(&self, program: &Path, to: &str) {
        self.copy(program, to);
        let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
        let Linkage::Dynamic { interpreter, .. } = &program.linkage else { panic!("{:?}", program.linkage) };
        let files = program.libraries.iter().map(|library| library.path.clone()).chain([interpreter.clone()]);
        files.for_each(|file: PathBuf| self.copy(&file, &file));
    }

    fn hasten(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("chroot");
        command.arg(self.0.path()).arg("/usr/bin/hasten").args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap()
    }
}

fn has_a_hole(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.any(|line| {
        let prose =
            line.starts_with(['+', '-', '~']) || line.starts_with("hasten:") || line.starts_with("fix:");
        let broken = [" on this,", " is not in,", "()", "``", " ,", "Linux ,", ": ,"];
        let ends = [" this", " in", " on", " of", ",", ":", " Linux", "("];
        broken.iter().any(|hole| line.contains(hole)) || prose && ends.iter().any(|end| line.ends_with(end))
    })
}

#[test]
fn sentences_have_no_holes() {
    if !is_root() {
        return;
    }
    let root = Root::new(&Place::new());
    for arguments in [
        &["check"][..],
        &["check", "--", "/server"],
        &["run", "--dry-run", "--", "/server"],
        &["run", "--", "/server"],
        &["top", "--once"],
        &["engine", "list"],
        &["export", "--once"],
        &["selftest"],
    ] {
        let output = root.hasten(arguments);
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(!has_a_hole(&text), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn what_is_unknown_is_said_to_be_and_why() {
    if !is_root() {
        return;
    }
    let root = Root::new(&Place::new());
    let text = |arguments: &[&str]| {
        let output = root.hasten(arguments);
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
    };
    assert!(text(&["check"]).starts_with("No /proc is mounted here"), "{}", text(&["check"]));
    let plan = text(&["run", "--dry-run", "--", "/server"]);
    assert!(plan.contains("the library is /usr/lib/hasten/libhasten_gzip.so"), "{plan}");
    assert!(!text(&["check"]).contains("not in this kernel"), "{}", text(&["check"]));
    for arguments in [
        &["top", "--once"][..],
        &["engine", "list"],
        &["gc", "record", "1"],
        &["export", "--once"],
        &["tune", "--url", "http://127.0.0.1:1/", "--", "/server"],
    ] {
        let said = text(arguments);
        assert_eq!(root.hasten(arguments).status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("/proc is not mounted"), "{arguments:?}: {said}");
        assert!(said.contains("mount -t proc proc /proc"), "{arguments:?}: {said}");
    }
}
