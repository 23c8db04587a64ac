//! Parts of the summary beside stacks and the heap's tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hasten_corefile::{MASKED, Report};

const LINES: usize = 12;
const CALLS: usize = 30;

pub(super) fn thrown(text: &mut String, report: &Report) {
    for thrown in report.thrown.iter().take(LINES) {
        let message = if thrown.message.is_empty() { String::new() } else { format!(": {}", thrown.message) };
        _ = writeln!(text, "\nexception, {}:\n  {}{message} @{}", thrown.how, thrown.name, thrown.address);
        for line in thrown.stack.iter().take(CALLS) {
            _ = writeln!(text, "      {line}");
        }
    }
}

/// The heap of each isolate by space, against its limit.
pub(super) fn spaces(text: &mut String, report: &Report) {
    let size = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    for (index, isolate) in report.isolates.iter().enumerate().take(LINES) {
        let whose =
            if report.isolates.len() == 1 { "heap".to_owned() } else { format!("heap {}", index + 1) };
        let limit = isolate.limit_bytes.map_or_else(
            || "of a limit that was not found".to_owned(),
            |limit| {
                let share = isolate.old_generation_bytes as f64 / limit.max(1) as f64 * 100.0;
                format!("of {}, where V8 ends the process ({share:.0} %)", size(limit))
            },
        );
        let half = isolate
            .semi_space_limit_bytes
            .map_or_else(String::new, |limit| format!("; half of the young one: up to {}", size(limit)));
        _ = writeln!(text, "\n{whose}: old generation {} {limit}{half}", size(isolate.old_generation_bytes));
        _ = writeln!(text, "{:>10} {:>12} {:>12} {:>12}  space", "pages", "size", "used", "alive");
        for space in &isolate.spaces {
            let [all, used, alive] = [space.size_bytes, space.used_bytes, space.live_bytes].map(size);
            _ = writeln!(text, "{:>10} {all:>12} {used:>12} {alive:>12}  {}", space.pages, space.name);
        }
    }
}

/// What keeps the process running, or would have gone on.
pub(super) fn open(text: &mut String, report: &Report) {
    for event_loop in report.loops.iter().take(LINES) {
        let list = |kinds: &BTreeMap<&str, u64>| {
            let list: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            if list.is_empty() { "none".to_owned() } else { list.join(", ") }
        };
        _ = writeln!(
            text,
            "\nOpen in the event loop ({}): {}; {} requests; not kept running by {}",
            event_loop.thread,
            list(&event_loop.active),
            event_loop.requests,
            list(&event_loop.others),
        );
        let active = event_loop.handles.iter().filter(|handle| handle.active && handle.referenced);
        for handle in active.take(LINES) {
            let fd = handle.fd.map_or_else(String::new, |fd| format!(" fd {fd}"));
            _ = writeln!(text, "  {}{fd}  {}", handle.kind, handle.about);
        }
    }
    let timers = &report.timers;
    if timers.timeouts + timers.immediates > 0 {
        _ = writeln!(
            text,
            "\nTimers: {} timeouts and intervals, {} immediates{}",
            timers.timeouts,
            timers.immediates,
            if timers.unread == 0 {
                String::new()
            } else {
                format!("; {} more were not read", timers.unread)
            },
        );
    }
    for group in timers.groups.iter().take(LINES) {
        let every = if group.repeats { "every" } else { "after" };
        let about = if group.referenced { "" } else { ", unref" };
        let place = place(&group.script, group.line, group.column);
        _ = writeln!(
            text,
            "{:>8} {every} {} ms{about}: {} ({place})",
            group.count, group.after_ms, group.function
        );
    }
}

pub(super) fn promises(text: &mut String, report: &Report) {
    let promises = &report.promises;
    if promises.pending + promises.fulfilled + promises.rejected == 0 {
        return;
    }
    _ = writeln!(
        text,
        "\nPromises: {} pending with {} reactions, {} fulfilled, {} rejected ({} of them unhandled); {} functions at an await",
        promises.pending,
        promises.reactions,
        promises.fulfilled,
        promises.rejected,
        promises.unhandled,
        promises.suspended,
    );
    for stack in promises.stacks.iter().take(LINES) {
        for (index, frame) in stack.frames.iter().enumerate() {
            let count = if index == 0 { stack.count.to_string() } else { String::new() };
            let place = place(&frame.script, frame.line, frame.column);
            _ = writeln!(text, "{count:>8} {} {} ({place})", frame.kind, frame.function);
        }
    }
}

fn place(script: &str, line: u32, column: u32) -> String {
    if script.is_empty() { "built in".to_owned() } else { format!("{script}:{line}:{column}") }
}

/// Values that hold no secret, then the names of the others.
pub(super) fn environment(text: &mut String, report: &Report) {
    if report.environment.is_empty() {
        return;
    }
    _ = writeln!(text, "\nEnvironment at the start:");
    for (name, value) in report.environment.iter().filter(|(_, value)| *value != MASKED) {
        _ = writeln!(text, "  {name}={value}");
    }
    let masked: Vec<&str> =
        report.environment.iter().filter(|(_, value)| *value == MASKED).map(|(name, _)| &**name).collect();
    if !masked.is_empty() {
        _ = writeln!(text, "  values masked: {}", masked.join(", "));
    }
}
