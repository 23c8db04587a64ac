//! The preload libraries in parts of other releases: glibc 2.23 to 2.43 without libgcc_s.so.1, and musl. Whatever they
//! can do there, every program must run as without them; and the plan's advance verdict on OpenSSL must be true.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hasten_plan::{Config, Decision, Plan, Surroundings, Verdict};
use hasten_probe::host::cpu::FeatureState;
use hasten_probe::{Cpu, Environment, Feature, Program};
use hasten_tests::image::{Image, LIBRARIES as FOLDER};
use hasten_tests::program::without_library;
use hasten_tests::{product, tools};

/// Starts a shell, and from it some more processes.
const PIPELINE: &str = "true && /bin/seq 1 5000 | /bin/grep 7 | /bin/sort -r | /bin/wc; exit 3";

/// The plan's TLS verdict for a program of an image, on a CPU with every feature.
fn verdict(image: &Image, program: &str) -> Verdict {
    let library_path = Some(image.path("usr/lib/x86_64-linux-gnu").into());
    let program = image.path(program);
    let program = Program::inspect(program.as_os_str(), &Environment { path: None, library_path }).unwrap();
    let state = |feature| FeatureState { feature, cpu: true, kernel: true, usable: true };
    let cpu = Cpu { features: Feature::ALL.into_iter().map(state).collect(), ..Cpu::default() };
    let library_directory = product::library().parent().map(Path::to_owned);
    let surroundings = Surroundings { library_directory, ..Surroundings::default() };
    Plan::new(&cpu, &program, &Config::default(), &surroundings).verdict("tls").unwrap().clone()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Compiles tests/images/NAME.c with `compiler` into `file`.
fn compile(compiler: &str, package: &str, name: &str, file: &Path, flags: &[&str]) {
    let mut command = Command::new(tools::tool(compiler, package));
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(file);
    command.arg(repository().join("tests/images").join(name).with_extension("c")).args(flags);
    tools::run(&mut command);
}

/// For every glibc from the floor on.
fn compile_for_floor(name: &str, file: &Path, flags: &[&str]) {
    let floor = format!("-L{}", repository().join(".deps/floor").display());
    compile("cc", "gcc", name, file, &[flags, &[&floor]].concat());
}

/// Libraries that print their names, beside the shim.
fn shim_with_payloads(folder: &Path) -> [PathBuf; 4] {
    let shim = folder.join("libhasten.so");
    fs::copy(product::shim(), &shim).unwrap();
    let payload = |name: &str| {
        let file = folder.join(format!("libhasten_{name}.so"));
        compile_for_floor("payload", &file, &["-shared", "-fPIC", &format!("-DNAME=\"{name}\"")]);
        file
    };
    [payload("tls"), payload("gzip"), payload("wal"), shim]
}

fn describe(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Values of the kill switch, and what the shim loads with them.
const SWITCHES: [(&str, &str); 11] = [
    ("", "tls\ngzip\n"),
    ("tls", "gzip\n"),
    ("node, gzip", "tls\n"),
    ("tls,gzip", ""),
    ("all", ""),
    ("ALL", ""),
    (" 1 ", ""),
    ("nothing TLS", "gzip\n"),
    ("Tls\tgzip ", ""),
    ("TLS,GZIP", ""),
    ("tlsx,gzi,al,10", "tls\ngzip\n"),
];

fn preloaded(program: &Path, library: impl AsRef<OsStr>) -> Output {
    let mut command = Command::new(program);
    without_library(&mut command);
    command.env("LD_PRELOAD", library).output().unwrap()
}

#[test]
fn every_program_of_every_image_starts_with_the_libraries() {
    let libraries = [product::library(), product::gzip_library(), product::shim()];
    for image in Image::all() {
        let image = image.with(libraries.iter().map(PathBuf::as_path));
        let stock = describe(&image.shell(&[], PIPELINE));
        assert_eq!(stock.0, Some(3), "{}: {stock:?}", image.name);
        for list in ["libhasten_tls.so", "libhasten_gzip.so", "libhasten.so"] {
            let preload = format!("{FOLDER}/{list}");
            let with = describe(&image.shell(&[("LD_PRELOAD", &preload)], PIPELINE));
            assert_eq!(with, stock, "{} with {list} (left) and without", image.name);
        }
    }
}

#[test]
fn gzip_acts_in_every_image() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("pack");
    compile_for_floor("pack", &program, &["-lz"]);
    for image in Image::all() {
        let image = image.with([product::gzip_library().as_path(), &program]);
        let run = format!("{FOLDER}/pack");
        let stock = describe(&image.shell(&[], &run));
        let preload = format!("{FOLDER}/libhasten_gzip.so");
        let with = describe(&image.shell(&[("LD_PRELOAD", &preload)], &run));
        for (status, size, errors) in [&stock, &with] {
            assert_eq!((*status, &**errors), (Some(0), ""), "{}", image.name);
            assert_ne!(size, "");
        }
        // Engines find other matches than zlib does.
        assert_ne!(with.1, stock.1, "{}: zlib's own result", image.name);
    }
}

/// Whoever looks at the client's key finds it complete, and a stack on which OpenSSL has room is large enough.
#[test]
fn a_program_may_look_at_a_hybrid_exchange_and_make_it_on_a_small_stack() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hybrid");
    compile_for_floor("hybrid", &program, &["-lssl", "-lcrypto", "-Wl,--allow-shlib-undefined"]);
    let Some(image) = Image::named("ubuntu-26.04") else { return };
    let image = image.with([product::library().as_path(), &program]);
    let run = format!("{FOLDER}/hybrid");
    let stock = describe(&image.shell_with_proc(&[], &run));
    assert_eq!((stock.0, stock.1.matches("works 1").count()), (Some(0), 16), "{stock:?}");
    let preload = format!("{FOLDER}/libhasten_tls.so");
    // The trial comes first; or it is due on the small stack, and waits for another.
    for trial in ["1", "6"] {
        let with = image.shell_with_proc(&[("LD_PRELOAD", &preload), ("HASTEN_TLS_TRIAL", trial)], &run);
        assert_eq!(describe(&with), stock, "with the library (left) and without");
    }
}

/// A client is handed keys that OpenSSL does not have, and a secret that it did not compute.
#[test]
fn a_client_notices_nothing_by_any_group() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("client");
    compile_for_floor("client", &program, &["-lssl", "-lcrypto", "-Wl,--allow-shlib-undefined"]);
    for name in ["ubuntu-26.04", "ubuntu-24.04"] {
        let Some(image) = Image::named(name) else { continue };
        let image = image.with([product::library().as_path(), &program]);
        let run = format!("{FOLDER}/client");
        let stock = describe(&image.shell_with_proc(&[], &run));
        assert!(stock.0 == Some(0) && stock.1.ends_with("end\n"), "{stock:?}");
        assert!(stock.1.contains(": TLS_AES_256_GCM_SHA384"), "{stock:?}");
        let preload = format!("{FOLDER}/libhasten_tls.so");
        for others in [("HASTEN_TLS_TRIAL", "2"), ("HASTEN_CPU_DISABLE_IFMA", "1")] {
            let variables = [("LD_PRELOAD", &*preload), ("HASTEN_TLS_TRIAL", "1"), others];
            let with = describe(&image.shell_with_proc(&variables, &run));
            assert_eq!(with, stock, "with the library (left) and without, in {name} with {others:?}");
        }
    }
}

/// The plan reads a text in libcrypto; the library asks OpenSSL for its number.
#[test]
fn what_the_plan_promises_for_an_openssl_is_what_the_library_does() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("linked");
    compile_for_floor("linked", &program, &["-lssl", "-ldl", "-Wl,--allow-shlib-undefined"]);
    let mut images = 0;
    for image in Image::all().into_iter().filter(|image| image.has("libssl.so.3")) {
        let image = image.with([product::library().as_path(), &program]);
        let preload = format!("{FOLDER}/libhasten_tls.so");
        let output = describe(&image.shell(&[("LD_PRELOAD", &preload)], &format!("{FOLDER}/linked")));
        let promised = match verdict(&image, &format!("{}/linked", &FOLDER[1..])).decision {
            Decision::Apply => "hooked\n",
            _ => "plain\n",
        };
        assert_eq!(output, (Some(0), promised.to_owned(), String::new()), "{}", image.name);
        assert_eq!(promised, "hooked\n", "{}: a known series", image.name);
        images += 1;
    }
    assert!(images > 0, "an image with OpenSSL");
}

#[test]
fn programs_of_other_releases_are_judged_as_this_ones() {
    for (program, decision, why) in [
        ("usr/sbin/nginx", Decision::Apply, "hasten's tests"),
        ("usr/bin/openssl", Decision::Skip, "nothing in openssl calls epoll_wait"),
        ("usr/sbin/lighttpd", Decision::Standby, "looks then whether"),
    ] {
        for image in Image::all().into_iter().filter(|image| image.has("libssl.so.3")) {
            let verdict = verdict(&image, program);
            assert_eq!(verdict.decision, decision, "{}: {verdict:#?}", image.name);
            let is_said = verdict.reasons.iter().any(|reason| reason.text.contains(why));
            assert!(is_said, "{}: {verdict:#?}", image.name);
        }
    }
}

#[test]
fn the_shim_heeds_the_kill_switch_in_any_case_and_with_any_separator() {
    let folder = tempfile::tempdir().unwrap();
    let [.., shim] = shim_with_payloads(folder.path());
    for (disabled, loaded) in SWITCHES {
        let mut command = Command::new("true");
        without_library(&mut command);
        let output = command.env("LD_PRELOAD", &shim).env("HASTEN_DISABLE", disabled).output().unwrap();
        let expected = (Some(0), loaded.to_owned(), String::new());
        assert_eq!(describe(&output), expected, "HASTEN_DISABLE={disabled:?}");
    }
}

#[test]
fn the_shim_loads_what_has_to_be_asked_for_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let [.., shim] = shim_with_payloads(folder.path());
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("HASTEN_WAL_EPHEMERAL", "1")], "tls\ngzip\n"),
        (&[("HASTEN_WAL", "/fast")], "tls\ngzip\nwal\n"),
        (&[("HASTEN_WAL", "/fast"), ("HASTEN_DISABLE", "wal")], "tls\ngzip\n"),
        (&[("HASTEN_PRELOAD", "wal")], "wal\n"),
        (&[("HASTEN_WAL", "/fast"), ("HASTEN_PRELOAD", "tls")], "tls\n"),
    ];
    for (variables, loaded) in cases {
        let mut command = Command::new("true");
        without_library(&mut command);
        let output = command.env("LD_PRELOAD", &shim).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(describe(&output), (Some(0), loaded.to_owned(), String::new()), "{variables:?}");
    }
}

#[test]
fn the_shim_loads_what_is_beside_it_in_every_image() {
    let folder = tempfile::tempdir().unwrap();
    let files = shim_with_payloads(folder.path());
    let preload = ("LD_PRELOAD", "/usr/lib/hasten/libhasten.so");
    for image in Image::all() {
        let image = image.with(files.iter().map(PathBuf::as_path));
        for (disabled, loaded) in SWITCHES {
            let output = image.shell(&[preload, ("HASTEN_DISABLE", disabled)], "exit 3");
            let found = describe(&output);
            let expected = (Some(3), loaded.to_owned(), String::new());
            assert_eq!(found, expected, "{} with HASTEN_DISABLE={disabled}", image.name);
        }
    }
}

#[test]
fn the_shim_leaves_nothing_behind_where_there_is_nothing_to_load() {
    let folder = tempfile::tempdir().unwrap();
    let (program, shim) = (folder.path().join("start"), folder.path().join("libhasten.so"));
    fs::copy(product::shim(), &shim).unwrap();
    compile("cc", "gcc", "start", &program, &["-DWITH_DLERROR", "-ldl"]);
    let expected = (Some(3), "errno 0\ndlerror none\n".to_owned(), String::new());
    assert_eq!(describe(&preloaded(&program, &shim)), expected);
}

#[test]
fn the_shim_does_not_disturb_programs_of_musl_nor_static_ones() {
    let folder = tempfile::tempdir().unwrap();
    let [.., shim] = shim_with_payloads(folder.path());
    let expected = (Some(3), "errno 0\n".to_owned(), String::new());
    for (compiler, package, flag) in [
        ("musl-gcc", "musl-tools", "-O1"),
        ("musl-gcc", "musl-tools", "-static"),
        ("cc", "gcc", "-static"),
        ("cc", "gcc", "-static-pie"),
    ] {
        let program = folder.path().join(format!("{compiler}{flag}"));
        compile(compiler, package, "start", &program, &[flag]);
        for preload in [&shim, &product::shim()] {
            assert_eq!(describe(&preloaded(&program, preload)), expected, "{compiler} {flag}");
        }
    }
}

const SIGABRT: i32 = 6;

/// OpenTelemetry's injector ended such programs, or was ended by them, instead of letting them say what is wrong.
#[test]
fn a_program_that_aborts_before_main_says_and_does_what_it_would() {
    let folder = tempfile::tempdir().unwrap();
    let [.., shim] = shim_with_payloads(folder.path());
    let program = folder.path().join("aborts");
    compile("cc", "gcc", "awkward", &program, &["-DABORTS"]);
    let stock = preloaded(&program, "");
    assert_eq!((stock.status.signal(), &stock.stdout[..]), (Some(SIGABRT), &b"before main\n"[..]));
    for library in [&product::shim(), &product::library(), &product::gzip_library()] {
        let with = preloaded(&program, library);
        assert_eq!((with.status, describe(&with)), (stock.status, describe(&stock)), "{}", library.display());
    }
    // The shim is later than the program's libraries, and earlier than the program: what is beside it is loaded, and nothing else differs.
    let with = preloaded(&program, &shim);
    let after = with.stdout.strip_prefix(b"tls\ngzip\n").unwrap_or(&with.stdout);
    assert_eq!((with.status, after), (stock.status, &stock.stdout[..]));
}

/// A program that is not position-independent has `environ` itself, and the C library uses that.
#[test]
fn data_that_a_program_has_copied_from_the_c_library_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("copies");
    compile("cc", "gcc", "awkward", &program, &["-DCOPIES", "-no-pie", "-fno-pie"]);
    let relocations = Command::new("readelf").args(["-rW"]).arg(&program).output().unwrap();
    let relocations = String::from_utf8_lossy(&relocations.stdout).into_owned();
    for name in ["environ", "optind", "stdout"] {
        let copied = relocations.lines().any(|line| line.contains("R_X86_64_COPY") && line.contains(name));
        assert!(copied, "{name} is not copied:\n{relocations}");
    }
    let expected = (Some(3), "environ 1 optind 1\n".to_owned(), String::new());
    for library in [product::shim(), product::library(), product::gzip_library()] {
        assert_eq!(describe(&preloaded(&program, &library)), expected, "{}", library.display());
    }
}

/// An image may have programs of both. The loader of the other kind says that it cannot, and goes on.
#[test]
fn a_32_bit_program_runs_under_the_library_of_the_others() {
    assert!(Path::new("/lib/ld-linux.so.2").exists(), "run `sudo apt-get install libc6-i386`");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("small");
    let flags = ["-DSMALL", "-m32", "-nostdlib", "-pie", "-fPIE", "-Wl,-dynamic-linker,/lib/ld-linux.so.2"];
    compile("cc", "gcc", "awkward", &program, &flags);
    let (code, _, said) = describe(&preloaded(&program, product::shim()));
    assert_eq!(code, Some(3));
    assert!(said.contains("wrong ELF class") && said.contains("ignored"), "{said}");
}
