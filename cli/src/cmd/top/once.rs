//! `hasten top --once`: plain tables for scripts, logs and people.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use hasten_telemetry::{
    Algorithm, Counters, Event, Handshakes, LANES, Reason, Severity, Share, Snapshot, Warning, Window,
};

use super::format::{bytes, cores, count, duration, micros, percent, rate};
use super::state::{Direction, ENGINES, Program, State, Traffic};

pub(super) fn render(state: &State, color: bool) -> String {
    let processes: Vec<String> = state.by_process().map(|pages| process(pages, color)).collect();
    processes.join("\n")
}

/// A heading, and a section for each accelerator.
fn process(pages: &[Program], color: bool) -> String {
    let mut text = String::new();
    heading(&mut text, &pages[0]);
    for page in pages {
        if let (Some(snapshot), Some(window)) = (page.snapshot(), page.interval()) {
            section(&mut text, page, snapshot, &window);
        }
        for one in page.warnings() {
            warning(&mut text, &one, color);
        }
    }
    text
}

fn heading(text: &mut String, program: &Program) {
    let (first, others) = (program.first_pid(), program.processes().len().saturating_sub(1));
    let with = match others {
        0 => String::new(),
        1 => " and 1 process more".to_owned(),
        _ => format!(" and {others} processes more"),
    };
    let up = program.snapshot().map_or(String::new(), |_| format!(", up {}", duration(program.uptime())));
    line(text, &format!("{}, process {first}{with}{up}", program.name()));
}

fn section(text: &mut String, program: &Program, snapshot: &Snapshot, window: &Window) {
    let whole = Window { elapsed: program.uptime(), counted: program.total() };
    let note = if snapshot.note.is_empty() { String::new() } else { format!(" ({})", snapshot.note) };
    line(text, &format!("\n{}{note}", snapshot.accelerator));
    if program.is_of_memory() {
        return memory(text, program, &whole, window);
    }
    // A second says little, and nothing if all requests came earlier.
    paragraph(text, "since the start: ", &since_the_start(program, &whole));
    let interval = window.elapsed.as_secs_f64();
    paragraph(text, &format!("in the last {interval:.1} s: "), &in_the_interval(program, window));
    suspension(text, program);
    let table =
        if program.counts_streams() { engines(&whole, window) } else { algorithms(snapshot, &whole, window) };
    for table in [table, service(program, window), reasons(&whole, window)].into_iter().flatten() {
        line(text, &format!("\n{table}"));
    }
}

/// Where each process has its memory.
fn memory(text: &mut String, program: &Program, whole: &Window, window: &Window) {
    let Some(all) = program.memory_of_all() else {
        return line(text, "no process has reported its memory yet");
    };
    let (near, far) = (bytes(all.near as f64), bytes(all.far as f64));
    let (share, wanted) = (percent(all.share()), percent(all.target_share()));
    line(text, &format!("{near} near, {far} far: {share} of all, {wanted} wanted"));
    let mut table = table(&["process", "near", "far", "share", "wanted", "far from"]);
    for (process, tiers) in program.memory() {
        table.add_row([
            process.pid.to_string(),
            bytes(tiers.near as f64),
            bytes(tiers.far as f64),
            percent(tiers.share()),
            percent(tiers.target_share()),
            bytes(tiers.threshold as f64),
        ]);
    }
    for table in [Some(table), reasons(whole, window)].into_iter().flatten() {
        line(text, &format!("\n{table}"));
    }
}

/// All work done, and what it saved.
fn since_the_start(program: &Program, whole: &Window) -> String {
    let saved = whole.counted.saved_ns() as f64 / 1e9;
    let done = if program.counts_streams() {
        directions(whole, &|streams| format!("{} streams", count(streams)), &|size| bytes(size as f64))
    } else {
        let handshakes = handshakes(&whole.counted, &|finished| format!("{} handshakes", count(finished)));
        let split = whole.share().map(split).unwrap_or_default();
        format!("{handshakes}, {} operations{split}", count(whole.operations()))
    };
    format!("{done}; estimated CPU saved {saved:.1} s")
}

/// The same as rates.
fn in_the_interval(program: &Program, window: &Window) -> String {
    let per_second = |count| window.per_second(count);
    let done = if program.counts_streams() {
        let streams = |streams| format!("{} streams/s", rate(per_second(streams)));
        directions(window, &streams, &|size| format!("{}/s", bytes(per_second(size))))
    } else {
        let per_second_of = |finished| format!("{} handshakes/s", rate(per_second(finished)));
        let handshakes = handshakes(&window.counted, &per_second_of);
        let split = window.share().map(split).unwrap_or_default();
        format!("{handshakes}, {} operations/s{split}", rate(per_second(window.operations())))
    };
    format!("{done}; estimated CPU saved {} cores", cores(window.cores_saved()))
}

/// Those of servers, and of clients if there are any; how many of them are hybrid, if any are.
fn handshakes(counted: &Counters, number: &dyn Fn(u64) -> String) -> String {
    let one = |handshakes: Handshakes, whose: &str| {
        let share = handshakes.hybrid_share().filter(|share| *share > 0.0);
        let hybrid = share.map(|share| format!(" ({} hybrid)", percent(share))).unwrap_or_default();
        format!("{}{whose}{hybrid}", number(handshakes.finished))
    };
    let clients = Handshakes::of_clients(counted);
    let more =
        if clients.finished > 0 { format!(", {}", one(clients, " as a client")) } else { String::new() };
    one(Handshakes::of_servers(counted), "") + &more
}

fn split(share: Share) -> String {
    let parts = [share.batched, share.single, share.scalar, share.bypassed];
    let [batched, single, scalar, bypassed] = parts.map(percent);
    format!(" ({batched} batched, {single} single, {scalar} scalar, {bypassed} bypassed)")
}

/// Whether handshakes are suspended, and how many of them had to be called in; empty if no process has reported it.
fn suspension(text: &mut String, program: &Program) {
    let shares: Vec<String> = program.suspension().iter().map(ToString::to_string).collect();
    if shares.is_empty() {
        return;
    }
    let total = program.total();
    let called_in = [
        (Event::CalledIn, "called in"),
        (Event::Overdue, "called in overdue"),
        (Event::ForeignCall, "called by another thread"),
    ];
    let called_in = called_in.into_iter().filter(|(event, _)| total[*event] > 0);
    let called_in = called_in.map(|(event, what)| format!("; {} {what}", count(total[event])));
    line(text, &format!("suspension: {}{}", shares.join(", "), called_in.collect::<String>()));
}

/// The traffic in each direction, if any.
fn directions(window: &Window, streams: &dyn Fn(u64) -> String, size: &dyn Fn(u64) -> String) -> String {
    let one = |direction: Direction| {
        let counted = direction.of(&window.counted);
        let ratio = counted.ratio(direction).map(|ratio| format!(", compressed to {}", percent(ratio)));
        let verified = match counted.verified {
            0 => String::new(),
            verified => format!(", {} of it verified", size(verified)),
        };
        let (name, opened) = (direction.as_str(), streams(counted.streams));
        let (before, after) = (size(counted.bytes_in), size(counted.bytes_out));
        let text =
            format!("{name} {opened}, {before} in, {after} out{}{verified}", ratio.unwrap_or_default());
        (!counted.is_empty()).then_some(text)
    };
    let used: Vec<String> = Direction::ALL.into_iter().filter_map(one).collect();
    if used.is_empty() { "no streams".to_owned() } else { used.join("\n") }
}

/// Engines that were ever used; `None` if there are none.
fn engines(whole: &Window, window: &Window) -> Option<Table> {
    let all = Direction::ALL.map(|direction| direction.of(&whole.counted));
    let now = Direction::ALL.map(|direction| direction.of(&window.counted));
    let was_used = |engine: &usize| all.iter().any(|traffic| traffic.by_engine[*engine] > 0);
    let used: Vec<usize> = (0..ENGINES.len()).filter(was_used).collect();
    let mut table = table(&["engine", "deflated", "share", "inflated", "share", "deflate/s", "inflate/s"]);
    for engine in used.iter().copied() {
        let share = |traffic: &Traffic| traffic.share(engine).map_or_else(|| "-".to_owned(), percent);
        let in_all = |traffic: &Traffic| bytes(traffic.by_engine[engine] as f64);
        let per_second = |traffic: &Traffic| bytes(window.per_second(traffic.by_engine[engine]));
        table.add_row([
            ENGINES[engine].to_owned(),
            in_all(&all[0]),
            share(&all[0]),
            in_all(&all[1]),
            share(&all[1]),
            per_second(&now[0]),
            per_second(&now[1]),
        ]);
    }
    (!used.is_empty()).then_some(table)
}

/// Whether engines are in service; `None` if the page does not say.
fn service(program: &Program, window: &Window) -> Option<Table> {
    let engines = program.engines();
    let mut table = table(&["engine", "state", "since", "operations", "per s", "failures", "opened"]);
    for engine in &engines {
        table.add_row([
            engine.title(),
            program.state_of(engine),
            engine.age().map_or_else(|| "-".to_owned(), duration),
            count(engine.total.operations()),
            rate(window.per_second(window.counted[engine.engine].operations())),
            count(engine.total.failed),
            count(engine.total.opened),
        ]);
    }
    (!engines.is_empty()).then_some(table)
}

/// Algorithms that were ever used; `None` if there are none.
fn algorithms(snapshot: &Snapshot, whole: &Window, window: &Window) -> Option<Table> {
    let total = &whole.counted;
    let used: Vec<Algorithm> = Algorithm::ALL.into_iter().filter(|a| total[*a].queued() > 0).collect();
    let mut table = table(&[
        "algorithm",
        "batched",
        "single",
        "scalar",
        "failed",
        "batched/s",
        "single/s",
        "scalar/s",
        "lanes",
        "pays from",
        "one µs",
        "batch µs",
        "1 to 8 lanes",
    ]);
    for algorithm in &used {
        let (all, now) = (&total[*algorithm], &window.counted[*algorithm]);
        let break_even = snapshot.break_even(*algorithm);
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            algorithm.to_string(),
            count(all.batched),
            count(all.single),
            count(all.scalar),
            count(all.failed),
            rate(window.per_second(now.batched)),
            rate(window.per_second(now.single)),
            rate(window.per_second(now.scalar)),
            known(all.average_lanes().map(|lanes| format!("{lanes:.1}"))),
            known(break_even.map(|known| pays_from(known.lanes))),
            known(break_even.map(|known| micros(known.scalar_ns))),
            known(break_even.map(|known| micros(known.batch_ns))),
            histogram(&all.lanes),
        ]);
    }
    (!used.is_empty()).then_some(table)
}

/// Reasons that ever applied; `None` if there are none.
fn reasons(whole: &Window, window: &Window) -> Option<Table> {
    let total = &whole.counted;
    let applied: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| total[*reason] > 0).collect();
    let mut table = table(&["original path because", "in all", "per s"]);
    for reason in &applied {
        let per_second = rate(window.per_second(window.counted[*reason]));
        table.add_row([reason.to_string(), count(total[*reason]), per_second]);
    }
    (!applied.is_empty()).then_some(table)
}

fn warning(text: &mut String, warning: &Warning, color: bool) {
    let (on, off) = match (color, warning.severity) {
        (false, _) => ("", ""),
        (true, Severity::Critical) => ("\x1b[1;31m", "\x1b[0m"),
        (true, Severity::Warning) => ("\x1b[33m", "\x1b[0m"),
        (true, Severity::Note) => ("\x1b[36m", "\x1b[0m"),
    };
    line(text, &format!("\n{on}{}{off}: {}", warning.severity.as_str(), warning.message));
    line(text, &format!("  fix: {}", warning.fix));
}

/// How full the batches were: a bar for each number of lanes.
fn histogram(lanes: &[u64; LANES]) -> String {
    const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = lanes.iter().copied().max().unwrap_or(0).max(1);
    // Rounded up, so that any batch at all is visible.
    lanes.iter().map(|batches| BARS[(*batches as f64 / most as f64 * 8.0).ceil() as usize]).collect()
}

pub(super) fn pays_from(lanes: u64) -> String {
    if lanes > LANES as u64 { "never".to_owned() } else { lanes.to_string() }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Lines after a title, one below the other.
fn paragraph(text: &mut String, title: &str, lines: &str) {
    line(
        text,
        &format!("{title}{}", lines.replace('\n', &format!("\n{}", " ".repeat(title.chars().count())))),
    );
}

fn line(text: &mut String, line: &str) {
    // Table rows are padded to full width; nobody needs that.
    for line in line.split('\n') {
        writeln!(text, "{}", line.trim_end()).expect("a String takes everything");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cmd::top::fixture;

    #[test]
    fn tables_of_a_busy_a_bypassed_and_an_unreadable_program() {
        insta::assert_snapshot!(render(&fixture::state(true), false));
    }

    /// A few requests, and none a second later: rates alone would say that nothing was done.
    #[test]
    fn what_was_counted_before_the_interval_comes_first() {
        let (mut state, start) = (State::default(), Instant::now());
        for second in 0..2 {
            let mut sample = fixture::idle(1);
            let counters = fixture::counters(&mut sample);
            counters[Event::HandshakeFinished] = 3;
            counters[Algorithm::P256Sign].batched = 2;
            counters[Algorithm::P256Sign].scalar = 1;
            state.update(start + Duration::from_secs(second), vec![sample]);
        }
        let text = render(&state, false);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert!(lines[0].starts_with("since the start: 3 handshakes, 3 operations (67% batched"), "{text}");
        assert!(lines[1].starts_with("in the last 1.0 s: 0 handshakes/s, 0 operations/s;"), "{text}");
        let row = lines.iter().find(|line| line.contains("p-256-sign")).expect("a row");
        assert_eq!(row.split_whitespace().take(5).collect::<Vec<_>>(), ["p-256-sign", "2", "0", "1", "0"]);
    }

    #[test]
    fn engines_that_are_not_in_service_are_warned_of() {
        insta::assert_snapshot!(render(&fixture::troubled(), false));
    }

    #[test]
    fn two_kinds_of_memory() {
        let text = render(&fixture::tiered(), false);
        assert!(!text.contains("handshakes") && !text.contains("saved"), "{text}");
        assert!(text.contains("26.0 MB near, 74.0 MB far: 74% of all, 75% wanted\n"), "{text}");
        let row = text.lines().find(|line| line.trim_start().starts_with("4252 ")).expect("a row");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["4252", "26.0", "MB", "74.0", "MB", "74%", "75%", "1.0", "kB"]);
    }

    #[test]
    fn color_marks_the_severity_only() {
        let text = render(&fixture::state(true), true);
        assert!(text.contains("\x1b[1;31mcritical\x1b[0m: 2 batched signatures"), "{text}");
        assert!(!render(&fixture::state(true), false).contains('\x1b'));
    }

    #[test]
    fn a_single_batch_among_thousands_is_visible() {
        assert_eq!(histogram(&[1, 0, 0, 0, 0, 0, 5000, 10_000]), "▁·····▄█");
        assert_eq!(histogram(&[0; LANES]), "········");
    }
}
