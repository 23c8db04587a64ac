//! One manual page.

use std::io::{self, Write};

use clap::Command;

use super::facts;
use super::help::{Block, Help};
use super::options;
use super::roff::{escaped, heading, item, line, paragraph};

pub(super) struct Page<'command> {
    command: &'command Command,
    date: &'command str,
    help: Help,
}

impl<'command> Page<'command> {
    pub(super) fn new(command: &'command Command, date: &'command str) -> Self {
        let text = command.get_after_long_help().or_else(|| command.get_after_help());
        Self { command, date, help: Help::parse(&text.map(ToString::to_string).unwrap_or_default()) }
    }

    /// Such as `hasten-gc-record`.
    pub(super) fn name(&self) -> &str {
        self.command.get_display_name().unwrap_or_else(|| self.command.get_name())
    }

    /// In the order of man-pages(7).
    pub(super) fn render(&self, out: &mut dyn Write) -> io::Result<()> {
        let title = escaped(&self.name().to_uppercase());
        let version = self.command.get_version().unwrap_or_default();
        writeln!(out, ".TH {title} 1 \"{}\" \"hasten {version}\" \"User Commands\"", self.date)?;
        heading(out, "NAME")?;
        let about = self.command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "{} \\- {}", escaped(self.name()), escaped(&about))?;
        self.synopsis(out)?;
        self.description(out)?;
        options::render(self.command, out)?;
        self.subcommands(out)?;
        self.help.other.iter().try_for_each(|block| verbatim(out, block))?;
        self.exit_status(out)?;
        heading(out, "ENVIRONMENT")?;
        facts::variables(self.name()).iter().try_for_each(|(name, text)| item(out, 'B', name, text))?;
        heading(out, "FILES")?;
        facts::files(self.name()).into_iter().try_for_each(|(file, text)| item(out, 'I', file, text))?;
        self.help.examples.iter().try_for_each(|block| verbatim(out, block))?;
        self.see_also(out)
    }

    fn synopsis(&self, out: &mut dyn Write) -> io::Result<()> {
        heading(out, "SYNOPSIS")?;
        let usage = self.command.clone().render_usage().to_string();
        let forms = usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|form| !form.is_empty());
        for (at, form) in forms.enumerate() {
            if at > 0 {
                writeln!(out, ".br")?;
            }
            writeln!(out, "{}", line(form))?;
        }
        Ok(())
    }

    fn description(&self, out: &mut dyn Write) -> io::Result<()> {
        heading(out, "DESCRIPTION")?;
        let about = self.command.get_long_about().or_else(|| self.command.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        for (at, text) in
            about.split("\n\n").chain(self.help.paragraphs.iter().map(String::as_str)).enumerate()
        {
            match at {
                // A paragraph directly below its heading needs no request.
                0 => writeln!(out, "{}", line(&text.replace('\n', " ")))?,
                _ => paragraph(out, &text.replace('\n', " "))?,
            }
        }
        Ok(())
    }

    fn subcommands(&self, out: &mut dyn Write) -> io::Result<()> {
        if visible(self.command).next().is_some() {
            heading(out, "COMMANDS")?;
        }
        for subcommand in visible(self.command) {
            let page = format!("{}-{}(1)", self.name(), subcommand.get_name());
            item(out, 'B', &page, &subcommand.get_about().map(ToString::to_string).unwrap_or_default())?;
        }
        Ok(())
    }

    fn exit_status(&self, out: &mut dyn Write) -> io::Result<()> {
        heading(out, "EXIT STATUS")?;
        let codes = match self.name() {
            "hasten" | "hasten-run" => facts::exit_codes(),
            _ if !self.help.exit_codes.is_empty() => self.help.exit_codes.clone(),
            _ => facts::usual_exit_codes(),
        };
        codes.iter().try_for_each(|(code, text)| item(out, 'B', code, text))?;
        self.help.exit_notes.iter().try_for_each(|text| paragraph(out, text))
    }

    fn see_also(&self, out: &mut dyn Write) -> io::Result<()> {
        heading(out, "SEE ALSO")?;
        let names: Vec<_> = self.name().split('-').collect();
        let above = (1..names.len()).map(|depth| names[..depth].join("-") + "(1)");
        let below =
            visible(self.command).map(|subcommand| format!("{}-{}(1)", self.name(), subcommand.get_name()));
        let others = facts::neighbours(self.name()).iter().map(ToString::to_string);
        let pages: Vec<_> = above.chain(below).chain(others).collect();
        for (at, page) in pages.iter().enumerate() {
            let (name, section) = page.split_once('(').unwrap_or((page, ""));
            let comma = if at + 1 < pages.len() { "," } else { "" };
            writeln!(out, ".BR {} ({section}{comma}", escaped(name))?;
        }
        paragraph(out, &format!("In /usr/share/doc/hasten: {}", facts::pages(self.name()).join(", ")))
    }
}

pub(super) fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// Lines that stay as they are.
fn verbatim(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    heading(out, &block.heading.to_uppercase())?;
    writeln!(out, ".nf")?;
    block.lines.iter().try_for_each(|text| writeln!(out, "{}", line(text)))?;
    writeln!(out, ".fi")
}
