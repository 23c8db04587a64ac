//! The failures of `hasten`: one sentence that says what and why, one that says what to do, and an exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use hasten_plan::{AdviceError, ConfigError};
use hasten_probe::ProgramError;

use crate::denied;
use crate::render::say;

/// Something went wrong.
const FAILURE: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;
/// As in a shell: the command exists but cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As in a shell: there is no such command.
const NOT_FOUND: u8 = 127;

/// This command's own file, for starting it again; from `/proc`.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        let what = "cannot find my own program";
        if denied::has_proc() {
            return Failure::new(format!("{what}: {error}"), "call it by its full path");
        }
        Failure::new(
            format!("{what}, which has to be started again: /proc is not mounted"),
            denied::MOUNT_PROC,
        )
    })
}

#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    fix: Option<String>,
    code: u8,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: Some(fix.into()), code: FAILURE }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(what, fix) }
    }

    /// What a shell would report for a failed `exec`.
    pub(crate) fn exec(command: &str, error: &std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Self { what: format!("cannot execute {command}: {error}"), fix: None, code }
    }

    /// Standard output accepts nothing more.
    #[expect(clippy::needless_pass_by_value, reason = "map_err passes it so")]
    pub(crate) fn output(error: std::io::Error) -> Self {
        Self::new(
            format!("standard output cannot be written to: {error}"),
            "check the file or the device behind it",
        )
    }

    /// The results cannot be put into JSON.
    pub(crate) fn json(what: &str, error: &serde_json::Error) -> Self {
        Self::new(format!("cannot write the {what} as JSON: {error}"), "please report this")
    }

    /// A required program is missing.
    pub(crate) fn missing(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code: NOT_FOUND, ..Self::new(what, fix) }
    }

    /// A program that was to be inspected, not started.
    pub(crate) fn lookup(error: ProgramError) -> Self {
        Self { code: FAILURE, ..Self::from(error) }
    }

    /// What is wrong, and what to do about it.
    pub(crate) fn into_words(self) -> (String, String) {
        (self.what, self.fix.unwrap_or_default())
    }

    pub(crate) fn report(&self) -> ExitCode {
        self.tell();
        ExitCode::from(self.code)
    }

    /// Reports the failure without exiting.
    pub(crate) fn tell(&self) {
        say(format!("hasten: {}", self.what));
        if let Some(fix) = &self.fix {
            say(format!("  fix: {fix}"));
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { what: error.to_string(), fix: Some(error.fix()), code: USAGE }
    }
}

impl From<AdviceError> for Failure {
    fn from(error: AdviceError) -> Self {
        Self { what: error.to_string(), fix: Some(error.fix()), code: USAGE }
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        let code = match error {
            ProgramError::NotFound { .. } => NOT_FOUND,
            ProgramError::NotExecutable { .. }
            | ProgramError::Directory { .. }
            | ProgramError::Interpreter { .. }
            | ProgramError::CutOff { .. }
            | ProgramError::Refused { .. } => NOT_EXECUTABLE,
        };
        Self { what: error.to_string(), fix: Some(error.fix()), code }
    }
}
