//! `hasten gc record --list`.

use std::process::ExitCode;

use super::client::{Client, Info};
use super::error::RecordError;
use super::runtime;

pub(super) fn print() -> Result<ExitCode, RecordError> {
    let mut processes: Vec<Info> = Vec::new();
    for (pid, socket) in runtime::all_sockets() {
        match Client::at(pid, &socket).and_then(|mut client| client.info()) {
            Ok(info) => processes.push(info),
            // Left behind by a process that was killed.
            Err(RecordError::Connection { .. }) => {}
            Err(error) => eprintln!("hasten: {error}"),
        }
    }
    if processes.is_empty() {
        return Err(RecordError::NoneFound);
    }
    processes.sort_by_key(|process| process.pid);
    println!("{:>8}  {:<10} {:<10} SCRIPT", "PID", "NODE", "STATE");
    for Info { pid, node, script, recording } in &processes {
        let state = if *recording { "recording" } else { "ready" };
        println!("{pid:>8}  {node:<10} {state:<10} {}", printable(script.as_deref().unwrap_or("-")));
    }
    Ok(ExitCode::SUCCESS)
}

/// A path may have been chosen to confuse a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
