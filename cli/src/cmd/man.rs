//! `hasten man`: the manual pages, made from the same definition as `--help`. Hidden: packagers call it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::failure::Failure;

/// Write the manual pages
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of the main page to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let command = crate::args::Args::command();
    let written = match &args.out {
        Some(directory) => {
            std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(command, directory))
        }
        None => clap_mangen::Man::new(command).render(&mut std::io::stdout()),
    };
    written.map_err(|error| {
        Failure::new(
            format!("cannot write the manual pages: {error}"),
            "check the directory given with --out",
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
