//! The page: one self-contained file that makes no requests.

use std::collections::HashMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use crate::holders::Suspect;
use crate::paths::Step;
use crate::report::{Frame, Report};
use crate::spaces::IsolateHeap;
use crate::thrown::Thrown;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// Classes in the table; the others are few bytes each.
const ROWS: usize = 2000;
const FRAMES: usize = 200;
/// Threads without JavaScript are V8's helpers.
const THREADS: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("cannot make the page: {0}")]
    Template(#[from] minijinja::Error),
    #[error("cannot make the page's data: {0}")]
    Data(#[from] serde_json::Error),
}

/// A page for a report that was made with the tree.
///
/// # Errors
///
/// Only if the template and the report do not fit each other.
pub fn page(report: &Report) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("page", TEMPLATE)?;
    Ok(environment.get_template("page")?.render(Serde(&Page::of(report)?))?)
}

/// Everything the template refers to.
#[derive(Serialize)]
struct Page<'a> {
    style: String,
    script: &'static str,
    data: String,
    file: String,
    headline: String,
    about: Vec<String>,
    notes: &'a [String],
    tiles: Vec<Tile>,
    thrown: &'a [Thrown],
    threads: Vec<Thread<'a>>,
    isolates: Vec<Isolate<'a>>,
    waits: Vec<Waits>,
    suspects: Vec<Card<'a>>,
    retainers: Vec<Held<'a>>,
    histogram: Vec<Row<'a>>,
    others: usize,
    has_tree: bool,
}

#[derive(Serialize)]
struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

#[derive(Serialize)]
struct Thread<'a> {
    name: String,
    frames: Vec<&'a Frame>,
    more: usize,
}

#[derive(Serialize)]
struct Isolate<'a> {
    about: String,
    spaces: Vec<SpaceRow<'a>>,
}

#[derive(Serialize)]
struct SpaceRow<'a> {
    name: &'a str,
    size: String,
    used: String,
    alive: String,
}

/// What had been begun and was not at its end, of one kind.
#[derive(Serialize)]
struct Waits {
    title: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Card<'a> {
    suspect: &'a Suspect,
    bytes: String,
    share: String,
    path: &'a [Step],
}

#[derive(Serialize)]
struct Held<'a> {
    name: &'a str,
    address: &'a str,
    bytes: String,
    path: &'a [Step],
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    count: u64,
    shallow_bytes: u64,
    retained: String,
}

impl<'a> Page<'a> {
    fn of(report: &'a Report) -> Result<Self, PageError> {
        let paths: HashMap<&str, &[Step]> =
            report.paths.iter().map(|path| (&*path.address, &*path.steps)).collect();
        let path = |address: &str| paths.get(address).copied().unwrap_or_default();
        let node = if report.node.is_empty() { "of an unknown release" } else { &report.node };
        Ok(Self {
            style: [hasten_charts::LOOK, STYLE].join("\n"),
            script: SCRIPT,
            data: hasten_charts::embeddable(&serde_json::to_string(&report.tree)?),
            file: report.file.display().to_string(),
            headline: headline(report),
            about: vec![format!("Node.js {node}, {}; signal {}", report.program.display(), report.signal)],
            notes: &report.notes,
            tiles: tiles(report),
            thrown: &report.thrown,
            threads: threads(report),
            isolates: report.isolates.iter().take(THREADS).map(Isolate::of).collect(),
            waits: waits(report),
            suspects: report
                .suspects
                .iter()
                .map(|suspect| Card {
                    bytes: size(suspect.retained_bytes),
                    share: format!("{:.0} %", suspect.share * 100.0),
                    path: path(&suspect.example),
                    suspect,
                })
                .collect(),
            retainers: report
                .retainers
                .iter()
                .map(|held| Held {
                    name: &held.name,
                    address: &held.address,
                    bytes: size(held.retained_bytes),
                    path: path(&held.address),
                })
                .collect(),
            histogram: rows(report),
            others: report.histogram.len().saturating_sub(ROWS),
            has_tree: report.tree.is_some(),
        })
    }
}

fn headline(report: &Report) -> String {
    let place = report
        .threads
        .iter()
        .flat_map(|thread| &thread.frames)
        .find(|frame| !frame.is_native() && !frame.script.is_empty());
    let at = place.map_or_else(String::new, |frame| format!(" in {}", frame.function));
    let what = if report.signal.starts_with("none") { "Alive" } else { &report.signal };
    match report.histogram.first() {
        Some(_) => format!("{what}{at}, {} alive", size(report.heap.live_bytes)),
        None => format!("{what}{at}"),
    }
}

fn tiles(report: &Report) -> Vec<Tile> {
    let heap = &report.heap;
    let tile = |name, value, note| Tile { name, value, note };
    let understood = match &report.refused {
        Some(why) => format!("no retained sizes: {why}"),
        None => format!("{} references lead to nothing known", report.unknown_words),
    };
    vec![
        tile("alive", size(heap.live_bytes), format!("in {} objects", heap.live_objects)),
        tile("used", size(heap.used_bytes), "what the next collection frees included".to_owned()),
        tile("buffers", size(heap.external_bytes), "outside the heap".to_owned()),
        tile("understood", format!("{:.2} %", report.walked_share * 100.0), understood),
    ]
}

fn threads(report: &Report) -> Vec<Thread<'_>> {
    let with_frames = report.threads.iter().filter(|thread| thread.is_in_javascript());
    with_frames
        .take(THREADS)
        .map(|thread| Thread {
            name: format!("{} ({})", thread.name, thread.id),
            frames: thread.frames.iter().take(FRAMES).collect(),
            more: thread.frames.len().saturating_sub(FRAMES),
        })
        .collect()
}

impl<'a> Isolate<'a> {
    fn of(isolate: &'a IsolateHeap) -> Self {
        let limit = isolate.limit_bytes.map_or_else(|| "a limit that was not found".to_owned(), size);
        Self {
            about: format!("old generation: {} of {limit}", size(isolate.old_generation_bytes)),
            spaces: isolate
                .spaces
                .iter()
                .map(|space| SpaceRow {
                    name: &space.name,
                    size: size(space.size_bytes),
                    used: size(space.used_bytes),
                    alive: size(space.live_bytes),
                })
                .collect(),
        }
    }
}

/// Handles, timers and functions at an `await`.
fn waits(report: &Report) -> Vec<Waits> {
    let mut parts = Vec::new();
    let place = |script: &str, line: u32, column: u32| match script {
        "" => "built in".to_owned(),
        script => format!("{script}:{line}:{column}"),
    };
    for event_loop in report.loops.iter().take(THREADS) {
        let active = event_loop.handles.iter().filter(|handle| handle.active && handle.referenced);
        let lines = active.take(FRAMES).map(|handle| {
            let fd = handle.fd.map_or_else(String::new, |fd| format!(" fd {fd}"));
            format!("{}{fd}  {}", handle.kind, handle.about)
        });
        let active: u64 = event_loop.active.values().sum();
        let title =
            format!("event loop ({}): {active} handles, {} requests", event_loop.thread, event_loop.requests);
        parts.push(Waits { title, lines: lines.collect() });
    }
    let (timers, promises) = (&report.timers, &report.promises);
    if timers.timeouts + timers.immediates > 0 {
        let lines = timers.groups.iter().map(|group| {
            let every = if group.repeats { "every" } else { "after" };
            let place = place(&group.script, group.line, group.column);
            format!("{:>8} {every} {} ms: {} ({place})", group.count, group.after_ms, group.function)
        });
        let title = format!("timers: {} timeouts, {} immediates", timers.timeouts, timers.immediates);
        parts.push(Waits { title, lines: lines.collect() });
    }
    if promises.suspended > 0 {
        let lines = promises.stacks.iter().flat_map(|stack| {
            stack.frames.iter().enumerate().map(move |(index, frame)| {
                let count = if index == 0 { stack.count.to_string() } else { String::new() };
                let place = place(&frame.script, frame.line, frame.column);
                format!("{count:>8} {} {} ({place})", frame.kind, frame.function)
            })
        });
        let title =
            format!("{} functions at an await, {} promises pending", promises.suspended, promises.pending);
        parts.push(Waits { title, lines: lines.collect() });
    }
    parts
}

fn rows(report: &Report) -> Vec<Row<'_>> {
    let entries = report.histogram.iter().take(ROWS);
    entries
        .map(|entry| Row {
            name: &entry.name,
            count: entry.count,
            shallow_bytes: entry.shallow_bytes,
            retained: entry.retained_bytes.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string()),
        })
        .collect()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
