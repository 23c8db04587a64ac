//! The C programs of tests/preload: compiled once, run with and without the library.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use hasten_telemetry::Counters;

use crate::{product, tools};

/// Every batch is worthwhile, however small: whatever a test sends to the engine is done there.
pub const EVERY_BATCH: (&str, &str) = (
    "HASTEN_TLS_BREAK_EVEN",
    "rsa-2048-sign:1,rsa-3072-sign:1,rsa-4096-sign:1,p-256-sign:1,p-384-sign:1,x25519-derive:1,p-256-derive:1,p-384-derive:1",
);
/// Every handshake is suspended, even if it is the only one.
pub const EAGER: (&str, &str) = ("HASTEN_TLS_EAGER", "1");
/// Suspended operations are answered by the original function.
pub const SUSPEND_ONLY: (&str, &str) = ("HASTEN_TLS_SUSPEND_ONLY", "1");
/// OpenSSL's frameworks are left alone, and so is everything else.
pub const NO_SHORTCUTS: (&str, &str) = ("HASTEN_TLS_NO_SHORTCUTS", "1");

/// `musl`: the programs are linked with the musl, OpenSSL and zlib of the image for musl, and run under the libraries for it.
const LIBC: &str = "HASTEN_TEST_LIBC";

fn is_musl() -> bool {
    std::env::var_os(LIBC).is_some_and(|libc| libc == "musl")
}

/// Flags for our own programs.
const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror"];

/// Environment variables.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

/// The preload library under which a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    Tls,
    Gzip,
    ReadCache,
    Wal,
    Tier,
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    library: Library,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Run {
    /// Its output before its last line, which is `end`.
    pub output: Vec<String>,
    /// The counters at that time; zero for a stock run.
    pub counters: Counters,
    pub status: ExitStatus,
    pub errors: String,
}

impl Library {
    fn path(self) -> PathBuf {
        if is_musl() {
            let libraries = product::musl_libraries().expect("the libraries for musl");
            return libraries[self as usize].clone();
        }
        match self {
            Self::Tls => product::library(),
            Self::Gzip => product::gzip_library(),
            Self::ReadCache => product::read_cache_library(),
            Self::Wal => product::wal_library(),
            Self::Tier => product::tier_library(),
        }
    }

    /// Puts the library under test into a command's environment, and removes the caller's own settings.
    pub fn preload(self, command: &mut Command, variables: Variables) {
        without_library(command);
        // Most programs here end before the handshake that the trial of the shortcuts usually comes before.
        command.env("HASTEN_TLS_TRIAL", "1");
        command.env("LD_PRELOAD", self.path()).envs(variables.iter().copied());
    }

    /// The flags that its programs are linked with.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Tls => &["-lssl", "-lcrypto", "-lpthread", "-ldl"],
            Self::Gzip => &["-lz", "-lpthread", "-ldl"],
            Self::ReadCache | Self::Wal => &["-lpthread"],
            // As Debian's Redis: the library itself, without its headers.
            Self::Tier => &["-Wl,--no-as-needed", "-l:libjemalloc.so.2", "-lpthread"],
        }
    }

    /// The header required to compile them, and the package that contains it.
    fn header(self) -> (&'static str, &'static str) {
        match self {
            Self::Tls => ("/usr/include/openssl/ssl.h", "libssl-dev"),
            Self::Gzip => ("/usr/include/zlib.h", "zlib1g-dev"),
            Self::ReadCache | Self::Wal => ("/usr/include/stdio.h", "libc6-dev"),
            Self::Tier => ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "libjemalloc2"),
        }
    }
}

impl Program {
    /// Compiles `tests/preload/NAME.c`, or reuses what another test of this process has compiled.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::with_flags(name, &["-O1"])
    }

    #[must_use]
    pub fn with_flags(name: &str, flags: &[&str]) -> Self {
        Self::of(Library::Tls, &sources().join(format!("{name}.c")), &[STRICT, flags].concat())
    }

    /// As [`named`](Self::named), for a program that uses zlib.
    #[must_use]
    pub fn using_zlib(name: &str) -> Self {
        Self::of(Library::Gzip, &sources().join(format!("{name}.c")), &[STRICT, &["-O1"]].concat())
    }

    /// As [`named`](Self::named), for a program that reads files.
    #[must_use]
    pub fn reading_files(name: &str) -> Self {
        Self::of(Library::ReadCache, &sources().join(format!("{name}.c")), &[STRICT, &["-O1"]].concat())
    }

    /// As [`named`](Self::named), for a program that writes logs.
    #[must_use]
    pub fn writing_logs(name: &str) -> Self {
        Self::of(Library::Wal, &sources().join(format!("{name}.c")), &[STRICT, &["-O1"]].concat())
    }

    /// As [`named`](Self::named), for a program whose allocator is jemalloc.
    #[must_use]
    pub fn with_jemalloc(name: &str) -> Self {
        Self::of(Library::Tier, &sources().join(format!("{name}.c")), &[STRICT, &["-O1"]].concat())
    }

    /// Compiles a program from any path.
    #[must_use]
    pub fn of(library: Library, source: &Path, flags: &[&str]) -> Self {
        static COMPILED: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let libc = if is_musl() { "musl" } else { "" };
        let key = format!("{}{}{libc}", source.file_stem().expect("a file").display(), flags.concat());
        let path = compiled
            .get_or_insert_default()
            .entry(key)
            .or_insert_with_key(|key| compile(library, source, key, flags));
        Self { path: path.clone(), library }
    }

    /// The same under the name of a proven server: its callbacks do not keep handshakes from being suspended, and its
    /// threads are trusted at once.
    #[must_use]
    pub fn proven(self) -> Self {
        let mut directory = self.path.clone().into_os_string();
        directory.push(".proven");
        fs::create_dir_all(&directory).expect("a directory for a program");
        let path = Path::new(&directory).join("nginx");
        // A hard link: a copy would be open for writing in whatever another test starts meanwhile, and could not be
        // executed then.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let fresh = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let fresh = Path::new(&directory).join(fresh);
        fs::hard_link(&self.path, &fresh).expect("another name for a program");
        fs::rename(&fresh, &path).expect("a program in its place");
        // It is kept if it is the same file already.
        let _ = fs::remove_file(&fresh);
        Self { path, ..self }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it without any preload library.
    #[must_use]
    pub fn stock(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments), false)
    }

    /// Runs it under the library, with these variables.
    #[must_use]
    pub fn preloaded(&self, arguments: &[&str], variables: Variables) -> Run {
        let mut command = self.command(arguments);
        self.library.preload(&mut command, variables);
        Run::of(command, true)
    }

    /// Runs it both ways, which must make no difference; returns the counters.
    #[must_use]
    pub fn same_as_stock(&self, arguments: &[&str], variables: Variables) -> Counters {
        let stock = self.stock(arguments).succeeded();
        let preloaded = self.preloaded(arguments, variables).succeeded();
        assert_eq!(preloaded.output, stock.output, "preloaded (left) and stock differ\n{}", preloaded.errors);
        preloaded.counters
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).env("TEST_KEYS", keys());
        command
    }
}

/// Where the programs keep the keys that take long to make (see `common.h`).
fn keys() -> PathBuf {
    let directory = product::target_directory().join("preload-programs/keys");
    fs::create_dir_all(&directory).expect("a directory for keys");
    directory
}

/// Puts the TLS library into a command's environment.
pub fn preload(command: &mut Command, variables: Variables) {
    Library::Tls.preload(command, variables);
}

/// Removes all of the caller's settings from a command's environment.
pub fn without_library(command: &mut Command) {
    let ours = |name: &OsStr| name == "LD_PRELOAD" || name.as_encoded_bytes().starts_with(b"HASTEN_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
}

fn compile(library: Library, source: &Path, key: &str, flags: &[&str]) -> PathBuf {
    let directory = product::target_directory().join("preload-programs");
    fs::create_dir_all(&directory).expect("a directory for programs");
    let file: String = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // Two test processes may compile the same program at the same time.
    let (program, fresh) = (directory.join(&file), directory.join(format!("{file}.{}", std::process::id())));
    let (header, package) = library.header();
    tools::file_of(header, package);
    let mut command = if is_musl() { musl_compiler() } else { Command::new(tools::tool("cc", "gcc")) };
    command.arg("-g").args(flags).arg("-o").arg(&fresh);
    command.arg(source).args(library.flags());
    tools::run(&mut command);
    fs::rename(&fresh, &program).expect("a program in its place");
    program
}

fn musl_compiler() -> Command {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/musl-image");
    let image = image.canonicalize().expect("`scripts/musl-image.sh` makes the image of musl");
    let (loader, libraries) = (image.join("lib/ld-musl-x86_64.so.1"), image.join("usr/lib"));
    let mut command = Command::new(tools::tool("musl-gcc", "musl-tools"));
    command.arg("-include").arg(sources().join("musl.h"));
    // Headers of OpenSSL, zlib and the kernel are the same for every C library.
    command.args(["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]);
    command.arg(format!("-Wl,--dynamic-linker={}", loader.display()));
    command.arg(format!("-Wl,-rpath,{}", libraries.display())).arg("-L").arg(libraries);
    command.arg("-Wl,--allow-shlib-undefined");
    command
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("preload")
}

impl Run {
    /// Runs a command that ends its output with `end` and then waits for the end of its input.
    #[must_use]
    pub fn of(mut command: Command, is_preloaded: bool) -> Self {
        if !is_preloaded {
            without_library(&mut command);
        }
        let mut errors = tempfile::tempfile().expect("a file for messages");
        let stderr = errors.try_clone().expect("a second descriptor");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = until_end(&mut child);
        let counters = if is_preloaded { counters_of(child.id()) } else { Counters::default() };
        drop(child.stdin.take());
        let status = child.wait().expect("a child ends");
        Self { output, counters, status, errors: contents(&mut errors) }
    }

    /// The run, which must have ended successfully.
    #[must_use]
    pub fn succeeded(self) -> Self {
        let Self { status, output, errors, .. } = &self;
        assert!(status.success(), "{status}\n{}\n{errors}", output.join("\n"));
        self
    }
}

fn until_end(child: &mut Child) -> Vec<String> {
    let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let lines = stdout.lines().map(|line| line.expect("a line of text"));
    lines.take_while(|line| line != "end").collect()
}

/// Zero for a process that has ended already, or that is not accelerated.
fn counters_of(pid: u32) -> Counters {
    let mut total = Counters::default();
    for page in hasten_telemetry::pages_of(pid).unwrap_or_default() {
        total += &page.read().expect("a readable counter page").total();
    }
    total
}

fn contents(file: &mut File) -> String {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).expect("a readable file");
    String::from_utf8_lossy(&text).into_owned()
}
