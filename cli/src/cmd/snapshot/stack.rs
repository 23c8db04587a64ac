//! What a process is doing now, without a copy: it stands still while its stacks are read.

use std::fmt::Write;
use std::process::ExitCode;

use hasten_corefile::{Live, Report, Standing};
use hasten_livecopy::{Pause, look};

use super::SnapshotArgs;
use crate::cmd::core::stacks;
use crate::failure::Failure;
use crate::output::print;

pub(super) fn run(pid: i32, args: &SnapshotArgs) -> Result<ExitCode, Failure> {
    // Whether it may be traced, and what to do if not, is told before its memory is opened.
    hasten_livecopy::check(pid)?;
    let live = Live::open(pid, None)?;
    let (pause, report) = look(pid, |threads| {
        let standing = |thread: &hasten_livecopy::Standing| Standing {
            id: thread.id,
            stack_pointer: thread.stack_pointer,
            frame_pointer: thread.frame_pointer,
        };
        live.stacks(&threads.iter().map(standing).collect::<Vec<_>>(), args.redact)
    })?;
    let report = report?;
    let text = if args.json { json(pid, pause, &report) } else { render(pid, pause, &report) };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn json(pid: i32, pause: Pause, report: &Report) -> String {
    let value = serde_json::json!({
        "pid": pid,
        "node": report.node,
        "pause_wall_ms": pause.wall.as_secs_f64() * 1e3,
        "threads": report.threads,
    });
    format!("{value:#}\n")
}

fn render(pid: i32, pause: Pause, report: &Report) -> String {
    let mut text = String::new();
    let node = if report.node.is_empty() { "of an unknown release" } else { &report.node };
    let pause = pause.wall.as_secs_f64() * 1e3;
    _ = writeln!(text, "Node.js {node}, process {pid}, which stood still for {pause:.1} ms");
    if report.threads.iter().all(|thread| thread.frames.is_empty()) {
        _ = writeln!(
            text,
            "\nNo thread is in JavaScript: it waits, or runs native code that was not called from there."
        );
    }
    stacks(&mut text, report);
    text
}
