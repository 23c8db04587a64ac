//! What a command is before it is run: the file that finally executes, how it is linked, and what the
//! dynamic loader would load for it.

pub mod compression;
pub mod elf;
pub mod habit;
pub mod kind;
pub mod ldcache;
pub mod loader;
pub mod node;
pub mod openssl_conf;
pub mod privilege;
pub mod resolve;
pub mod script;
mod version;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::compression::Carried;
use self::elf::{Elf, Import, Machine};
use self::kind::Kind;
use self::loader::{Loader, Missing};
use self::privilege::Privilege;

pub use self::resolve::ProgramError;

const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
const ENOEXEC: i32 = rustix::io::Errno::NOEXEC.raw_os_error();

/// A command, looked at the way `execve` and the dynamic loader would look at it.
#[derive(Debug, Clone, Serialize)]
pub struct Program {
    /// The command as it was typed.
    pub command: String,
    /// Scripts on the way to the executable, outermost first.
    pub scripts: Vec<PathBuf>,
    /// The file that finally runs, after `PATH` and `#!` lines.
    pub executable: PathBuf,
    /// What the command's name led to, without following links.
    #[serde(skip)]
    pub file: PathBuf,
    /// `LD_LIBRARY_PATH`, if the loader would heed it.
    #[serde(skip)]
    pub library_path: Option<OsString>,
    pub kind: Kind,
    pub machine: Machine,
    pub linkage: Linkage,
    pub privilege: Privilege,
    /// Every library that the loader maps at start, in its breadth-first order.
    pub libraries: Vec<Library>,
    /// Libraries that are requested but not found.
    pub missing: Vec<Missing>,
}

/// How a program reaches its libraries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Linkage {
    /// No dynamic loader: nothing can be preloaded.
    Static,
    /// Started by the dynamic loader of this C library.
    Dynamic { libc: Libc, interpreter: PathBuf },
    /// The file could not be understood; `why` says what was wrong.
    Unknown { why: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Libc {
    Glibc,
    Musl,
    Other,
}

/// One shared library of a program.
#[derive(Debug, Clone, Serialize)]
pub struct Library {
    /// The name under which it was requested, such as `libssl.so.3`.
    pub name: String,
    pub path: PathBuf,
    /// The object whose `DT_NEEDED` entry brought it in.
    pub needed_by: String,
    /// The library's own version text, such as `OpenSSL 3.0.22`; only for libraries hasten cares about.
    pub version: Option<String>,
}

impl Library {
    /// The library that this host's programs get by this name, unless they bring another one.
    pub fn of_host(name: &str) -> Option<Self> {
        Loader::new(Libc::of_host(), None).of_host(name)
    }
}

/// The part of a process's environment that decides what a command name means.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `PATH`
    pub path: Option<OsString>,
    /// `LD_LIBRARY_PATH`
    pub library_path: Option<OsString>,
}

impl Environment {
    pub fn current() -> Self {
        Self { path: std::env::var_os("PATH"), library_path: std::env::var_os("LD_LIBRARY_PATH") }
    }
}

impl Program {
    /// Finds and reads what `command` with `arguments` would execute.
    ///
    /// The arguments matter only for `#!/usr/bin/env` lines. A file that exists and is executable but cannot be
    /// understood is not an error: its [`Linkage`] says why it is unknown.
    pub fn inspect(command: &OsStr, environment: &Environment) -> Result<Self, ProgramError> {
        let resolved = resolve::resolve(command, environment)?;
        let privilege = Privilege::of(&resolved.executable);
        let mut program = Self {
            command: command.to_string_lossy().into_owned(),
            kind: Kind::of(&resolved.executable),
            scripts: resolved.scripts,
            executable: resolved.executable,
            file: resolved.file,
            library_path: None,
            machine: Machine::Unknown,
            linkage: Linkage::Unknown { why: String::new() },
            privilege,
            libraries: Vec::new(),
            missing: Vec::new(),
        };
        match Elf::open(&program.executable) {
            Ok(elf) => program.describe(&elf, environment),
            Err(error) => program.linkage = Linkage::Unknown { why: error.to_string() },
        }
        Ok(program)
    }

    fn describe(&mut self, elf: &Elf, environment: &Environment) {
        self.machine = elf.machine;
        self.linkage = match &elf.interpreter {
            None => Linkage::Static,
            Some(interpreter) => {
                Linkage::Dynamic { libc: Libc::of(interpreter), interpreter: interpreter.clone() }
            }
        };
        if let Linkage::Dynamic { libc: libc @ (Libc::Glibc | Libc::Musl), .. } = self.linkage {
            self.library_path = environment.library_path.clone().filter(|_| !self.privilege.secure_exec);
            let closure = Loader::new(libc, self.library_path.as_deref()).closure(&self.executable, elf);
            self.libraries = closure.libraries;
            self.missing = closure.missing;
        }
    }

    /// The C library whose loader starts it; `None` if there is none, or it is not known.
    pub fn libc(&self) -> Option<Libc> {
        match self.linkage {
            Linkage::Dynamic { libc, .. } => Some(libc),
            Linkage::Static | Linkage::Unknown { .. } => None,
        }
    }

    /// Why nothing can run it, if that is certain before trying.
    pub fn is_cut_off(&self) -> Option<ProgramError> {
        let why = elf::with(&self.executable, |data| Ok(elf::shortfall(data))).ok().flatten()?;
        Some(ProgramError::CutOff { path: self.executable.clone(), why })
    }

    /// Whether it is built for another architecture; the kernel may still have an interpreter for it.
    pub fn is_foreign(&self) -> bool {
        self.machine.is_foreign()
    }

    /// Why the kernel did not run it, although the file exists and is executable; `None` if unknown.
    pub fn refusal(&self, error: &std::io::Error) -> Option<ProgramError> {
        let path = self.executable.clone();
        let (why, fix) = match (&self.linkage, error.raw_os_error()) {
            (_, Some(ENOEXEC)) if self.is_foreign() => (
                format!("it is {} program, and this machine is {}", self.machine.label(), Machine::HOST_NAME),
                format!("use the {} build", Machine::HOST_BUILD),
            ),
            (Linkage::Dynamic { libc, interpreter }, Some(ENOENT))
                if *libc != Libc::Other && !interpreter.exists() =>
            {
                (
                    format!("its loader, {}, is not there", interpreter.display()),
                    "use a build for this distribution, or install the C library that it is made for"
                        .to_owned(),
                )
            }
            _ => return None,
        };
        Some(ProgramError::Refused { path, why, fix })
    }

    /// The last component of the executable's path, as shown to people.
    pub fn name(&self) -> String {
        file_name(&self.executable)
    }

    /// The first loaded library whose name starts with `stem`, such as `libssl.so`, or is AWS-LC's form of it.
    pub fn library(&self, stem: &str) -> Option<&Library> {
        self.libraries.iter().find(|library| version::is_named(&library.name, stem))
    }

    /// The library of this name that the program, or a module of it, would get by requesting it at run time.
    pub fn on_request(&self, name: &str) -> Option<Library> {
        let elf = Elf::open(&self.executable).ok()?;
        let libc = self.libc().unwrap_or(Libc::Glibc);
        Loader::new(libc, self.library_path.as_deref()).on_request(name, &self.executable, &elf)
    }

    /// Whether its purpose is to start other programs: a shell, `env`, `make`.
    pub fn is_launcher(&self) -> bool {
        kind::is_launcher(&self.name())
    }

    /// Whether it is a Node.js single executable application, with the application inside.
    pub fn is_single_executable(&self) -> bool {
        // Node.js's own form, and that of earlier tools.
        let sections = [".note.node.sea", ".note.NODE_SEA_BLOB"];
        sections.iter().any(|section| elf::has_section(&self.executable, section).unwrap_or(false))
    }

    /// Whether the executable itself provides `symbol`, which then wins over any preloaded library.
    pub fn exports(&self, symbol: &str) -> bool {
        elf::with(&self.executable, |data| elf::exports(data, symbol)).unwrap_or(false)
    }

    /// The linker's note that identifies the executable's build, in hexadecimal digits.
    pub fn build_id(&self) -> Option<String> {
        elf::with(&self.executable, |data| elf::build_id(data)).ok().flatten()
    }

    /// Compression code inside the executable. Costs a scan of all its constants.
    pub fn carried_compression(&self) -> Option<Carried> {
        compression::carried(&self.executable)
    }

    /// The symbols that the executable and its libraries import from each other. Costs a look into each of them.
    pub fn imports(&self) -> Imports {
        let read = |path: &Path| elf::with(path, |data| elf::imports(data)).unwrap_or_default();
        let own = (self.name(), read(&self.executable));
        let libraries = self.libraries.iter().map(|library| (library.name.clone(), read(&library.path)));
        Imports([own].into_iter().chain(libraries).collect())
    }
}

/// The undefined symbols of a program's objects, executable first.
#[derive(Debug, Clone)]
pub struct Imports(Vec<(String, Vec<Import>)>);

impl Imports {
    /// The objects that import `symbol`.
    pub fn importers(&self, symbol: &str) -> Vec<String> {
        let takes = |imports: &[Import]| imports.iter().any(|import| import.symbol == symbol);
        self.0.iter().filter(|(_, imports)| takes(imports)).map(|(name, _)| name.clone()).collect()
    }

    /// The executable's imports from the library whose name starts with `stem`, according to symbol versions.
    pub fn of_executable<'a>(&'a self, stem: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.0.first().into_iter().flat_map(|(_, imports)| imports);
        own.filter(move |import| import.library.as_deref().is_some_and(|library| library.starts_with(stem)))
            .map(|import| import.symbol.as_str())
    }
}

impl Libc {
    /// The one with which this command was built, and with which the host's programs are in its package.
    const fn of_host() -> Self {
        if cfg!(target_env = "musl") { Self::Musl } else { Self::Glibc }
    }

    fn of(interpreter: &Path) -> Self {
        let name = file_name(interpreter);
        if name.starts_with("ld-musl") {
            Self::Musl
        } else if name.starts_with("ld-linux") || name.starts_with("ld64") {
            Self::Glibc
        } else {
            Self::Other
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
