//! The repository, as used by a real apt: with its own root, from `file:`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_tests::image::as_root;
use hasten_tests::tools;
use tempfile::TempDir;

use crate::made::{only, release, repository};
use crate::package::Debian;

/// A key ring with a key made for this test, and the agent that gpg starts for it.
struct KeyRing(TempDir);

impl KeyRing {
    fn new(user: &str) -> Self {
        let ring = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(ring.0.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut gpg = Command::new(tools::tool("gpg", "gpg"));
        gpg.args([
            "--batch",
            "--quiet",
            "--passphrase",
            "",
            "--quick-generate-key",
            user,
            "ed25519",
            "sign",
            "never",
        ]);
        tools::run(gpg.env("GNUPGHOME", ring.0.path()));
        ring
    }
}

impl Drop for KeyRing {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", self.0.path()).status();
    }
}

/// This release's repository, made for `url`.
fn made(folder: &Path, key: Option<(&KeyRing, &str)>) -> Output {
    let mut command = Command::new(repository().join("scripts/apt-repository.sh"));
    command.arg(only(release(), ".deb")).arg(folder).env("RELEASE_URL", format!("file:{}", folder.display()));
    command.env_remove("RELEASE_KEY").env("SOURCE_DATE_EPOCH", "1700000000");
    if let Some((ring, name)) = key {
        command.env("GNUPGHOME", ring.0.path()).env("RELEASE_KEY", name);
    }
    tools::run(&mut command)
}

/// An apt with all its files below the root of `debian`.
struct Apt {
    debian: Debian,
}

impl Apt {
    /// With the repository's own source, and the key where that source looks for it.
    fn new(repository: &Path) -> Option<Self> {
        let debian = Debian::new()?;
        for folder in [
            "etc/apt/sources.list.d",
            "etc/apt/preferences.d",
            "etc/apt/apt.conf.d",
            "etc/apt/trusted.gpg.d",
            "usr/share/keyrings",
        ] {
            fs::create_dir_all(debian.image.path(folder)).unwrap();
        }
        for folder in ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"] {
            fs::create_dir_all(debian.image.path(folder)).unwrap();
        }
        let ring = debian.image.path("usr/share/keyrings/hasten-archive-keyring.gpg");
        // apt resolves the path of a key outside the root.
        let source = fs::read_to_string(repository.join("hasten.sources")).unwrap();
        let source = source.replace("/usr/share/keyrings/hasten-archive-keyring.gpg", ring.to_str().unwrap());
        fs::write(debian.image.path("etc/apt/sources.list.d/hasten.sources"), source).unwrap();
        let _ = fs::copy(repository.join("hasten-archive-keyring.gpg"), ring);
        Some(Self { debian })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let root = self.debian.root();
        // First of all, so that this machine's own apt settings are not read.
        let settings = format!(
            "Dir \"{root}\";\nDir::State::status \"{root}var/lib/dpkg/status\";\nDir::Bin::dpkg \"/usr/bin/dpkg\";\n\
             DPkg::Options {{ \"--root={root}\"; \"--log=/dev/null\"; \"--force-not-root\"; }};\n\
             APT::Sandbox::User \"root\";\nAPT::Architecture \"amd64\";\n",
            root = root.display()
        );
        let file = root.join("etc/apt/test.conf");
        fs::write(&file, settings).unwrap();
        let mut command = as_root(&tools::tool("apt-get", "apt"));
        command
            .args(arguments)
            .env("APT_CONFIG", &file)
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &output.stderr].concat()).into_owned()
}

fn folder() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    // apt reads as another user if it can.
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = place.path().join("apt");
    (place, folder)
}

#[test]
fn apt_installs_from_a_signed_repository() {
    let (_place, folder) = folder();
    let ring = KeyRing::new("maker@example.invalid");
    let made = made(&folder, Some((&ring, "maker@example.invalid")));
    assert!(!said(&made).contains("not signed"), "{made:?}");
    let Some(apt) = Apt::new(&folder) else { return };
    let update = apt.run(&["update"]);
    assert!(update.status.success() && !said(&update).contains("W:"), "{}", said(&update));
    let install = apt.run(&["install", "--yes", "--no-install-recommends", "hasten"]);
    assert!(install.status.success(), "{}", said(&install));
    let version = apt.debian.image.shell(&[], "/usr/bin/hasten --version");
    assert_eq!(String::from_utf8_lossy(&version.stdout), concat!("hasten ", env!("CARGO_PKG_VERSION"), "\n"));
    let purge = apt.run(&["purge", "--yes", "hasten"]);
    assert!(purge.status.success() && !apt.debian.image.path("usr/bin/hasten").exists(), "{}", said(&purge));
}

#[test]
fn apt_refuses_what_another_signed_or_changed() {
    let (_place, folder) = folder();
    let ring = KeyRing::new("maker@example.invalid");
    made(&folder, Some((&ring, "maker@example.invalid")));
    let Some(apt) = Apt::new(&folder) else { return };
    let release = folder.join("dists/stable/InRelease");
    let text = fs::read_to_string(&release).unwrap();
    fs::write(&release, text.replace("Label: hasten", "Label: hastened")).unwrap();
    fs::remove_file(folder.join("dists/stable/Release.gpg")).unwrap();
    let update = apt.run(&["update", "-o", "APT::Update::Error-Mode=any"]);
    assert!(!update.status.success(), "{}", said(&update));

    let other = KeyRing::new("other@example.invalid");
    made(&folder, Some((&other, "other@example.invalid")));
    let update = apt.run(&["update", "-o", "APT::Update::Error-Mode=any"]);
    assert!(!update.status.success() && said(&update).contains("NO_PUBKEY"), "{}", said(&update));
}

#[test]
fn an_unsigned_repository_says_so_and_works_where_it_is_trusted() {
    let (_place, folder) = folder();
    let made = made(&folder, None);
    assert!(said(&made).contains("not signed"), "{made:?}");
    assert!(!folder.join("dists/stable/InRelease").exists());
    let Some(apt) = Apt::new(&folder) else { return };
    let update = apt.run(&["update"]);
    assert!(!update.status.success() && said(&update).contains("is not signed"), "{}", said(&update));
    let source = apt.debian.image.path("etc/apt/sources.list.d/hasten.sources");
    fs::write(&source, fs::read_to_string(&source).unwrap() + "Trusted: yes\n").unwrap();
    let update = apt.run(&["update"]);
    assert!(update.status.success(), "{}", said(&update));
    let policy = apt.run(&["install", "--yes", "--simulate", "hasten"]);
    assert!(policy.status.success() && said(&policy).contains("Inst hasten"), "{}", said(&policy));
}

#[test]
fn a_key_that_is_not_there_is_an_error() {
    let (_place, folder) = folder();
    let ring = KeyRing::new("maker@example.invalid");
    let mut command = Command::new(repository().join("scripts/apt-repository.sh"));
    command.arg(only(release(), ".deb")).arg(&folder);
    command.env("GNUPGHOME", ring.0.path()).env("RELEASE_KEY", "nobody@example.invalid");
    let output = command.output().unwrap();
    assert!(
        !output.status.success() && said(&output).contains("RELEASE_KEY=nobody@example.invalid"),
        "{output:?}"
    );
}
