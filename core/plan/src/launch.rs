//! The command as it is started: the whole outcome of a plan, with nothing left to decide.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use hasten_probe::Program;

use crate::plan::Plan;
use crate::process::CpuList;

/// What `hasten run` executes, and what a user who does without it pastes into a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The command line; options allowed only on a command line follow its first word.
    pub argv: Vec<OsString>,
    /// Variables to set; `None` removes a variable. They are set in this order, so the later of two with one name
    /// counts.
    pub env: Vec<(String, Option<OsString>)>,
    /// The only CPUs that the process may use.
    pub cpus: Option<CpuList>,
    /// No transparent huge pages for the process and what it starts.
    pub no_thp: bool,
    /// The file to execute where the kernel's refusal is final: a shell would read that file as a script.
    pub file: Option<PathBuf>,
}

impl Plan {
    /// Applies the plan to `command`, whose first word led to `program`.
    #[must_use]
    pub fn launch(&self, program: &Program, command: &[OsString]) -> Launch {
        let settings = &self.settings;
        Launch {
            argv: with_options(command, &settings.arguments),
            env: self.all_variables(),
            cpus: settings.cpus.clone(),
            no_thp: settings.no_thp,
            file: (program.is_foreign() && program.scripts.is_empty()).then(|| program.file.clone()),
        }
    }

    /// Those of accelerators, followed by those of settings, which have other names.
    fn all_variables(&self) -> Vec<(String, Option<OsString>)> {
        let ours = self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let own = self.settings.variables.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        ours.chain(own).collect()
    }
}

impl Launch {
    /// The line that does the same in a POSIX shell, except for huge pages, which no command can switch off.
    #[must_use]
    pub fn by_hand(&self) -> String {
        let variables = self.env.iter().map(|(name, value)| assignment(name, value.as_deref()));
        let cpus = self.cpus.as_ref().map(|cpus| format!("taskset --cpu-list {cpus}"));
        let words = self.argv.iter().map(|word| quote(word));
        variables.chain(cpus).chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn with_options(command: &[OsString], options: &[String]) -> Vec<OsString> {
    let (name, arguments) = command.split_at(command.len().min(1));
    let options = options.iter().map(OsString::from);
    name.iter().cloned().chain(options).chain(arguments.iter().cloned()).collect()
}

/// An assignment before a command; an empty variable counts as unset.
fn assignment(name: &str, value: Option<&OsStr>) -> String {
    format!("{name}={}", value.map(quote).unwrap_or_default())
}

/// For a POSIX shell.
fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    shlex::try_quote(&word).expect("no argument has a NUL").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_stand_behind_the_commands_name() {
        let options = ["--maglev".to_owned(), "--expose-gc".to_owned()];
        assert_eq!(
            with_options(&words("node app.js --port 1"), &options),
            words("node --maglev --expose-gc app.js --port 1")
        );
        assert_eq!(with_options(&words("node app.js"), &[]), words("node app.js"));
    }

    #[test]
    fn by_hand_it_is_one_line_that_a_shell_takes_apart_again() {
        let launch = Launch {
            argv: words("node it's * $HOME").into_iter().chain([OsString::new()]).collect(),
            env: vec![
                ("LD_PRELOAD".into(), None),
                ("GREETING".into(), Some("good day".into())),
                ("EMPTY".into(), Some(OsString::new())),
            ],
            cpus: CpuList::parse("0-2"),
            ..Launch::default()
        };
        let line = launch.by_hand();
        assert_eq!(
            line,
            r#"LD_PRELOAD= GREETING='good day' EMPTY='' taskset --cpu-list 0-2 node "it's" '*' '$HOME' ''"#
        );
        let again = shlex::split(&line).unwrap();
        assert_eq!(again[3..], ["taskset", "--cpu-list", "0-2", "node", "it's", "*", "$HOME", ""]);
    }
}
