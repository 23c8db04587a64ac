//! The RPM in parts of a system without any other package: installed, upgraded and removed by a real rpm. No systemd runs
//! there: a stand-in records its calls, and knows one service.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_tests::image::{Image, as_root};
use hasten_tests::tools;

use crate::made::{files_below, rpm};

const CALLS: &str = "/calls";
const DATABASE: &str = "/var/lib/rpm";
const DROP_IN: &str = "/etc/systemd/system/nginx.service.d/50-hasten.conf";

/// One service, whose program is what the test makes of it.
const SYSTEMCTL: &str = "#!/bin/sh
case $1 in
show) printf 'Id=nginx.service\\nLoadState=loaded\\nActiveState=inactive\\nExecStart={ path=/usr/sbin/nginx ; }\\n' ;;
*) echo \"systemctl $*\" >>/calls ;;
esac
";

struct System {
    image: Image,
}

impl System {
    fn new() -> Option<Self> {
        let Some(image) = Image::named("debian-11") else {
            println!("skipped: this network does not have the packages of Debian 11");
            return None;
        };
        for folder in ["tmp", "etc", "usr/bin", "usr/sbin", "dev", "run/systemd/system"] {
            fs::create_dir_all(image.path(folder)).unwrap();
        }
        // A file will do, and only root can make a device.
        fs::write(image.path("dev/null"), "").unwrap();
        let busybox = fs::read_link(image.path("bin/sh")).unwrap();
        for program in ["cat", "find", "ls", "rm"] {
            std::os::unix::fs::symlink(&busybox, image.path("bin").join(program)).unwrap();
        }
        let systemctl = image.path("usr/bin/systemctl");
        fs::write(&systemctl, SYSTEMCTL).unwrap();
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { image })
    }

    /// Its packages are none of rpm's, so what ours requires is checked by itself.
    fn rpm(&self, arguments: &[&str]) -> Output {
        let mut command = as_root(&tools::tool("rpm", "rpm"));
        command.arg("--root").arg(self.image.path("")).args(["--dbpath", DATABASE, "--nodeps"]);
        command.args(["--noplugins", "--force-debian"]).args(arguments).env("LC_ALL", "C");
        tools::run(&mut command)
    }

    fn install(&self, package: &Path) -> Output {
        self.rpm(&["--upgrade", package.to_str().unwrap()])
    }

    /// Everything except rpm's own files.
    fn files(&self) -> Vec<String> {
        let mut files = files_below(&self.image.path(""));
        files.retain(|file| !file.starts_with(DATABASE.trim_start_matches('/')));
        files
    }
}

fn query(package: &Path, what: &str) -> Vec<String> {
    let mut command = Command::new(tools::tool("rpm", "rpm"));
    let output = tools::run(command.args(["--query", "--package", what]).arg(package).env("LC_ALL", "C"));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A package of somebody else with one program, which is static.
fn server(folder: &Path) -> PathBuf {
    let spec = folder.join("nginx.spec");
    let text = "Name: nginx\nVersion: 1\nRelease: 1\nSummary: a server\nLicense: none\nAutoReqProv: no\n\
                %global debug_package %{nil}\n%global __os_install_post %{nil}\n%description\nA server.\n%install\n\
                mkdir -p %{buildroot}/usr/sbin\ncp /sbin/ldconfig %{buildroot}/usr/sbin/nginx\n%files\n/usr/sbin/nginx\n";
    fs::write(&spec, text).unwrap();
    let mut build = Command::new(tools::tool("rpmbuild", "rpm"));
    build.args(["--quiet", "-bb", "--define"]).arg(format!("_topdir {}", folder.display())).arg(spec);
    tools::run(build.env("HOME", folder));
    crate::made::only(&folder.join("RPMS/x86_64"), ".rpm")
}

#[test]
fn it_needs_nothing_but_the_c_library_of_the_floor_and_zlib() {
    let folder = tempfile::tempdir().unwrap();
    let package = rpm(folder.path(), "1");
    let number =
        |version: &str| version.split('.').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>();
    for need in query(&package, "--requires") {
        let name = need.split(['(', '.']).next().unwrap();
        assert!(
            ["libc", "libdl", "libm", "libpthread", "ld-linux-x86-64", "libz", "rtld", "rpmlib", "/bin/sh"]
                .contains(&name),
            "{need}"
        );
        if let Some((_, version)) = need.split_once("(GLIBC_") {
            assert!(number(version.split(')').next().unwrap()) <= number("2.17"), "{need}");
        }
    }
    // rpm looks for what others provide in what it installs: nothing of ours may answer to a library's name.
    for provided in query(&package, "--provides") {
        assert!(provided.starts_with("hasten"), "{provided}");
    }
    let files = query(&package, "--list");
    for file in [
        "/usr/bin/hasten",
        "/usr/lib/hasten/libhasten.so",
        "/usr/lib/systemd/system/hasten-export.service",
        "/usr/share/licenses/hasten/LICENSE",
        "/usr/share/man/man1/hasten-run.1.gz",
    ] {
        assert!(files.iter().any(|known| known == file), "{file}: {files:?}");
    }
}

#[test]
fn a_whole_life() {
    let Some(system) = System::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["1", "2"].map(|release| rpm(&folder.path().join(release), release));
    let before = system.files();
    system.install(&first);
    // Nothing is started, enabled or restarted.
    assert_eq!(system.image.take_lines(CALLS), ["systemctl --system daemon-reload"]);
    let output = system.image.shell(&[], "/usr/bin/hasten run --quiet --only gzip -- sh -c 'exit 3'");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    system.rpm(&["--verify", "hasten"]);

    system.install(&second);
    let calls = system.image.take_lines(CALLS);
    assert_eq!(calls.last().unwrap(), "systemctl try-restart hasten-export.service", "{calls:?}");

    system.image.write("/etc/sysconfig/worker", "LD_PRELOAD=/usr/lib/hasten/libhasten.so\n");
    let removed = system.rpm(&["--erase", "hasten"]);
    let said = String::from_utf8_lossy(&[&*removed.stdout, &removed.stderr].concat()).into_owned();
    assert!(said.contains("preload its libraries") && said.contains("/etc/sysconfig/worker"), "{said}");
    assert_eq!(
        system.image.take_lines(CALLS),
        [
            "systemctl stop hasten-export.service",
            "systemctl --quiet disable hasten-export.service",
            "systemctl --system daemon-reload"
        ]
    );
    fs::remove_file(system.image.path("/etc/sysconfig/worker")).unwrap();
    assert_eq!(system.files(), before);
}

/// A server that came with another package is looked at again: into a static program nothing can be loaded.
#[test]
fn an_upgrade_of_a_server_looks_again_at_what_is_enabled() {
    let Some(system) = System::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    system.install(&rpm(&folder.path().join("made"), "1"));
    let preload = "[Service]\nEnvironment=LD_PRELOAD=/usr/lib/hasten/libhasten.so\n";
    system.image.write(
        DROP_IN,
        &format!("# Written by `hasten enable`; `hasten disable nginx` removes it.\n{preload}"),
    );
    system.image.take_lines(CALLS);
    let installed = system.install(&server(folder.path()));
    let said = String::from_utf8_lossy(&[&*installed.stdout, &installed.stderr].concat()).into_owned();
    assert!(said.contains("nginx.service is no longer accelerated"), "{said}");
    assert!(!system.image.path(DROP_IN).exists());
    assert_eq!(system.image.take_lines(CALLS), ["systemctl daemon-reload"]);
}
