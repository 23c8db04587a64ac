//! `hasten man`: the manual pages, made from the same definition as `--help`. Hidden: packagers call it.

mod facts;
mod help;
mod options;
mod page;
mod roff;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use self::page::{Page, visible};
use crate::failure::Failure;
use crate::output::print;

/// Write the manual pages
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of the main page to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// The date of the pages
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "")]
    date: String,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let mut command = crate::args::Args::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.out else {
        let mut page = Vec::new();
        let rendered = Page::new(&command, &args.date).render(&mut page);
        rendered.and_then(|()| print(&String::from_utf8_lossy(&page))).map_err(Failure::output)?;
        return Ok(ExitCode::SUCCESS);
    };
    let written = fs::create_dir_all(directory).and_then(|()| write(&command, &args.date, directory));
    written.map_err(|error| {
        Failure::new(
            format!("cannot write the manual pages: {error}"),
            "check the directory given with --out",
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The page of `command`, and those of its subcommands.
fn write(command: &clap::Command, date: &str, directory: &Path) -> io::Result<()> {
    let page = Page::new(command, date);
    let mut file = fs::File::create(directory.join(format!("{}.1", page.name())))?;
    page.render(&mut file)?;
    visible(command).try_for_each(|subcommand| write(subcommand, date, directory))
}
