//! Whether services are restarted.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cmd) struct Restarts {
    /// Restart the services without asking
    #[arg(long, conflicts_with = "no_restart")]
    restart: bool,

    /// Leave the restart to somebody else
    #[arg(long)]
    no_restart: bool,
}

impl Restarts {
    /// What the flags say; without one, somebody at a terminal is asked.
    pub(in crate::cmd) fn is_wanted(&self, service: &str) -> bool {
        if self.restart || self.no_restart {
            return self.restart;
        }
        io::stdin().is_terminal() && confirm(&format!("Restart {service} now? [y/N] "))
    }
}

/// Anything but a yes is a no.
fn confirm(question: &str) -> bool {
    let mut screen = io::stderr();
    let _ = write!(screen, "{question}").and_then(|()| screen.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
