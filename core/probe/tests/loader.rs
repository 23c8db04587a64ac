//! The loader's search, compared with the loader itself (`ld.so --list`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_probe::program::{Libc, Linkage};
use hasten_probe::{Environment, Program};

const LD_SO: &str = "/lib64/ld-linux-x86-64.so.2";

/// A directory in which C programs and libraries are built.
struct Workshop(tempfile::TempDir);

impl Workshop {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles `source` to `name` with further arguments, in which `@` stands for this directory.
    fn cc(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let output = self.path(name);
        std::fs::create_dir_all(output.parent().unwrap()).unwrap();
        let file = self.path("source.c");
        std::fs::write(&file, source).unwrap();
        let directory = self.0.path().to_str().unwrap();
        let status = Command::new("cc")
            .args(["-x", "c", file.to_str().unwrap(), "-x", "none", "-o"])
            .arg(&output)
            .args(arguments.iter().map(|argument| argument.replace('@', directory)))
            .status()
            .expect("cc runs (apt-get install gcc)");
        assert!(status.success(), "cc {name}");
        output
    }

    fn library(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let soname = Path::new(name).file_name().unwrap().to_str().unwrap();
        let soname = format!("-Wl,-soname,{soname}");
        self.cc(name, source, &[&["-shared", "-fPIC", &soname], arguments].concat())
    }
}

/// The loader's own account of what it would map.
fn by_loader(program: &Path, library_path: &str) -> BTreeSet<PathBuf> {
    let output =
        Command::new(LD_SO).arg("--list").arg(program).env("LD_LIBRARY_PATH", library_path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(canonical);
    // The loader lists itself and the kernel's vdso; neither is searched for.
    let found: BTreeSet<_> = text.lines().filter_map(path).collect();
    assert!(!found.is_empty(), "{program:?}: {text}");
    found.into_iter().filter(|path| *path != canonical(LD_SO)).collect()
}

fn by_us(program: &Path, library_path: &str) -> BTreeSet<PathBuf> {
    let environment = Environment { path: None, library_path: Some(library_path.into()) };
    let program = Program::inspect(program.as_os_str(), &environment).unwrap();
    assert_eq!(program.missing, []);
    let paths = program.libraries.iter().map(|library| canonical(&library.path));
    paths.filter(|path| *path != canonical(LD_SO)).collect()
}

fn canonical(path: impl AsRef<Path>) -> PathBuf {
    path.as_ref().canonicalize().unwrap()
}

fn assert_agree(program: &Path, library_path: &str) -> BTreeSet<PathBuf> {
    let ours = by_us(program, library_path);
    assert_eq!(ours, by_loader(program, library_path), "{}", program.display());
    ours
}

#[test]
fn agrees_with_the_loader_on_the_programs_of_this_system() {
    let wanted = [
        "/bin/sh",
        "/usr/bin/openssl",
        "/usr/sbin/nginx",
        "/usr/sbin/haproxy",
        "/usr/bin/node",
        "/usr/bin/perl",
    ];
    let present: Vec<_> = wanted.into_iter().map(Path::new).filter(|path| path.exists()).collect();
    assert!(!present.is_empty());
    for program in present {
        assert_agree(&canonical(program), "");
    }
}

#[test]
fn follows_runpath_origin_and_library_path_in_order() {
    let shop = Workshop::new();
    shop.library("one/libwork.so", "int work(void){return 1;}", &[]);
    shop.library("two/libwork.so", "int work(void){return 2;}", &[]);
    let main = "int work(void); int main(void){return work();}";
    let link = ["@/one/libwork.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/one"];
    let runpath = shop.cc("runpath", main, &link);
    let (one, two) = (canonical(shop.path("one/libwork.so")), canonical(shop.path("two/libwork.so")));

    assert!(assert_agree(&runpath, "").contains(&one));
    let library_path = shop.path("two").display().to_string();
    assert!(assert_agree(&runpath, &library_path).contains(&two), "LD_LIBRARY_PATH wins over DT_RUNPATH");

    let link = ["@/one/libwork.so", "-Wl,--disable-new-dtags,-rpath,${ORIGIN}/one"];
    let rpath = shop.cc("rpath", main, &link);
    assert!(assert_agree(&rpath, &library_path).contains(&one), "DT_RPATH wins over LD_LIBRARY_PATH");
}

#[test]
fn rpath_reaches_the_libraries_of_libraries_and_runpath_does_not() {
    let shop = Workshop::new();
    shop.library("deep/libdeep.so", "int deep(void){return 3;}", &[]);
    shop.library("libmid.so", "int deep(void); int mid(void){return deep();}", &["@/deep/libdeep.so"]);
    let main = "int mid(void); int main(void){return mid();}";
    let allow = "-Wl,--allow-shlib-undefined";
    let rpath = shop.cc("rpath", main, &["@/libmid.so", allow, "-Wl,--disable-new-dtags,-rpath,@:@/deep"]);
    assert!(assert_agree(&rpath, "").contains(&canonical(shop.path("deep/libdeep.so"))));

    let runpath = shop.cc("runpath", main, &["@/libmid.so", allow, "-Wl,--enable-new-dtags,-rpath,@:@/deep"]);
    let program = Program::inspect(runpath.as_os_str(), &Environment::default()).unwrap();
    let missing: Vec<_> =
        program.missing.iter().map(|missing| (&*missing.name, &*missing.needed_by)).collect();
    assert_eq!(missing, [("libdeep.so", "libmid.so")]);
}

#[test]
fn skips_a_library_of_another_architecture() {
    let shop = Workshop::new();
    shop.library("good/libwork.so", "int work(void){return 1;}", &[]);
    let program = shop.cc("main", "int work(void); int main(void){return work();}", &["@/good/libwork.so"]);
    // A copy that claims to be for AArch64.
    let mut foreign = std::fs::read(shop.path("good/libwork.so")).unwrap();
    foreign[18] = 183;
    std::fs::create_dir(shop.path("bad")).unwrap();
    std::fs::write(shop.path("bad/libwork.so"), foreign).unwrap();
    let library_path = format!("{}:{}", shop.path("bad").display(), shop.path("good").display());
    assert!(by_us(&program, &library_path).contains(&canonical(shop.path("good/libwork.so"))));
}

#[test]
fn tells_imports_from_exports_and_who_imports_what() {
    let shop = Workshop::new();
    shop.library("libssl.so.3", "int crypto(void); int SSL_new(void){return crypto();}", &[]);
    let main = "int SSL_new(void); int crypto(void){return 0;} int main(void){return SSL_new();}";
    let program = shop.cc("server", main, &["@/libssl.so.3", "-rdynamic", "-Wl,-rpath,@"]);
    let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
    let imports = program.imports();
    assert_eq!(imports.importers("SSL_new"), ["server"]);
    assert_eq!(imports.importers("crypto"), ["libssl.so.3"]);
    assert_eq!(imports.importers("no_such_function"), [] as [&str; 0]);
    assert!(program.exports("crypto") && !program.exports("SSL_new"));
}

#[test]
fn knows_static_from_dynamic() {
    let shop = Workshop::new();
    let main = "int main(void){return 0;}";
    for (name, arguments) in [("static", &["-static"][..]), ("static-pie", &["-static-pie"][..])] {
        let program = shop.cc(name, main, arguments);
        let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
        assert_eq!(program.linkage, Linkage::Static, "{name}");
        assert!(program.libraries.is_empty());
    }
    let program = shop.cc("dynamic", main, &[]);
    let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
    assert!(matches!(program.linkage, Linkage::Dynamic { libc: Libc::Glibc, .. }));
}

#[test]
fn a_program_without_section_headers_is_still_understood() {
    let shop = Workshop::new();
    let program = shop.cc("stripped", "int main(void){return 0;}", &["-s"]);
    let mut bytes = std::fs::read(&program).unwrap();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    std::fs::write(&program, bytes).unwrap();
    assert!(Command::new(&program).status().unwrap().success(), "the kernel and the loader do not mind");
    let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
    assert!(program.library("libc.so.6").is_some());
    assert_eq!(program.imports().importers("__libc_start_main"), [] as [&str; 0]);
}

#[test]
fn a_musl_program_is_recognised() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        println!("skipped: musl-gcc is not installed (apt-get install musl-tools)");
        return;
    }
    let shop = Workshop::new();
    let (source, program) = (shop.path("main.c"), shop.path("main"));
    std::fs::write(&source, "int main(void){return 0;}").unwrap();
    assert!(Command::new("musl-gcc").arg(&source).arg("-o").arg(&program).status().unwrap().success());
    let program = Program::inspect(program.as_os_str(), &Environment::default()).unwrap();
    assert!(matches!(program.linkage, Linkage::Dynamic { libc: Libc::Musl, .. }), "{:?}", program.linkage);
}

#[test]
fn symbol_versions_tell_what_comes_from_libssl() {
    let Ok(program) = Program::inspect(OsStr::new("openssl"), &Environment::current()) else {
        println!("skipped: the openssl command is not installed");
        return;
    };
    let imports = program.imports();
    let from_libssl: BTreeSet<_> = imports.of_executable("libssl.so").collect();
    assert!(from_libssl.contains("SSL_new") && !from_libssl.contains("EVP_DigestInit_ex"), "{from_libssl:?}");
    assert!(imports.importers("SSL_new").contains(&"openssl".to_owned()));
}

#[test]
fn the_version_is_the_one_of_the_library_that_would_be_loaded() {
    let Ok(output) = Command::new("openssl").arg("version").output() else {
        println!("skipped: the openssl command is not installed");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.split_whitespace().nth(1).unwrap();
    let program = Program::inspect(OsStr::new("openssl"), &Environment::current()).unwrap();
    let library = program.library("libcrypto.so").expect("openssl links libcrypto");
    assert_eq!(library.version.as_deref(), Some(format!("OpenSSL {number}").as_str()));
}
