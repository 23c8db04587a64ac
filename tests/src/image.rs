//! Parts of other releases of Debian and Ubuntu, and of Alpine, in which programs run in a change root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{product, tools};

/// The directory of the libraries in an installation.
pub const LIBRARIES: &str = "/usr/lib/hasten";
/// And of those for musl.
pub const MUSL_LIBRARIES: &str = "/usr/lib/hasten/musl";

/// A copy of one image, which a test may modify.
pub struct Image {
    pub name: String,
    root: TempDir,
}

impl Image {
    /// Every one that `scripts/images.sh` has made.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let all: Vec<Self> = trees().iter().map(|tree| Self::of(tree)).collect();
        assert!(!all.is_empty(), "{:?} has no image: run `scripts/images.sh`", folder());
        all
    }

    /// One of them, if this network has its packages.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        trees()
            .iter()
            .find(|tree| tree.file_name().is_some_and(|file| file == name))
            .map(|tree| Self::of(tree))
    }

    /// The one of musl, with the libraries for it installed. Without the network or Rust's target there is none, which is
    /// said.
    #[must_use]
    pub fn musl() -> Option<Self> {
        let tree = deps().join("musl-image");
        if !tree.is_dir() {
            println!("skipped: there is no image of musl; `scripts/musl-image.sh` makes it");
            return None;
        }
        let image = Self::of(&tree);
        image.install(LIBRARIES, [product::shim().as_path()]);
        image.install(MUSL_LIBRARIES, product::musl_libraries()?.iter().map(PathBuf::as_path));
        Some(image)
    }

    fn of(tree: &Path) -> Self {
        let root = tempfile::tempdir().unwrap();
        tools::run(Command::new("cp").arg("-a").arg(tree.join(".")).arg(root.path()));
        let image = Self { name: tree.file_name().unwrap().to_string_lossy().into_owned(), root };
        assert!(!image.has("libgcc_s.so.1"), "{} must not have what the libraries do without", image.name);
        // A server's worker is another user.
        fs::set_permissions(image.root.path(), Permissions::from_mode(0o755)).unwrap();
        image
    }

    /// A file of the image, as seen from outside.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file.trim_start_matches('/'))
    }

    /// Whether it contains a file of this name anywhere.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        let mut find = Command::new("find");
        !tools::run(find.arg(self.root.path()).args(["-name", file])).stdout.is_empty()
    }

    /// Writes a file, and makes its folder.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The lines that were added to a file since the last time.
    pub fn take_lines(&self, file: &str) -> Vec<String> {
        let file = self.path(file);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().map(str::to_owned).collect()
    }

    /// Puts these files where an installation has the libraries.
    #[must_use]
    pub fn with<'a>(self, files: impl IntoIterator<Item = &'a Path>) -> Self {
        self.install(LIBRARIES, files);
        self
    }

    fn install<'a>(&self, folder: &str, files: impl IntoIterator<Item = &'a Path>) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }

    /// Runs `script` in a shell started with these variables.
    #[must_use]
    pub fn shell(&self, variables: &[(&str, &str)], script: &str) -> Output {
        let mut command = as_root(&tools::tool("chroot", "coreutils"));
        command.arg(self.root.path());
        Self::script(command, variables, script)
    }

    /// The same with a `/proc`, as a container has: without it, nobody knows where the first thread's stack ends. It is gone
    /// with its namespace.
    pub fn shell_with_proc(&self, variables: &[(&str, &str)], script: &str) -> Output {
        fs::create_dir_all(self.path("proc")).unwrap();
        let mut command = as_root(&tools::tool("unshare", "util-linux"));
        let mount = r#"mount -t proc proc "$2/proc" && exec "$@""#;
        command.args(["--mount", "sh", "-c", mount, "sh"]);
        command.arg(tools::tool("chroot", "coreutils")).arg(self.root.path());
        Self::script(command, variables, script)
    }

    fn script(mut command: Command, variables: &[(&str, &str)], script: &str) -> Output {
        command.args(["/bin/sh", "-c", r#"exec env "$@""#, "sh"]);
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(["/bin/sh", "-c", script]).env_clear().env("PATH", "/bin");
        command.output().unwrap()
    }
}

/// `program` as root: directly if this process is root, otherwise as the root of a user namespace.
#[must_use]
pub fn as_root(program: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new(tools::tool("unshare", "util-linux"));
    command.arg("--map-root-user").arg(program);
    command
}

fn deps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps")
}

fn folder() -> PathBuf {
    deps().join("images")
}

fn trees() -> Vec<PathBuf> {
    fs::read_dir(folder()).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}
