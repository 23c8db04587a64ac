//! `hasten engine list`.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::CellAlignment;
use hasten_telemetry::{BreakerState, EngineInfo, EngineReport, boottime};
use serde::Serialize;

use super::programs::{Condition, Found, Program, find};
use super::{EngineError, ListArgs, denied_note, print};
use crate::cmd::top::format::{count, duration};
use crate::render::{Style, say};

pub(super) fn run(args: &ListArgs) -> Result<ExitCode, EngineError> {
    let found = match find(args.pid) {
        // JSON is a document even when it is empty.
        Err(EngineError::NoneFound { denied }) if args.json => {
            print(&json(&Found { programs: Vec::new(), denied }))?;
            return Err(EngineError::NoneFound { denied });
        }
        found => found?,
    };
    print(&if args.json { json(&found) } else { table(&found) })?;
    if !args.json && found.denied > 0 {
        say(format!("hasten: this is not all{}; use sudo", denied_note(found.denied)));
    }
    Ok(ExitCode::SUCCESS)
}

/// An engine of a program, ready to be shown.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    class: &'static str,
    device: Option<String>,
    /// `null` where no process has used it so far.
    state: Option<&'static str>,
    /// Processes in that state, of those that have used the engine.
    processes_in_state: usize,
    processes_reporting: usize,
    since_s: Option<f64>,
    /// What its breaker opened for the last time.
    fault: Option<&'static str>,
    /// When an open breaker tries it again.
    retry_in_s: Option<f64>,
    /// What the control page asks for; `null` where it cannot be read.
    disabled_by_hand: Option<bool>,
    operations: u64,
    failures: u64,
    bytes_in: u64,
    bytes_out: u64,
    busy_s: f64,
    opened: u64,
}

fn rows(program: &Program) -> Vec<Row> {
    let Some(snapshot) = program.snapshot() else { return Vec::new() };
    let (control, total, now) = (program.page.control(snapshot).ok(), snapshot.total(), boottime());
    let row = |info: &EngineInfo| {
        let counted = total[info.engine];
        let Condition { gravest, processes } = Condition::of(&program.conditions(info.engine));
        let is_open = |report: &EngineReport| report.state == BreakerState::Open;
        let retry = gravest.filter(is_open).and_then(|report| report.probe);
        Row {
            name: info.engine.as_str(),
            class: info.class.as_str(),
            device: (!info.device.is_empty()).then(|| info.device.clone()),
            state: gravest.map(|report| report.state.as_str()),
            processes_in_state: processes.0,
            processes_reporting: processes.1,
            since_s: gravest.map(|report| now.saturating_sub(report.since).as_secs_f64()),
            fault: gravest.and_then(|report| report.fault).map(|fault| fault.as_str()),
            retry_in_s: retry.map(|probe| probe.saturating_sub(now).as_secs_f64()),
            disabled_by_hand: control.as_ref().and_then(|control| control.is_disabled(info.engine).ok()),
            operations: counted.operations(),
            failures: counted.failed,
            bytes_in: counted.bytes_in,
            bytes_out: counted.bytes_out,
            busy_s: counted.busy_ns as f64 / 1e9,
            opened: counted.opened,
        }
    };
    snapshot.engines.iter().map(row).collect()
}

fn table(found: &Found) -> String {
    let style = Style::stdout();
    let mut table =
        style.table(&["PROGRAM", "PID", "ENGINE", "STATE", "SINCE", "OPERATIONS", "FAILURES", "OPENED"]);
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let (mut notes, mut any) = (String::new(), false);
    for program in &found.programs {
        for row in rows(program) {
            table.add_row([
                program.page.program.clone(),
                program.first_pid().to_string(),
                row.engine(),
                row.state(),
                row.since_s.map_or_else(|| "-".to_owned(), |age| duration(Duration::from_secs_f64(age))),
                count(row.operations),
                count(row.failures),
                count(row.opened),
            ]);
            any = true;
            notes.extend(row.note(program));
        }
        notes.extend(without_engines(program));
    }
    let table = if any { table.to_string() } else { String::new() };
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect::<String>() + if any && !notes.is_empty() { "\n" } else { "" } + &notes
}

impl Row {
    fn engine(&self) -> String {
        let device = self.device.as_deref().map(|device| format!(" on {device}"));
        format!("{}{}", self.name, device.unwrap_or_default())
    }

    /// The state, and of how many processes where it is not that of all.
    fn state(&self) -> String {
        let Some(state) = self.state else {
            return if self.disabled_by_hand == Some(true) { "disabled, unused" } else { "unused" }
                .to_owned();
        };
        match self.processes_in_state == self.processes_reporting {
            true => state.to_owned(),
            false => format!("{state} in {} of {}", self.processes_in_state, self.processes_reporting),
        }
    }

    /// What a state means that is not as it should be.
    fn note(&self, program: &Program) -> Option<String> {
        let title = program.title();
        let disabled = BreakerState::Disabled.as_str();
        match (self.fault, self.retry_in_s) {
            (Some(fault), Some(retry)) => {
                Some(format!("{} of {title}: {fault}; tried again in {retry:.1} s\n", self.name))
            }
            _ if self.disabled_by_hand == Some(true) && self.state.is_some_and(|state| state != disabled) => {
                Some(format!("{} of {title}: disabled, and seen with the next operation\n", self.name))
            }
            _ => None,
        }
    }
}

/// Why a program has no row.
fn without_engines(program: &Program) -> Option<String> {
    let title = program.title();
    match &program.snapshot {
        Err(error) => Some(format!("{title}: {error}; {}\n", error.fix())),
        Ok(snapshot) if snapshot.engines.is_empty() && snapshot.control.is_none() => Some(format!(
            "{title}: started by an older hasten, which did not tell of engines; restart it to see them\n"
        )),
        Ok(snapshot) if snapshot.engines.is_empty() => {
            Some(format!("{title}: no engine for {}; `hasten check` says why\n", snapshot.accelerator))
        }
        Ok(_) => None,
    }
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    denied_processes: usize,
    programs: Vec<ProgramDocument>,
}

#[derive(Serialize)]
struct ProgramDocument {
    program: String,
    accelerator: Option<String>,
    page_inode: u64,
    pids: Vec<u32>,
    error: Option<String>,
    engines: Vec<Row>,
}

fn json(found: &Found) -> String {
    let program = |program: &Program| ProgramDocument {
        program: program.page.program.clone(),
        accelerator: program.snapshot().map(|snapshot| snapshot.accelerator.clone()),
        page_inode: program.page.inode,
        pids: program.page.pids().collect(),
        error: program.snapshot.as_ref().err().map(ToString::to_string),
        engines: rows(program),
    };
    let document = Document {
        schema: 1,
        denied_processes: found.denied,
        programs: found.programs.iter().map(program).collect(),
    };
    serde_json::to_string_pretty(&document).expect("names and numbers are JSON") + "\n"
}
