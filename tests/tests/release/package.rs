//! The Debian package in parts of a Debian: installed, upgraded, removed and purged by a real dpkg. No systemd runs
//! there: where one is needed, a stand-in records its calls and does nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_tests::image::{Image, as_root};
use hasten_tests::tools;

use crate::made::{deb, files_below, repository};

const UNIT_LINK: &str = "/etc/systemd/system/multi-user.target.wants/hasten-export.service";
const CALLS: &str = "/calls";

/// A Debian 11 that dpkg can work on.
pub(crate) struct Debian {
    pub(crate) image: Image,
}

impl Debian {
    pub(crate) fn new() -> Option<Self> {
        let Some(image) = Image::named("debian-11") else {
            println!("skipped: this network does not have the packages of Debian 11");
            return None;
        };
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp", "etc", "usr/bin", "dev"] {
            fs::create_dir_all(image.path(folder)).unwrap();
        }
        // A file will do, and only root can make a device.
        fs::write(image.path("dev/null"), "").unwrap();
        // Of the image's packages, dpkg is told only about those that ours needs.
        let known = ["libc6\nVersion: 2.31-13", "zlib1g\nVersion: 1:1.2.11"].map(|package| {
            format!(
                "Package: {package}\nStatus: install ok installed\nArchitecture: amd64\n\
                 Maintainer: nobody <nobody@example.invalid>\nDescription: stand-in\n\n"
            )
        });
        fs::write(image.path("var/lib/dpkg/status"), known.concat()).unwrap();
        let busybox = fs::read_link(image.path("bin/sh")).unwrap();
        for program in ["cat", "cut", "find", "ls", "readlink", "rm"] {
            std::os::unix::fs::symlink(&busybox, image.path("bin").join(program)).unwrap();
        }
        Some(Self { image })
    }

    /// With a stand-in for systemd that records its calls.
    fn with_systemd() -> Option<Self> {
        let debian = Self::new()?;
        for program in ["systemctl", "deb-systemd-invoke"] {
            let file = debian.image.path("usr/bin").join(program);
            fs::write(&file, format!("#!/bin/sh\necho \"{program} $*\" >>{CALLS}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir_all(debian.image.path("/run/systemd/system")).unwrap();
        Some(debian)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.image.path("")
    }

    fn dpkg(&self, arguments: &[&str]) -> Output {
        let mut command = as_root(&tools::tool("dpkg", "dpkg"));
        command
            .arg(format!("--root={}", self.root().display()))
            .args(["--log=/dev/null", "--force-not-root"]);
        // dpkg looks for root's programs, although nothing here needs them.
        command.args(arguments).env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        output
    }

    fn install(&self, deb: &Path) {
        self.dpkg(&["--install", deb.to_str().unwrap()]);
    }

    /// Everything except dpkg's own files.
    fn files(&self) -> Vec<String> {
        let mut files = files_below(&self.root());
        files.retain(|file| {
            !["var/lib/dpkg/", "var/lib/apt/", "var/cache/"].iter().any(|own| file.starts_with(own))
        });
        files
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn revisions(folder: &Path) -> [PathBuf; 2] {
    ["1", "2"].map(|revision| deb(&folder.join(revision), revision))
}

#[test]
fn a_whole_life_with_systemd() {
    let Some(debian) = Debian::with_systemd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = revisions(folder.path());
    let before = debian.files();
    debian.install(&first);
    // Nothing is started, enabled or restarted.
    assert_eq!(debian.image.take_lines(CALLS), ["systemctl --system daemon-reload"]);
    let version = debian.image.shell(&[], "/usr/bin/hasten --version");
    assert!(version.status.success(), "{version:?}");

    debian.install(&second);
    assert_eq!(
        debian.image.take_lines(CALLS),
        ["systemctl --system daemon-reload", "deb-systemd-invoke try-restart hasten-export.service"]
    );

    debian.image.write("/etc/hasten/hasten.toml", "[run]\nquiet = true\n");
    debian.image.write(
        "/etc/systemd/system/hasten-export.service.d/override.conf",
        "[Service]\nExecStart=/usr/bin/hasten export\n",
    );
    let link = debian.image.path(UNIT_LINK);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/usr/lib/systemd/system/hasten-export.service", &link).unwrap();
    let removed = debian.dpkg(&["--remove", "hasten"]);
    assert!(!errors(&removed).contains("hasten:"), "{removed:?}");
    assert_eq!(
        debian.image.take_lines(CALLS),
        [
            "deb-systemd-invoke stop hasten-export.service",
            "systemctl --quiet disable hasten-export.service",
            "systemctl --system daemon-reload"
        ]
    );
    assert!(link.symlink_metadata().is_err(), "the exporter is still enabled");
    assert!(
        debian.image.path("/etc/hasten/hasten.toml").exists(),
        "what the user has set stays until `purge`"
    );

    debian.dpkg(&["--purge", "hasten"]);
    debian.image.take_lines(CALLS);
    assert_eq!(debian.files(), before);
    let known = fs::read_to_string(debian.image.path("var/lib/dpkg/status")).unwrap();
    assert!(!known.contains("hasten"), "{known}");
}

#[test]
fn a_whole_life_without_systemd() {
    let Some(debian) = Debian::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let before = debian.files();
    for package in revisions(folder.path()) {
        debian.install(&package);
    }
    let output = debian.image.shell(&[], "/usr/bin/hasten run --quiet --only gzip -- sh -c 'exit 3'");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    debian.dpkg(&["--purge", "hasten"]);
    assert_eq!(debian.files(), before);
}

#[test]
fn whoever_still_names_it_is_told_at_its_removal() {
    let Some(debian) = Debian::with_systemd() else { return };
    let folder = tempfile::tempdir().unwrap();
    debian.install(&deb(folder.path(), "1"));
    let units = "/etc/systemd/system";
    let named = [
        (
            "nginx.service.d/override.conf",
            "[Service]\nExecStart=\nExecStart=/usr/bin/hasten run -- /usr/sbin/nginx\n",
            "start",
        ),
        ("app.service", "[Service]\n  ExecStart=-hasten run -- node app.js\n", "start"),
        (
            "node.service",
            "[Service]\nEnvironment=\"NODE_OPTIONS=--require /usr/lib/hasten/node/register.js\"\n",
            "start",
        ),
        (
            "haproxy.service.d/hasten.conf",
            "[Service]\nEnvironment=LD_PRELOAD=/usr/lib/hasten/libhasten.so\n",
            "preload",
        ),
        (
            "open.service",
            "[Service]\nExecStart=/bin/sh -c '[ ! -x /usr/bin/hasten ] || exec /usr/bin/hasten run -- \"$$@\"' sh x\n",
            "open",
        ),
        (
            "old.service",
            "[Service]\n# ExecStart=/usr/bin/hasten run -- x\n  ;ExecStart=/usr/bin/hasten run\nExecStart=/usr/bin/hastened\n",
            "nothing",
        ),
    ];
    for (file, text, _) in named {
        debian.image.write(&format!("{units}/{file}"), text);
    }
    debian.image.write("/etc/default/worker", "LD_PRELOAD=/usr/lib/hasten/libhasten.so\n");
    let said = errors(&debian.dpkg(&["--remove", "hasten"]));
    let (start, rest) = said.split_once("look first whether").unwrap_or_else(|| panic!("{said}"));
    let (open, preload) = rest.split_once("preload its libraries").unwrap_or_else(|| panic!("{said}"));
    for (file, _, kind) in named {
        let line = format!("  {units}/{file}\n");
        let places = [start, open, preload].map(|part| part.contains(&line));
        assert_eq!(places, ["start", "open", "preload"].map(|place| place == kind), "{file}: {said}");
    }
    assert!(preload.contains("  /etc/default/worker\n"), "{said}");
    assert_eq!(said.matches("app.service").count(), 1, "each is named once: {said}");
}

/// Drop-ins of `hasten enable` survive upgrades, and go with the package.
#[test]
fn services_that_were_enabled_are_not_when_it_is_gone() {
    let Some(debian) = Debian::with_systemd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = revisions(folder.path());
    let [ours, theirs] =
        ["50-hasten.conf", "own.conf"].map(|name| format!("/etc/systemd/system/nginx.service.d/{name}"));
    let preload = "[Service]\nEnvironment=LD_PRELOAD=/usr/lib/hasten/libhasten.so\n";
    debian.install(&first);
    debian.image.write(
        &ours,
        &format!("# Written by `hasten enable`; `hasten disable nginx` removes it.\n{preload}"),
    );
    debian.image.write(&theirs, "[Service]\nNice=1\n");
    debian.install(&second);
    assert!(debian.image.path(&ours).exists());
    let said = errors(&debian.dpkg(&["--remove", "hasten"]));
    assert!(said.contains("drop-in is removed") && !said.contains("preload its libraries"), "{said}");
    assert!(!debian.image.path(&ours).exists() && debian.image.path(&theirs).exists());
}

/// The documents' recipes: with the package they accelerate, without it they start the program unchanged.
#[test]
fn the_recipes_for_systemd_go_on_without_the_package() {
    let Some(debian) = Debian::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let lines = || page.lines().map(str::trim);
    let preload = lines()
        .find_map(|line| line.strip_prefix("Environment=LD_PRELOAD="))
        .expect("the recipe with LD_PRELOAD");
    let shell =
        lines().find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c ")).expect("the recipe with a shell");
    let (script, rest) = shell.strip_prefix('\'').and_then(|shell| shell.split_once('\'')).unwrap();
    assert!(rest.starts_with(" sh /"), "{rest}");
    // As systemd reads it. Without /proc the command does not know its own location.
    let script = script.replace("$$", "$");
    let print = "printf '%s ' \"$LD_PRELOAD\"; exit 3";
    let started = |debian: &Debian| {
        let plain = debian.image.shell(&[("LD_PRELOAD", preload)], "exit 3");
        let wrapped = debian.image.shell(
            &[("SCRIPT", &script), ("PRINT", print), ("HASTEN_LIBDIR", "/usr/lib/hasten")],
            "exec sh -c \"$SCRIPT\" sh /bin/sh -c \"$PRINT\"",
        );
        assert_eq!((plain.status.code(), wrapped.status.code()), (Some(3), Some(3)), "{plain:?} {wrapped:?}");
        (errors(&plain), String::from_utf8_lossy(&wrapped.stdout).into_owned())
    };
    debian.install(&deb(folder.path(), "1"));
    let (complaint, preloaded) = started(&debian);
    assert_eq!(complaint, "");
    assert!(preloaded.contains("/usr/lib/hasten/libhasten.so"), "{preloaded}");
    debian.dpkg(&["--remove", "hasten"]);
    let (complaint, preloaded) = started(&debian);
    assert!(complaint.contains("cannot be preloaded"), "{complaint}");
    assert_eq!(preloaded, " ");
}

#[test]
fn the_package_has_what_policy_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let deb = deb(folder.path(), "1");
    let list = tools::run(Command::new("dpkg-deb").arg("--contents").arg(&deb));
    let list = String::from_utf8_lossy(&list.stdout);
    for file in [
        "man/man1/hasten-run.1.gz",
        "doc/hasten/copyright",
        "doc/hasten/changelog.Debian.gz",
        "doc/hasten/README.md",
        "doc/hasten/docs/configuration.md",
        "zsh/vendor-completions/_hasten",
    ] {
        assert!(list.contains(&format!(" ./usr/share/{file}\n")), "{file}: {list}");
    }
    assert!(list.lines().all(|line| line.contains(" root/root ")), "{list}");
    let field = |name: &str| {
        let output = tools::run(Command::new("dpkg-deb").arg("--field").arg(&deb).arg(name));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(field("Version"), concat!(env!("CARGO_PKG_VERSION"), "-1"));
    assert_eq!(field("Depends"), "libc6 (>= 2.17), zlib1g");
    let Ok(lintian) = hasten_bench::server::find_program("lintian") else {
        println!(
            "lintian is not here, so only files and fields were looked at: `apt-get install lintian` brings it"
        );
        return;
    };
    tools::run(Command::new(lintian).args(["--fail-on", "error", "--allow-root"]).arg(&deb));
}
