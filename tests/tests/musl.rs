//! Programs linked with musl, as on Alpine: nginx with Alpine's own OpenSSL, accelerated through the shim; and what must
//! leave them alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{Group, Protocol};
use hasten_telemetry::Event;
use hasten_tests::guest::{Guest, PACKED, load};
use hasten_tests::image::{Image, LIBRARIES};
use hasten_tests::pki::Pki;
use hasten_tests::program::without_library;
use hasten_tests::subject::{alarms, assert_perfect, batched, send};
use hasten_tests::traffic::Traffic;
use hasten_tests::{bodies, lanes, product, tools, wait};
use rustix::process::Signal;

/// A release of musl that the image has beside its own.
const OTHER: &str = "opt/musl-1.2.4/ld-musl-x86_64.so.1";
const LOADER: &str = "lib/ld-musl-x86_64.so.1";

const LOADS: [(Group, Protocol); 4] = [
    (Group::X25519, Protocol::Tls13),
    (Group::P256, Protocol::Tls12),
    (Group::P384, Protocol::Tls13),
    (Group::X25519MlKem768, Protocol::Tls13),
];

#[test]
fn nginx_is_batched_with_every_key_group_and_protocol() {
    let pki = Pki::new();
    for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384] {
        let Some(image) = Image::musl() else { return };
        let guest = Guest::preloaded(image, &pki.certificate(kind), SHIM);
        for (group, protocol) in LOADS {
            let (handshakes, counters) = guest.drive_well(&load(group, protocol));
            // The trial found nothing amiss: the key schedule is not OpenSSL's.
            assert!(
                counters[Event::HkdfDirect] > 0 && counters[Event::MacDirect] > 0,
                "{kind}: {counters:#?}"
            );
            if group == Group::X25519MlKem768 {
                assert!(counters[Event::HybridExchange] > handshakes / 2, "{kind}: {counters:#?}");
            }
        }
        let counters = guest.counters();
        assert!(counters[Event::Suspended] > 0 || !lanes::exist(), "{kind}: {counters:#?}");
        assert!(batched(&counters) > 0, "{kind}: {counters:#?}");
        assert_eq!(alarms(&guest.log()), BTreeSet::new());
    }
}

/// And with the library itself in place of the shim, which loads it after the program's own.
#[test]
fn nginx_runs_on_the_oldest_musl_too() {
    let Some(image) = Image::musl() else { return };
    fs::rename(image.path(OTHER), image.path(LOADER)).unwrap();
    let guest = Guest::preloaded(image, &Pki::new().certificate(KeyKind::P256), "musl/libhasten_tls.so");
    for (group, protocol) in LOADS {
        let _ = guest.drive_well(&load(group, protocol));
    }
    assert!(batched(&guest.counters()) > 0);
}

/// The body of a file that the guest compresses, once as it travels and once as the client sees it.
fn fetch(guest: &Guest, file: &str) -> (Vec<u8>, Vec<u8>) {
    let url = format!("https://{}{PACKED}{file}", guest.target().address);
    let get = |options: &[&str]| {
        let mut curl = Command::new(tools::tool("curl", "curl"));
        tools::run(curl.args(["--silent", "--insecure", "--fail"]).args(options).arg(&url)).stdout
    };
    (get(&["--header", "Accept-Encoding: gzip"]), get(&["--compressed"]))
}

#[test]
fn compressed_bodies_are_right() {
    let Some(image) = Image::musl() else { return };
    let guest = Guest::preloaded(image, &Pki::new().certificate(KeyKind::P256), SHIM);
    for length in [1, 100, 30_000, 1_000_000] {
        let (name, body) = (format!("{length}.html"), bodies::page(length));
        guest.add_file(&name, &body);
        let (packed, plain) = fetch(&guest, &name);
        assert!(plain == body, "{length} bytes");
        assert!(length < 1000 || packed.len() < length / 2, "{} of {length} bytes", packed.len());
    }
    let counters = guest.counters();
    assert!(counters[Event::DeflateStreams] >= 4, "{counters:#?}");
    assert_eq!(counters[Event::DeflateMismatch], 0);
}

#[test]
fn a_reload_under_load_goes_unnoticed_and_so_does_the_end() {
    let Some(image) = Image::musl() else { return };
    let mut guest = Guest::preloaded(image, &Pki::new().certificate(KeyKind::P256), SHIM);
    let traffic = Traffic::start(guest.target(), &load(Group::X25519, Protocol::Tls13));
    for _ in 0..3 {
        let before = batched(&guest.counters());
        wait::until("batches", || batched(&guest.counters()) > before);
        let workers = workers(&guest);
        send(guest.pid(), Signal::HUP);
        wait::until("other workers", || workers.is_disjoint(&self::workers(&guest)));
    }
    assert_perfect(&traffic.stop(), &guest.log());
    assert!(guest.quit().success(), "{}", guest.log());
    assert_eq!(alarms(&guest.log()), BTreeSet::new());
}

/// The processes that the log says have been started and not ended since.
fn workers(guest: &Guest) -> BTreeSet<String> {
    let log = guest.log();
    let of = |text: &str| -> BTreeSet<String> {
        let numbers = log.lines().filter_map(|line| line.split_once(text)?.1.split(' ').next());
        numbers.map(str::to_owned).collect()
    };
    of("start worker process ").difference(&of("worker process ")).cloned().collect()
}

/// Compiles a program that prints errno, the last error of `dlopen`, and which of hasten's files it has loaded.
fn program(compiler: &str, package: &str, file: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/start.c");
    let mut command = Command::new(tools::tool(compiler, package));
    command
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-DWITH_DLERROR", "-DWITH_LIBRARIES", "-o"])
        .arg(file);
    tools::run(command.arg(source).arg("-ldl"));
}

/// What it prints and how it ends, if it has loaded these files.
fn having(files: &[&str]) -> (Option<i32>, String, String) {
    let files: String = files.iter().map(|file| format!("{file}\n")).collect();
    (Some(3), format!("errno 0\ndlerror none\n{files}"), String::new())
}

fn describe(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const SHIM: &str = "libhasten.so";
const GLIBC: [&str; 2] = ["libhasten_tls.so", "libhasten_gzip.so"];
const MUSL: [&str; 2] = ["musl/libhasten_tls.so", "musl/libhasten_gzip.so"];

/// Libraries and where they are: where they belong, and mixed up; with whether the first two are where they belong.
fn installations<'a>(
    own: &'a [PathBuf; 2],
    others: &'a [PathBuf; 2],
    [here, there]: [[&'a str; 2]; 2],
) -> [(Vec<(&'a PathBuf, &'a str)>, bool); 6] {
    let at = |files: &'a [PathBuf; 2], places: [&'a str; 2]| files.iter().zip(places).collect::<Vec<_>>();
    [
        ([at(own, here), at(others, there)].concat(), true),
        (at(own, here), true),
        (at(others, there), false),
        (at(others, here), false),
        ([at(others, here), at(own, there)].concat(), false),
        (Vec::new(), false),
    ]
}

/// Makes `folder` contain the shim and these.
fn lay_out(folder: &Path, files: &[(&PathBuf, &str)]) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("musl")).unwrap();
    fs::copy(product::shim(), folder.join(SHIM)).unwrap();
    for (file, place) in files {
        fs::copy(file, folder.join(place)).unwrap();
    }
}

fn both() -> Option<([PathBuf; 2], [PathBuf; 2])> {
    let musl = product::musl_libraries()?;
    Some(([product::library(), product::gzip_library()], musl.try_into().unwrap()))
}

#[test]
fn the_shim_loads_nothing_into_a_program_of_musl_but_what_is_made_for_it() {
    let (Some(image), Some((glibc, musl))) = (Image::musl(), both()) else { return };
    program("musl-gcc", "musl-tools", &image.path("bin/start"));
    let preload = format!("{LIBRARIES}/{SHIM}");
    for (files, is_loaded) in installations(&musl, &glibc, [MUSL, GLIBC]) {
        lay_out(&image.path(LIBRARIES), &files);
        let found = describe(&image.shell(&[("LD_PRELOAD", &preload)], "exec /bin/start"));
        let expected = if is_loaded { [&[SHIM][..], &MUSL].concat() } else { vec![SHIM] };
        assert_eq!(found, having(&expected), "{files:?}");
    }
}

#[test]
fn the_shim_loads_nothing_into_a_program_of_glibc_but_what_is_made_for_it() {
    let Some((glibc, musl)) = both() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (program, folder) = (directory.path().join("start"), directory.path().join("hasten"));
    self::program("cc", "gcc", &program);
    for (files, is_loaded) in installations(&glibc, &musl, [GLIBC, MUSL]) {
        lay_out(&folder, &files);
        let mut command = Command::new(&program);
        without_library(&mut command);
        let found = describe(&command.env("LD_PRELOAD", folder.join(SHIM)).output().unwrap());
        let expected = if is_loaded { [&[SHIM][..], &GLIBC].concat() } else { vec![SHIM] };
        assert_eq!(found, having(&expected), "{files:?}");
    }
}

/// What a shell of glibc starts there inherits the variables. Only the shim may be named in them.
#[test]
fn a_program_of_glibc_under_run_may_start_one_of_musl() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("start");
    self::program("musl-gcc", "musl-tools", &program);
    let _ = product::shim();
    let mut command = Command::new(product::hasten());
    without_library(&mut command);
    // The shell is accelerated, and so is what it starts, if the libraries for musl are there.
    let script = r#"grep -q libhasten_gzip.so /proc/self/maps || exit 1; "$0"; exit $?"#;
    command.args(["run", "--quiet", "--only", "gzip", "--", "sh", "-c", script]).arg(&program);
    assert_eq!(describe(&command.output().unwrap()), having(&[]));
}
