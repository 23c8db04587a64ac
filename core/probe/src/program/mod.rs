//! What a command is before it is run: the file that finally executes, how it is linked, and what the
//! dynamic loader would load for it.

pub mod elf;
pub mod kind;
pub mod ldcache;
pub mod loader;
pub mod privilege;
pub mod resolve;
pub mod script;
mod version;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::elf::{Elf, Import, Machine};
use self::kind::Kind;
use self::loader::{Loader, Missing};
use self::privilege::Privilege;

pub use self::resolve::ProgramError;

/// A command, looked at the way `execve` and the dynamic loader would look at it.
#[derive(Debug, Clone, Serialize)]
pub struct Program {
    /// The command as it was typed.
    pub command: String,
    /// Scripts on the way to the executable, outermost first.
    pub scripts: Vec<PathBuf>,
    /// The file that finally runs, after `PATH` and `#!` lines.
    pub executable: PathBuf,
    pub kind: Kind,
    pub machine: Machine,
    pub linkage: Linkage,
    pub privilege: Privilege,
    /// Every library that the loader maps at start, in its breadth-first order.
    pub libraries: Vec<Library>,
    /// Libraries that are asked for but not found.
    pub missing: Vec<Missing>,
    #[serde(skip)]
    imports: Vec<Import>,
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
    /// The name it was asked for by, such as `libssl.so.3`.
    pub name: String,
    pub path: PathBuf,
    /// The object whose `DT_NEEDED` entry brought it in.
    pub needed_by: String,
    /// What the library says of itself, such as `OpenSSL 3.0.22`; only for libraries hasten cares about.
    pub version: Option<String>,
    #[serde(skip)]
    imports: Vec<Import>,
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
    /// Finds what `command` with `arguments` would execute and reads it.
    ///
    /// The arguments matter only for `#!/usr/bin/env` lines. A file that exists and may be executed but cannot
    /// be understood is no error: its [`Linkage`] says why it is unknown.
    pub fn inspect(command: &OsStr, environment: &Environment) -> Result<Self, ProgramError> {
        let resolved = resolve::resolve(command, environment)?;
        let privilege = Privilege::of(&resolved.executable);
        let mut program = Self {
            command: command.to_string_lossy().into_owned(),
            kind: Kind::of(&resolved.executable),
            scripts: resolved.scripts,
            executable: resolved.executable,
            machine: Machine::Unknown,
            linkage: Linkage::Unknown { why: String::new() },
            privilege,
            libraries: Vec::new(),
            missing: Vec::new(),
            imports: Vec::new(),
        };
        match Elf::open(&program.executable) {
            Ok(elf) => program.describe(elf, environment),
            Err(error) => program.linkage = Linkage::Unknown { why: error.to_string() },
        }
        Ok(program)
    }

    fn describe(&mut self, elf: Elf, environment: &Environment) {
        self.machine = elf.machine;
        self.linkage = match &elf.interpreter {
            None => Linkage::Static,
            Some(interpreter) => {
                Linkage::Dynamic { libc: Libc::of(interpreter), interpreter: interpreter.clone() }
            }
        };
        if let Linkage::Dynamic { libc: Libc::Glibc, .. } = self.linkage {
            let library_path = environment.library_path.as_deref().filter(|_| !self.privilege.secure_exec);
            let closure = Loader::new(library_path).closure(&self.executable, &elf);
            self.libraries = closure.libraries;
            self.missing = closure.missing;
        }
        self.imports = elf.imports;
    }

    /// The last component of the executable's path, as shown to people.
    pub fn name(&self) -> String {
        file_name(&self.executable)
    }

    /// The first loaded library whose name starts with `stem`, such as `libssl.so`.
    pub fn library(&self, stem: &str) -> Option<&Library> {
        self.libraries.iter().find(|library| library.name.starts_with(stem))
    }

    /// Whether the executable itself provides `symbol`, which then wins over any preloaded library.
    pub fn exports(&self, symbol: &str) -> bool {
        elf::exports(&self.executable, symbol).unwrap_or(false)
    }

    /// The objects that import `symbol` from elsewhere, executable first.
    pub fn importers(&self, symbol: &str) -> Vec<String> {
        let own = self.imports.iter().any(|import| import.symbol == symbol).then(|| self.name());
        let libraries = self.libraries.iter().filter(|library| library.imports(symbol));
        own.into_iter().chain(libraries.map(|library| library.name.clone())).collect()
    }

    /// The symbols that the executable imports from the library whose name starts with `stem`, as its symbol
    /// versions tell.
    pub fn imports_from<'a>(&'a self, stem: &'a str) -> impl Iterator<Item = &'a str> {
        let from = move |import: &&Import| import.library.as_deref().is_some_and(|l| l.starts_with(stem));
        self.imports.iter().filter(from).map(|import| import.symbol.as_str())
    }
}

impl Library {
    /// Whether the library takes `symbol` from another object.
    pub fn imports(&self, symbol: &str) -> bool {
        self.imports.iter().any(|import| import.symbol == symbol)
    }
}

impl Libc {
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
