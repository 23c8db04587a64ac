//! `hasten gc record --list`.

use std::process::ExitCode;

use super::client::{Client, Info};
use super::error::RecordError;
use super::{process, runtime};
use crate::output;
use crate::render::say;

pub(super) fn print() -> Result<ExitCode, RecordError> {
    let mut processes: Vec<Info> = Vec::new();
    for (pid, socket) in runtime::all_sockets() {
        match Client::at(pid, &socket).and_then(|mut client| client.info()) {
            Ok(info) => processes.push(info),
            // Left behind by a process that was killed.
            Err(RecordError::Connection { .. }) => {}
            Err(error) => say(format!("hasten: {error}")),
        }
    }
    if processes.is_empty() {
        let waiting = process::with_plugin();
        return Err(if waiting.is_empty() { RecordError::NoneFound } else { RecordError::NoneYet(waiting) });
    }
    processes.sort_by_key(|process| process.pid);
    let mut text = format!("{:>8}  {:<10} {:<10} SCRIPT\n", "PID", "NODE", "STATE");
    for Info { pid, node, script, recording } in &processes {
        let state = if *recording { "recording" } else { "ready" };
        let script = printable(script.as_deref().unwrap_or("-"));
        text += &format!("{pid:>8}  {node:<10} {state:<10} {script}\n");
    }
    output::print(&text).map_err(RecordError::Stdout)?;
    Ok(ExitCode::SUCCESS)
}

/// A path may have been chosen to confuse a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
