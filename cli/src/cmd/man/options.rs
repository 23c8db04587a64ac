//! The options of a command, under the same headings as in `--help`.

use std::io::{self, Write};

use clap::{Arg, Command};

use super::roff::{escaped, heading, line};

pub(super) fn render(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let arguments: Vec<_> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    if arguments.is_empty() {
        return Ok(());
    }
    heading(out, "OPTIONS")?;
    let (plain, headed): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|argument| argument.get_help_heading().is_none());
    let (positional, named): (Vec<&Arg>, Vec<&Arg>) =
        plain.into_iter().partition(|argument| argument.is_positional());
    positional.into_iter().chain(named).try_for_each(|argument| option(argument, out))?;
    let mut last = None;
    for argument in headed {
        if argument.get_help_heading() != last {
            last = argument.get_help_heading();
            writeln!(out, ".SS \"{}\"", escaped(last.unwrap_or_default()))?;
        }
        option(argument, out)?;
    }
    Ok(())
}

fn option(argument: &Arg, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, ".TP\n{}", tag(argument))?;
    let help = argument.get_long_help().or_else(|| argument.get_help());
    writeln!(out, "{}", line(&help.map(|help| help.to_string().replace('\n', " ")).unwrap_or_default()))?;
    let notes = notes(argument);
    if notes.is_empty() { Ok(()) } else { writeln!(out, ".br\n{}", line(&notes)) }
}

/// `-n, --name VALUE`, as roff.
fn tag(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
    let long = argument.get_long().map(|long| format!("\\fB{}\\fR", escaped(&format!("--{long}"))));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    let values = argument.get_value_names().unwrap_or_default();
    let takes_value = argument.get_action().takes_values();
    let values = values.iter().filter(|_| takes_value).map(|name| format!("\\fI{}\\fR", escaped(name)));
    let values = values.collect::<Vec<_>>().join(" ");
    let is_optional = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    match (names.join(", "), values) {
        (names, values) if names.is_empty() => values,
        (names, values) if values.is_empty() => names,
        (names, values) if is_optional => format!("{names}[={values}]"),
        (names, values) => format!("{names} {values}"),
    }
}

/// Values, default and variable, one sentence each.
fn notes(argument: &Arg) -> String {
    let mut notes = Vec::new();
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let values: Vec<_> = values.map(|value| value.get_name().to_owned()).collect();
    if takes_value && !values.is_empty() && !argument.is_hide_possible_values_set() {
        notes.push(format!("Values: {}.", values.join(", ")));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        notes.push(format!("Default: {}.", defaults.join(" ")));
    }
    if let Some(variable) = argument.get_env() {
        notes.push(format!("Variable: {}.", variable.to_string_lossy()));
    }
    notes.join(" ")
}
