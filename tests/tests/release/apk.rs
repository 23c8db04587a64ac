//! The package for Alpine, as apk reads it: three archives, two sums and a signature. A real apk installs it where there is one.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::bufread::GzDecoder;
use hasten_tests::image::{Image, as_root};
use hasten_tests::tools;

use crate::made::repository;

const KEY: &str = "test@example.rsa";

/// A folder with a key, and a package with one program and one script of `trigger`, signed.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn new() -> Self {
        let workshop = Self { folder: tempfile::tempdir().unwrap() };
        let mut openssl = Command::new(tools::tool("openssl", "openssl"));
        tools::run(openssl.args(["genrsa", "-out"]).arg(workshop.path(KEY)).arg("2048"));
        let mut openssl = Command::new(tools::tool("openssl", "openssl"));
        openssl.args(["rsa", "-pubout", "-in"]).arg(workshop.path(KEY)).arg("-out");
        tools::run(openssl.arg(workshop.path(&format!("{KEY}.pub"))));
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Of the folders `NAME/root` and `NAME/control`.
    fn make(&self, name: &str, file: &str) -> PathBuf {
        let mut make = Command::new(tools::tool("python3", "python3"));
        make.arg(repository().join("scripts/apk.py"))
            .arg(self.path(name).join("root"))
            .arg(self.path(name).join("control"));
        let package = self.path(file);
        tools::run(make.arg(&package).arg(self.path(KEY)).env("SOURCE_DATE_EPOCH", "1700000000"));
        package
    }
}

/// The gzip files, one behind the other: as they are, and unpacked.
fn members(package: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rest, mut members) = (package, Vec::new());
    while !rest.is_empty() {
        let (mut decoder, mut unpacked) = (GzDecoder::new(rest), Vec::new());
        decoder.read_to_end(&mut unpacked).unwrap();
        let left = decoder.into_inner();
        members.push((rest[..rest.len() - left.len()].to_vec(), unpacked));
        rest = left;
    }
    members
}

/// What GNU tar makes of an archive.
fn tar(archive: &[u8], arguments: &[&str]) -> Output {
    let mut child = Command::new("tar");
    child
        .args(arguments)
        .args(["--file", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let archive = archive.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(&archive);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sum(program: &str, data: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    fs::write(&file, data).unwrap();
    text(&tools::run(Command::new(program).arg(file))).split(' ').next().unwrap().to_owned()
}

#[test]
fn a_package_is_signed_summed_and_the_same_each_time() {
    let workshop = Workshop::new();
    workshop.write("made/root/usr/bin/tool", "#!/bin/sh\n");
    std::os::unix::fs::symlink("tool", workshop.path("made/root/usr/bin/link")).unwrap();
    workshop.write("made/control/PKGINFO", "pkgname = tool\npkgver = 1-r0\n");
    workshop.write("made/control/trigger", "#!/bin/sh\n");
    let package = fs::read(workshop.make("made", "one.apk")).unwrap();
    assert_eq!(package, fs::read(workshop.make("made", "two.apk")).unwrap());
    let [(_, signature), (control, info), (data, files)] = &members(&package)[..] else {
        panic!("three archives")
    };

    // Whoever reads the three as one archive finds no end before the last file.
    let whole = [&signature[..], info, files].concat();
    let names = text(&tar(&whole, &["--list"]));
    let expected =
        format!(".SIGN.RSA256.{KEY}.pub\n.PKGINFO\n.trigger\nusr/\nusr/bin/\nusr/bin/link\nusr/bin/tool\n");
    assert_eq!(names, expected);

    let signature = tar(&whole, &["--extract", "--to-stdout", &format!(".SIGN.RSA256.{KEY}.pub")]).stdout;
    fs::write(workshop.path("signature"), signature).unwrap();
    fs::write(workshop.path("control.tar.gz"), control).unwrap();
    let mut verify = Command::new(tools::tool("openssl", "openssl"));
    verify.args(["dgst", "-sha256", "-verify"]).arg(workshop.path(&format!("{KEY}.pub"))).arg("-signature");
    tools::run(verify.arg(workshop.path("signature")).arg(workshop.path("control.tar.gz")));

    let info = text(&tar(&whole, &["--extract", "--to-stdout", ".PKGINFO"]));
    assert!(info.contains(&format!("datahash = {}\n", sum("sha256sum", data))), "{info}");
    let line = format!("APK-TOOLS.checksum.SHA1={}\n", sum("sha1sum", b"#!/bin/sh\n"));
    assert!(String::from_utf8_lossy(files).contains(&line), "{line}");
}

/// With the command for musl, which only `make apk` builds.
fn package(folder: &Path, key: &Path) -> PathBuf {
    crate::made::tree();
    tools::run(crate::made::script("apk.sh").arg(folder).env("RELEASE_APK_KEY", key));
    crate::made::only(folder, ".apk")
}

fn image() -> Image {
    Image::musl().expect("an image of musl: `make apk-test` makes it")
}

/// In the image of musl: the command runs there, and plans for nginx.
#[test]
#[ignore = "needs the command for musl, minutes to build: `make apk-test` runs it"]
fn the_command_runs_on_musl() {
    let workshop = Workshop::new();
    let package = package(&workshop.path("made"), &workshop.path(KEY));
    let image = image();
    // What an apk would do; tar takes the three archives for one.
    tools::run(Command::new("tar").args(["-xzf"]).arg(&package).arg("-C").arg(image.path("")));
    let version = image.shell_with_proc(&[], "/usr/bin/hasten --version");
    assert_eq!(text(&version), concat!("hasten ", env!("CARGO_PKG_VERSION"), "\n"), "{version:?}");
    let check = image.shell_with_proc(&[], "/usr/bin/hasten check --json -- /usr/sbin/nginx");
    let report: serde_json::Value =
        serde_json::from_slice(&check.stdout).unwrap_or_else(|error| panic!("{error}: {check:?}"));
    assert_eq!(report["program"]["linkage"]["libc"], "musl", "{report:#}");
    let gzip_of = |verdicts: &serde_json::Value| {
        let gzip = verdicts.as_array().unwrap().iter().find(|verdict| verdict["name"] == "gzip").unwrap();
        assert_eq!(gzip["decision"], "apply", "{gzip:#}");
        gzip["library"].clone()
    };
    // Where the command itself is of musl, the host is judged by the libraries for it.
    let _ = gzip_of(&report["accelerators"]);
    assert_eq!(gzip_of(&report["program"]["accelerators"]), "/usr/lib/hasten/musl/libhasten_gzip.so");
    fs::create_dir_all(image.path("/var/log/nginx")).unwrap();
    fs::create_dir_all(image.path("/var/lib/nginx")).unwrap();
    // The shell gives it to what runs beside it.
    fs::create_dir_all(image.path("/dev")).unwrap();
    fs::write(image.path("/dev/null"), "").unwrap();
    fs::write(image.path("/nginx.conf"), "user root root;\nevents {}\nhttp { access_log off; }\n").unwrap();
    fs::write(image.path("/etc/passwd"), "root:x:0:0::/:/bin/sh\n").unwrap();
    fs::write(image.path("/etc/group"), "root:x:0:\n").unwrap();
    let script = "/usr/bin/hasten run --quiet -- /usr/sbin/nginx -c /nginx.conf -e stderr -g 'daemon off; master_process off;' & \
                  sleep 2; cat /proc/$!/maps; kill $!";
    let maps = text(&image.shell_with_proc(&[], script));
    assert!(maps.contains("/usr/lib/hasten/musl/libhasten_gzip.so"), "{maps}");
}

#[test]
#[ignore = "needs apk, which Debian does not have, and the command for musl: `make apk-test` runs it where apk is"]
fn apk_installs_triggers_and_removes_it() {
    let apk = hasten_bench::server::find_program("apk").expect("apk in PATH");
    let workshop = Workshop::new();
    let package = package(&workshop.path("made"), &workshop.path(KEY));
    let image = image();
    // The image has what ours depends on, and no package that says so.
    workshop.write("musl/control/PKGINFO", "pkgname = musl\npkgver = 1.2.5-r0\narch = x86_64\nprovides = so:libc.musl-x86_64.so.1=1 so:libz.so.1=1\n");
    fs::create_dir_all(workshop.path("musl/root/opt")).unwrap();
    let musl = workshop.make("musl", "musl-1.2.5-r0.apk");
    fs::create_dir_all(image.path("/etc/apk/keys")).unwrap();
    fs::copy(workshop.path(&format!("{KEY}.pub")), image.path(&format!("/etc/apk/keys/{KEY}.pub"))).unwrap();
    // OpenRC has started nothing, and nothing is enabled.
    fs::create_dir_all(image.path("/run/openrc/started")).unwrap();
    fs::write(image.path("/run/openrc/softlevel"), "default\n").unwrap();
    fs::create_dir_all(image.path("/etc/init.d")).unwrap();
    let run = |arguments: &[&std::ffi::OsStr]| {
        let mut command = as_root(&apk);
        command.arg("--root").arg(image.path("")).args([
            "--arch",
            "x86_64",
            "--no-network",
            "--repositories-file",
            "/dev/null",
        ]);
        tools::run(command.args(arguments))
    };
    run(&["add".as_ref(), "--initdb".as_ref(), musl.as_os_str(), package.as_os_str()]);
    assert!(image.path("/usr/bin/hasten").is_file());
    // A stopped service, whose program becomes a static one: the trigger of another package finds it.
    fs::write(image.path("/etc/init.d/web"), "#!/sbin/openrc-run\ncommand=/usr/sbin/web\n").unwrap();
    let drop_in = image.path("/etc/rc.conf.d/50-hasten-web.conf");
    fs::create_dir_all(drop_in.parent().unwrap()).unwrap();
    fs::write(&drop_in, "# Written by `hasten enable`; `hasten disable web` removes it.\n").unwrap();
    fs::create_dir_all(workshop.path("web/root/usr/sbin")).unwrap();
    fs::copy(image.path("/bin/busybox"), workshop.path("web/root/usr/sbin/web")).unwrap();
    workshop.write("web/control/PKGINFO", "pkgname = web\npkgver = 1-r0\narch = x86_64\n");
    let web = workshop.make("web", "web-1-r0.apk");
    run(&["add".as_ref(), web.as_os_str()]);
    assert!(!drop_in.exists(), "the trigger has looked at nothing");
    run(&["del".as_ref(), "hasten".as_ref()]);
    assert!(!image.path("/usr/bin/hasten").exists() && !image.path("/etc/init.d/hasten-export").exists());
}
