//! Parses the command line, and reports mistakes or shows help.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches};
use hasten_plan::nearest;

use crate::args::Args;
use crate::failure::Failure;
use crate::output::{is_dumb, read_or_not};

/// The parsed words; if nothing is left to do, the exit code.
pub(crate) fn parse(words: &[OsString]) -> Result<Args, ExitCode> {
    // clap takes continuous integration for a terminal with colours, whatever TERM says.
    let colour = if is_dumb() { ColorChoice::Never } else { ColorChoice::Auto };
    let parsed = Args::command().color(colour).try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| must_name_something(&matches).map(|()| matches));
    let parsed = parsed.and_then(|matches| Args::from_arg_matches(&matches));
    parsed.map_err(|error| end(&with_suggestion(error, words)))
}

/// An empty variable counts as unset, but nobody types `--only=` and means nothing by it.
fn must_name_something(matches: &ArgMatches) -> Result<(), clap::Error> {
    const LIST: &str = "only";
    let Some((_, given)) = matches.subcommand() else { return Ok(()) };
    let is_there = given.try_contains_id(LIST).is_ok();
    let is_typed = is_there && given.value_source(LIST) == Some(ValueSource::CommandLine);
    if !is_typed || !given.get_raw(LIST).is_some_and(|mut names| names.all(OsStr::is_empty)) {
        return Ok(());
    }
    let message = format!(
        "--{LIST} names nothing; write what it is to keep, such as --{LIST} NAME,NAME, or leave it out for all\n"
    );
    Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(&Args::command()))
}

fn end(error: &clap::Error) -> ExitCode {
    let printed = read_or_not(error.print().and_then(|()| io::stdout().flush()));
    match printed {
        // Help and version were requested; an error that nobody can read is still an error.
        Err(full) if !error.use_stderr() => Failure::output(full).report(),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX)),
    }
}

/// Names the option that was meant if clap finds none: it reads `-strict` as `-s -t …`.
fn with_suggestion(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    if is_quick_run_of_all(&error, words) {
        let tip = "`hasten bench` alone is the quick run of all workloads; `hasten bench tls --quick` is that of one";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    // How to pass an argument of that name to the command does not help a user who meant an option.
    error.remove(ContextKind::Suggested);
    if error.get(ContextKind::SuggestedArg).is_some() {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    let word = whole_word(unknown, words).unwrap_or_else(|| unknown.clone());
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    let options = options(words);
    if let Some(meant) = nearest(name, options.iter().map(String::as_str)) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{meant}")));
    }
    error.insert(ContextKind::InvalidArg, ContextValue::String(word));
    error
}

/// `hasten bench --quick`.
fn is_quick_run_of_all(error: &clap::Error, words: &[OsString]) -> bool {
    let unknown = error.get(ContextKind::InvalidArg);
    let is_quick = matches!(unknown, Some(ContextValue::String(unknown)) if unknown == "--quick");
    let mut own = words.iter().skip(1);
    is_quick
        && own.next().is_some_and(|word| word == "bench")
        && own.all(|word| word.to_string_lossy().starts_with('-'))
}

/// The word after a single dash that contains a letter which is not an option.
fn whole_word(letter: &str, words: &[OsString]) -> Option<String> {
    let letter = letter.strip_prefix('-').filter(|letter| letter.chars().count() == 1)?;
    let own = words.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let mut clusters = own.filter(|word| word.starts_with('-') && !word.starts_with("--"));
    clusters.find(|word| word.chars().count() > 2 && word.contains(letter)).map(Into::into)
}

/// The long options of the command named by the words.
fn options(words: &[OsString]) -> Vec<String> {
    let mut command = Args::command();
    for word in words.iter().skip(1).map_while(|word| word.to_str()) {
        if let Some(subcommand) = command.find_subcommand(word) {
            command = subcommand.clone();
        }
    }
    command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned).collect()
}
