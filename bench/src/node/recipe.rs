//! How one side starts Node.js.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::error::NodeError;
use crate::affinity::Pinned;
use crate::server::Launcher;

/// Variables that a caller's shell may have set and that would change a side.
const FOREIGN: [&str; 6] = [
    "LD_PRELOAD",
    "NODE_COMPILE_CACHE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_V8_COVERAGE",
];

#[derive(Clone, Debug)]
pub(super) struct Recipe {
    launcher: Launcher,
    node: PathBuf,
    /// Arguments before the script.
    flags: Vec<String>,
    /// Options for `NODE_OPTIONS`.
    options: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    /// The CPU of the whole process.
    cpu: Option<usize>,
}

impl Recipe {
    pub(super) fn stock(node: &Path) -> Self {
        Self {
            launcher: Launcher::Stock,
            node: node.to_owned(),
            flags: Vec::new(),
            options: Vec::new(),
            environment: Vec::new(),
            cpu: None,
        }
    }

    /// Behind `hasten run`, with its own cache folder.
    pub(super) fn accelerated(self, hasten: &Path, cache: &Path) -> Self {
        Self { launcher: Launcher::Hasten { exe: hasten.to_owned() }, ..self }.env("HASTEN_CACHE_DIR", cache)
    }

    pub(super) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    pub(super) fn options(mut self, options: &[String]) -> Self {
        self.options.extend_from_slice(options);
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn cpu(self, cpu: Option<usize>) -> Self {
        Self { cpu, ..self }
    }

    /// Starts the script in its own process group, with its output redirected.
    pub(super) fn spawn(
        &self,
        directory: &Path,
        script: &[&OsStr],
        output: Stdio,
        errors: Stdio,
    ) -> Result<Child, NodeError> {
        let mut command = self.command();
        command.args(script).current_dir(directory).stdin(Stdio::null()).stdout(output).stderr(errors);
        // Ctrl-C at the terminal is ours to handle, and the group can be ended as a whole.
        command.process_group(0);
        let pinned = self.cpu.map(Pinned::to).transpose();
        let child: io::Result<Child> = pinned.and_then(|_pinned| command.spawn());
        child.map_err(|source| NodeError::Spawn { program: command.get_program().into(), source })
    }

    fn command(&self) -> Command {
        let mut command = match &self.launcher {
            Launcher::Stock => Command::new(&self.node),
            Launcher::Hasten { exe } => {
                let mut command = Command::new(exe);
                command.args(["run", "--quiet", "--"]).arg(&self.node);
                command
            }
        };
        for name in FOREIGN {
            command.env_remove(name);
        }
        if !self.options.is_empty() {
            command.env("NODE_OPTIONS", self.options.join(" "));
        }
        command.args(&self.flags).env("NODE_ENV", "production");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_side_differs_in_nothing_but_what_was_asked_for() {
        let stock = Recipe::stock(Path::new("/usr/bin/node")).flag("--trace-gc");
        let hasten = stock
            .clone()
            .accelerated(Path::new("/opt/hasten"), Path::new("/cache"))
            .options(&["--max-semi-space-size=32".to_owned()]);
        let arguments = |recipe: &Recipe| {
            let command = recipe.command();
            let arguments: Vec<_> =
                command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
            [vec![command.get_program().to_string_lossy().into_owned()], arguments].concat()
        };
        assert_eq!(arguments(&stock), ["/usr/bin/node", "--trace-gc"]);
        assert_eq!(
            arguments(&hasten),
            ["/opt/hasten", "run", "--quiet", "--", "/usr/bin/node", "--trace-gc"]
        );
        let set = |recipe: &Recipe, wanted: &str| {
            let command = recipe.command();
            let found = command.get_envs().find(|(name, _)| *name == wanted);
            found.and_then(|(_, value)| value).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(set(&stock, "NODE_OPTIONS"), None);
        assert_eq!(set(&hasten, "NODE_OPTIONS").as_deref(), Some("--max-semi-space-size=32"));
        assert_eq!(set(&hasten, "HASTEN_CACHE_DIR").as_deref(), Some("/cache"));
        assert_eq!(set(&stock, "NODE_ENV"), set(&hasten, "NODE_ENV"));
    }
}
