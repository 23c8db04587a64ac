//! From a command name to the file that executes.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hasten_probe::program::Linkage;
use hasten_probe::{Environment, Program, ProgramError};

struct Bin(tempfile::TempDir);

impl Bin {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn add(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn inspect(&self, command: &str) -> Result<Program, ProgramError> {
        let path = format!("{}:/nowhere:/usr/bin:/bin", self.0.path().display());
        Program::inspect(OsStr::new(command), &Environment { path: Some(path.into()), library_path: None })
    }
}

fn real(path: &str) -> PathBuf {
    Path::new(path).canonicalize().unwrap()
}

#[test]
fn a_script_is_run_by_its_interpreter() {
    let bin = Bin::new();
    let script = bin.add("tool", "#!/bin/sh -e\n", 0o755);
    let program = bin.inspect("tool").unwrap();
    assert_eq!(program.executable, real("/bin/sh"));
    assert_eq!(program.scripts, [script]);
}

#[test]
fn scripts_may_stand_on_scripts_and_on_env() {
    let bin = Bin::new();
    let outer = bin.add("outer", &format!("#!{}/inner\n", bin.0.path().display()), 0o755);
    let inner = bin.add("inner", "#!/usr/bin/env -S sh -e\n", 0o755);
    let program = bin.inspect("outer").unwrap();
    assert_eq!(program.executable, real("/bin/sh"));
    assert_eq!(program.scripts, [outer, inner]);
}

#[test]
fn a_script_that_runs_itself_ends() {
    let bin = Bin::new();
    let path = bin.0.path().join("loop");
    bin.add("loop", &format!("#!{}\n", path.display()), 0o755);
    let program = bin.inspect("loop").unwrap();
    assert_eq!(program.scripts.len(), 5);
    assert!(matches!(program.linkage, Linkage::Unknown { .. }));
}

#[test]
fn a_missing_interpreter_is_named() {
    let bin = Bin::new();
    bin.add("broken", "#!/no/such/interpreter\n", 0o755);
    let error = bin.inspect("broken").unwrap_err();
    assert!(error.to_string().contains("/no/such/interpreter"), "{error}");
}

#[test]
fn what_is_not_there_differs_from_what_may_not_be_executed() {
    let bin = Bin::new();
    bin.add("data", "text", 0o644);
    std::fs::create_dir(bin.0.path().join("folder")).unwrap();
    let data = bin.0.path().join("data");
    assert!(matches!(bin.inspect("absent"), Err(ProgramError::NotFound { .. })));
    assert!(matches!(bin.inspect("data"), Err(ProgramError::NotExecutable { .. })));
    assert!(matches!(bin.inspect(data.to_str().unwrap()), Err(ProgramError::NotExecutable { .. })));
    assert!(matches!(bin.inspect("./absent"), Err(ProgramError::NotFound { .. })));
    assert!(matches!(bin.inspect("/usr"), Err(ProgramError::Directory { .. })));
    assert!(matches!(bin.inspect(""), Err(ProgramError::NotFound { .. })));
}

#[test]
fn the_search_goes_on_behind_a_file_that_may_not_be_executed() {
    let bin = Bin::new();
    bin.add("sh", "not this one", 0o644);
    assert_eq!(bin.inspect("sh").unwrap().executable, real("/bin/sh"));
}

#[test]
fn links_are_followed_to_the_program() {
    let bin = Bin::new();
    symlink("/bin/sh", bin.0.path().join("alias")).unwrap();
    assert_eq!(bin.inspect("alias").unwrap().executable, real("/bin/sh"));
}

#[test]
fn text_without_an_interpreter_line_is_run_by_the_shell_as_execvp_does() {
    let bin = Bin::new();
    let text = bin.add("text", "echo $0\n", 0o755);
    let program = bin.inspect("text").unwrap();
    assert_eq!((program.executable, program.scripts), (real("/bin/sh"), vec![text]));
}

#[test]
fn neither_program_nor_script_is_unknown_and_says_why() {
    let bin = Bin::new();
    bin.add("data", "MZ\0\0", 0o755);
    let Linkage::Unknown { why } = bin.inspect("data").unwrap().linkage else { panic!() };
    assert!(why.contains("neither an ELF program nor a script"), "{why}");
}
