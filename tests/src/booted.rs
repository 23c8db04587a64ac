//! This system, booted with systemd or OpenRC in namespaces of its own. It shares the network; what it writes is in memory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use hasten_bench::cpu;
use tempfile::TempDir;

use crate::{product, tools, wait};

/// Dropping it ends everything in it.
#[derive(Debug)]
pub struct Booted {
    unshare: Child,
    init: u32,
    _folder: TempDir,
}

impl Booted {
    /// With systemd, and hasten installed as its package does it; `None` if this user may not have namespaces or mounts.
    #[must_use]
    pub fn start() -> Option<Self> {
        let booted = Self::begin("booted.sh", &["--cgroup"], &[])?;
        wait::until("systemd to have booted", || booted.is_up());
        booted.install();
        Some(booted)
    }

    /// The same with OpenRC; `None` also if this network does not have it.
    #[must_use]
    pub fn with_openrc() -> Option<Self> {
        let openrc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/openrc");
        if !openrc.is_dir() {
            println!("skipped: there is no OpenRC; `scripts/openrc.sh` fetches it");
            return None;
        }
        let booted = Self::begin("openrc.sh", &[], &[&openrc])?;
        wait::until("OpenRC to have booted", || {
            fs::read_to_string(booted.path("/run/openrc/softlevel"))
                .is_ok_and(|level| level.trim() == "default")
        });
        booted.install();
        Some(booted)
    }

    fn begin(script: &str, namespaces: &[&str], arguments: &[&Path]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root may boot a system");
            return None;
        }
        let mut trial = Command::new(tools::tool("unshare", "util-linux"));
        trial.args(["--mount", "--pid", "--fork", "--cgroup", "mount", "--make-rprivate", "/"]);
        if !trial.output().is_ok_and(|output| output.status.success()) {
            println!("skipped: no namespaces can be had here");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("hasten-booted-").tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(script);
        let mut unshare = Command::new(tools::tool("unshare", "util-linux"));
        unshare.args(["--mount", "--pid", "--fork", "--kill-child=KILL", "--uts", "--ipc"]).args(namespaces);
        unshare.arg("sh").arg(script).arg(folder.path()).args(arguments);
        let unshare = unshare.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let init = wait::for_some("the first process", || cpu::children(unshare.id()).first().copied());
        Some(Self { unshare, init, _folder: folder })
    }

    fn is_up(&self) -> bool {
        let mut systemctl = self.command("systemctl");
        let output = systemctl.args(["is-active", "sysinit.target"]).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn install(&self) {
        let libraries =
            [product::shim(), product::library(), product::gzip_library(), product::envoy_library()];
        self.copy(product::hasten(), "/usr/bin/hasten", 0o755);
        for library in libraries {
            let name = library.file_name().unwrap().to_str().unwrap().to_owned();
            self.copy(&library, &format!("/usr/lib/hasten/{name}"), 0o644);
        }
    }

    /// A file in there, by its path from here.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init))
    }

    pub fn write(&self, path: &str, text: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// In place of a file that may still run, as package managers do it.
    pub fn copy(&self, from: &Path, to: &str, mode: u32) {
        let file = self.path(to);
        let fresh = self.path(&format!("{to}.new"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(from, &fresh).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(fresh, file).unwrap();
    }

    /// A command in there.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(tools::tool("nsenter", "util-linux"));
        command.args(["--target", &self.init.to_string(), "--mount", "--pid", "--uts", "--ipc", "--cgroup"]);
        command.arg("--").arg(program).stdin(Stdio::null()).env_remove("LD_PRELOAD");
        command
    }

    /// The outcome of `hasten` in there.
    #[must_use]
    pub fn hasten(&self, arguments: &[&str]) -> Output {
        self.command("/usr/bin/hasten").args(arguments).output().unwrap()
    }

    pub fn systemctl(&self, arguments: &[&str]) {
        tools::run(self.command("systemctl").args(arguments));
    }

    /// A property of a unit.
    #[must_use]
    pub fn property(&self, unit: &str, name: &str) -> String {
        let output =
            tools::run(self.command("systemctl").args(["show", "--value", "--property", name, unit]));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}
