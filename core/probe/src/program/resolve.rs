//! From a command name to the file that finally executes: `PATH` as `execvp` searches it, then `#!` lines
//! as the kernel follows them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use thiserror::Error;

use super::Environment;
use super::script::{self, Interpreter};

/// What `execvp` uses when `PATH` is unset.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The kernel reads this much of a file to find its `#!` line.
const HEAD: usize = 256;
/// The kernel gives up on scripts whose interpreters are scripts at this depth (`ELOOP`).
const MAX_SCRIPTS: usize = 5;

#[derive(Debug, Error)]
pub enum ProgramError {
    #[error("cannot find `{command}`: no such file in {searched}")]
    NotFound { command: String, searched: String },
    #[error("cannot execute {path}: {why}")]
    NotExecutable { path: PathBuf, why: String },
    #[error("cannot execute {path}: it is a directory")]
    Directory { path: PathBuf },
    #[error("cannot execute {script}: its first line names `{interpreter}`, {why}")]
    Interpreter { script: PathBuf, interpreter: String, why: String },
    #[error("cannot execute {path}: {why}")]
    CutOff { path: PathBuf, why: String },
    #[error("cannot execute {path}: {why}")]
    Refused { path: PathBuf, why: String, fix: String },
}

impl ProgramError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::NotFound { command, .. } if command.contains('/') => {
                "check the path; `ls -l` shows what is there".into()
            }
            Self::NotFound { command, .. } => {
                format!("install it, or give its full path, as in /path/to/{command}")
            }
            Self::NotExecutable { path, .. } => {
                format!("`ls -lL {0}`, then `chmod +x {0}` if it is a program", path.display())
            }
            Self::Directory { path } => {
                format!("name a program in it, such as {}", path.join("PROGRAM").display())
            }
            Self::Interpreter { script, interpreter, .. } if interpreter.ends_with(CARRIAGE_RETURN) => {
                format!("take the carriage returns out: `sed -i 's/\\r$//' {}`", script.display())
            }
            Self::Interpreter { script, interpreter, .. } => {
                format!("install {interpreter}, or correct the first line of {}", script.display())
            }
            Self::CutOff { path, .. } => {
                format!("copy, download or install {} again", path.display())
            }
            Self::Refused { fix, .. } => fix.clone(),
        }
    }
}

pub(crate) struct Resolved {
    pub(crate) scripts: Vec<PathBuf>,
    pub(crate) executable: PathBuf,
    pub(crate) file: PathBuf,
}

pub(crate) fn resolve(command: &OsStr, environment: &Environment) -> Result<Resolved, ProgramError> {
    let mut scripts = Vec::new();
    let mut path = search(command, environment)?;
    let file = path.clone();
    while scripts.len() < MAX_SCRIPTS {
        let head = head(&path);
        let next = match script::interpreter(&head) {
            Some(interpreter) => run_by(&path, &interpreter, environment)?,
            // The kernel refuses such a file, and `execvp` then gives it to the shell.
            None if scripts.is_empty() && script::is_plain_text(&head) => PathBuf::from("/bin/sh"),
            None => break,
        };
        scripts.push(std::mem::replace(&mut path, next));
    }
    let executable = path.canonicalize().unwrap_or(path);
    Ok(Resolved { scripts, executable, file })
}

/// How a trailing carriage return is shown in an interpreter's name, from a script with Windows line ends.
const CARRIAGE_RETURN: &str = "\\r";

/// The location of a script's interpreter. Errors name the script: that is what the user knows.
fn run_by(
    script: &Path,
    interpreter: &Interpreter,
    environment: &Environment,
) -> Result<PathBuf, ProgramError> {
    let name = match interpreter {
        Interpreter::Path(path) => path.as_os_str(),
        Interpreter::Searched(name) => name.as_os_str(),
    };
    search(name, environment).map_err(|error| ProgramError::Interpreter {
        script: script.to_owned(),
        interpreter: name.to_string_lossy().replace('\r', CARRIAGE_RETURN),
        why: match error {
            ProgramError::NotFound { .. } if name.as_bytes().contains(&b'/') => {
                "which does not exist".to_owned()
            }
            ProgramError::NotFound { searched, .. } => format!("which is not in {searched}"),
            ProgramError::Directory { .. } => "which is a directory".to_owned(),
            ProgramError::NotExecutable { why, .. } => format!("which cannot be executed: {why}"),
            other => other.to_string(),
        },
    })
}

/// Empty if the file cannot be read: then the file itself is the answer.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    if let Ok(file) = File::open(path) {
        // Whatever was read before an error is good enough.
        let _ = file.take(HEAD as u64).read_to_end(&mut head);
    }
    head
}

fn search(command: &OsStr, environment: &Environment) -> Result<PathBuf, ProgramError> {
    if command.as_bytes().contains(&b'/') {
        return executable(PathBuf::from(command))
            .map_err(|error| error.unwrap_or_else(|| not_found(command, "that place")));
    }
    let path = environment.path.clone().unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    let mut denied = None;
    for directory in std::env::split_paths(&path).filter(|_| !command.is_empty()) {
        // An empty element means the current directory.
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { &directory };
        match executable(directory.join(command)) {
            Ok(path) => return Ok(path),
            Err(error) => denied = denied.or(error),
        }
    }
    Err(denied.unwrap_or_else(|| not_found(command, &format!("PATH ({})", path.to_string_lossy()))))
}

/// The path if it may be executed; `Err(None)` if there is no such file.
fn executable(path: PathBuf) -> Result<PathBuf, Option<ProgramError>> {
    let deny = |why: &str| Some(ProgramError::NotExecutable { path: path.clone(), why: why.into() });
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(deny("a directory on the way may not be searched"))
        }
        Err(_) => Err(None),
        Ok(metadata) if metadata.is_dir() => Err(Some(ProgramError::Directory { path })),
        Ok(metadata) if !metadata.is_file() => Err(deny("it is not a regular file")),
        Ok(_) => match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(path),
            Err(_) => Err(deny("no permission to execute it")),
        },
    }
}

fn not_found(command: &OsStr, searched: &str) -> ProgramError {
    ProgramError::NotFound { command: command.to_string_lossy().into_owned(), searched: searched.into() }
}
