//! `hasten wal`: logs that are on another device, and their way home.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use hasten_logs::home::{self, HomeError};

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "\
Examples:
  hasten wal list /var/lib/db         logs of this directory that are on another device
  hasten wal home /var/lib/db         bring them home, after the database has ended
";

const LIST_EXAMPLES: &str = "\
Examples:
  hasten wal list /var/lib/db
";

const HOME_EXAMPLES: &str = "\
Examples:
  hasten wal home /var/lib/db

The database must have ended. At every moment the name of a log leads to all of it: the copy is synced before it takes
the place of the link. A command that was interrupted can be repeated.
";

/// List logs that `hasten run --wal` has made on another device, or bring them home
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WalArgs {
    #[command(subcommand)]
    command: WalCommand,
}

#[derive(Debug, Subcommand)]
enum WalCommand {
    /// Show which logs are on another device, and where
    #[command(after_help = LIST_EXAMPLES)]
    List(DirectoryArgs),
    /// Make files of the links again, and give up the logs on the other device
    #[command(after_help = HOME_EXAMPLES)]
    Home(DirectoryArgs),
}

#[derive(Debug, Args)]
struct DirectoryArgs {
    /// The directory of the database; those below it count
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub(crate) fn run(args: &WalArgs) -> Result<ExitCode, Failure> {
    let (WalCommand::List(of) | WalCommand::Home(of)) = &args.command;
    let away = home::away(&of.directory).map_err(failure)?;
    if away.is_empty() {
        print(&format!("no log of {} is on another device\n", of.directory.display()))
            .map_err(Failure::output)?;
    }
    for log in &away {
        let is_home = matches!(args.command, WalCommand::Home(_));
        let line = if is_home {
            home::bring(log).map_err(failure)?;
            format!("{} is home\n", log.link.display())
        } else {
            format!("{} -> {}\n", log.link.display(), log.place.display())
        };
        print(&line).map_err(Failure::output)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it so")]
fn failure(error: HomeError) -> Failure {
    let fix = match &error {
        HomeError::System { .. } => "run it as the owner of the files, with room for the logs".to_owned(),
        HomeError::InUse { pid, .. } => format!("end the database first (process {pid}), and try again"),
        HomeError::Changed { .. } => {
            "end the database first, and try again: its log is where it was".to_owned()
        }
        HomeError::Lost { .. } => "mount the device on which the log is, and try again".to_owned(),
    };
    Failure::new(error.to_string(), fix)
}
