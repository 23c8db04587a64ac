//! The single definition from which help, completions and the man page are made.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Parser, Subcommand};
use hasten_plan::{accelerator, suggestion};

use crate::cmd;

const EXAMPLES: &str = "\
Examples:
  hasten check -- nginx               what would be done to nginx, and why
  hasten run -- nginx                 start nginx with TLS and gzip accelerated
  hasten enable nginx                 accelerate the service, from its next start on
  hasten top                          watch what it gains
  hasten engine disable all           leave all work to the original libraries, at once
  hasten bench tls --quick            measure the gain on this machine, in about a minute
  hasten bench gzip --quick           the same for compression
  hasten tune --url http://127.0.0.1:3000/ -- node app.js
                                      find and prove settings that make it cheaper
  hasten gc gc.log                    what garbage collection costs, and what to do about it
  hasten core core.1234               what a Node.js process held when it died
";

#[derive(Debug, Parser)]
#[command(name = "hasten", version, about, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(cmd::check::CheckArgs),
    Run(cmd::run::RunArgs),
    Enable(cmd::enable::EnableArgs),
    Disable(cmd::disable::DisableArgs),
    Status(cmd::status::StatusArgs),
    Top(cmd::top::TopArgs),
    Export(cmd::export::ExportArgs),
    Engine(cmd::engine::EngineArgs),
    Selftest(cmd::selftest::SelftestArgs),
    Bench(cmd::bench::BenchArgs),
    Gc(cmd::gc::GcArgs),
    Core(cmd::core::CoreArgs),
    Snapshot(cmd::snapshot::SnapshotArgs),
    Tune(Box<cmd::tune::TuneArgs>),
    Wal(cmd::wal::WalArgs),
    Completions(cmd::completions::CompletionsArgs),
    #[command(hide = true)]
    Man(cmd::man::ManArgs),
}

/// The name of an accelerator, or nothing; a wrong one gets the nearest as a suggestion.
#[derive(Debug, Clone)]
pub(crate) struct AcceleratorName;

impl TypedValueParser for AcceleratorName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let value = value.to_string_lossy();
        if value.is_empty() || accelerator::names().any(|name| name == value) {
            return Ok(value.into_owned());
        }
        let fix = suggestion(&value, &accelerator::names().collect::<Vec<_>>());
        let message = format!("no accelerator is named `{value}`; {fix}\n");
        Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(accelerator::names().map(PossibleValue::new)))
    }
}

/// A variable that switches a flag on or off, named for the error: the flag itself takes no value.
#[derive(Debug, Clone)]
pub(crate) struct Switch(pub(crate) &'static str);

impl TypedValueParser for Switch {
    type Value = bool;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<bool, clap::Error> {
        match value.to_string_lossy().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "0" | "false" | "no" | "off" | "" => Ok(false),
            _ => {
                let (name, value) = (self.0, value.to_string_lossy());
                let message = format!(
                    "{name}=`{value}` says neither yes nor no; write 1, true, yes or on, or else 0, false, no or off, or unset it\n"
                );
                Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory;

    use super::*;

    type Options = BTreeMap<String, BTreeSet<String>>;

    /// Every command that does something, with its options.
    fn defined() -> Options {
        let mut options = Options::new();
        add(&Args::command(), "hasten", &mut options);
        options
    }

    fn add(command: &clap::Command, name: &str, to: &mut Options) {
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let long = arguments.filter_map(Arg::get_long).map(|long| format!("--{long}")).collect();
        let subcommands = || command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
        if subcommands().next().is_none() || command.get_arguments().next().is_some() {
            to.insert(name.to_owned(), long);
        }
        subcommands()
            .for_each(|subcommand| add(subcommand, &format!("{name} {}", subcommand.get_name()), to));
    }

    /// The rows of the table of all commands: the name, and the options.
    fn documented(page: &str) -> Options {
        let table = page.split("## All options").nth(1).and_then(|rest| rest.split("\n## ").next());
        let rows = table.expect("the section is there").lines().filter(|line| line.starts_with("| `hasten "));
        let code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let row = |row: &str| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let options = code(cells[1]).into_iter().filter(|word| word.starts_with("--"));
            (code(cells[0]).remove(0), options.collect())
        };
        rows.map(row).collect()
    }

    #[test]
    fn the_page_has_every_command_with_every_option_and_no_other() {
        let page = include_str!("../../docs/cli.md");
        assert_eq!(documented(page), defined(), "docs/cli.md on the left, --help on the right");
    }

    /// Options in prose and examples; those after `--` are not ours.
    #[test]
    fn no_page_shows_an_option_that_is_not_there() {
        let defined = defined();
        let pages = [include_str!("../../docs/cli.md"), include_str!("../../README.md")];
        for line in pages.iter().flat_map(|page| page.lines()) {
            let spans = line.split('`').skip(1).step_by(2).chain([line]);
            for span in spans.filter_map(|span| span.trim().strip_prefix("hasten ")) {
                let words: Vec<&str> =
                    span.split_whitespace().take_while(|word| !["--", "#", "&&"].contains(word)).collect();
                let name = |count: usize| format!("hasten {}", words[..count.min(words.len())].join(" "));
                let Some(options) = defined.get(&name(2)).or_else(|| defined.get(&name(1))) else { continue };
                for word in words.iter().filter(|word| word.starts_with("--")) {
                    let option = word.split('=').next().unwrap_or_default();
                    let known = options.contains(option) || ["--help", "--version"].contains(&option);
                    assert!(known, "`hasten {span}`: no option {option}");
                }
            }
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }
}
