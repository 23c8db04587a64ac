//! `hasten engine list`.

use std::process::ExitCode;

use comfy_table::CellAlignment;
use hasten_telemetry::{EngineCondition, duration};
use serde::Serialize;

use super::json::{EngineJson, TotalJson};
use super::programs::{Found, Program, find};
use super::{EngineError, ListArgs, print};
use crate::cmd::top::format::count;
use crate::cmd::top::state::in_words;
use crate::denied;
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
        say(format!("hasten: this is not all{}: {}", denied::note(found.denied), denied::CURE));
    }
    Ok(ExitCode::SUCCESS)
}

/// An engine of a program, ready to be shown.
struct Row {
    engine: EngineCondition,
    /// What the control page requests; `None` if it cannot be read.
    disabled_by_hand: Option<bool>,
}

#[derive(Serialize)]
struct RowJson {
    #[serde(flatten)]
    engine: EngineJson,
    disabled_by_hand: Option<bool>,
    #[serde(flatten)]
    total: TotalJson,
}

fn rows(program: &Program) -> Vec<Row> {
    let Some(snapshot) = program.snapshot() else { return Vec::new() };
    let control = program.page.control(snapshot).ok();
    let row = |engine: EngineCondition| {
        let disabled = control.as_ref().and_then(|control| control.is_disabled(engine.engine).ok());
        Row { engine, disabled_by_hand: disabled }
    };
    program.conditions().into_iter().map(row).collect()
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
                row.engine.title(),
                row.state(),
                row.engine.age().map_or_else(|| "-".to_owned(), duration),
                count(row.engine.total.operations()),
                count(row.engine.total.failed),
                count(row.engine.total.opened),
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
    fn state(&self) -> String {
        in_words(&self.engine, self.disabled_by_hand == Some(true))
    }

    /// Why an engine is out of service, and until when.
    fn note(&self, program: &Program) -> Option<String> {
        let (fault, retry) = (self.engine.fault()?, self.engine.retry()?);
        let (name, title) = (self.engine.engine, program.title());
        Some(format!("{name} of {title}: {fault}; tried again in {:.1} s\n", retry.as_secs_f64()))
    }
}

impl From<Row> for RowJson {
    fn from(Row { engine, disabled_by_hand }: Row) -> Self {
        Self { engine: EngineJson::new(&engine), disabled_by_hand, total: TotalJson::new(&engine.total) }
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
    engines: Vec<RowJson>,
}

fn json(found: &Found) -> String {
    let program = |program: &Program| ProgramDocument {
        program: program.page.program.clone(),
        accelerator: program.snapshot().map(|snapshot| snapshot.accelerator.clone()),
        page_inode: program.page.inode,
        pids: program.page.pids().collect(),
        error: program.snapshot.as_ref().err().map(ToString::to_string),
        engines: rows(program).into_iter().map(RowJson::from).collect(),
    };
    let document = Document {
        schema: 1,
        denied_processes: found.denied,
        programs: found.programs.iter().map(program).collect(),
    };
    serde_json::to_string_pretty(&document).expect("names and numbers are JSON") + "\n"
}
