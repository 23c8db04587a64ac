//! `hasten core`: what a Node.js process held when it died.

mod compare;
mod sections;

use std::fmt::Write as _;
use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hasten_corefile::{Comparison, Core, CoreError, Entry, Options, Report, page};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::print;

const ROWS: usize = 25;
const FRAMES: usize = 30;
const DEFAULT_PAGE: &str = "hasten-core.html";

const EXAMPLES: &str = "\
Examples:
  hasten core core.1234                     who died and where, and what filled the heap
  hasten core core.1234.zst                 packed files, too
  hasten core core.1234 --node ./node       where the program is not where it was
  hasten core core.1234 --heapsnapshot app.heapsnapshot
                                            open it in Chrome DevTools, or with memlab
  hasten core core.1234 --grep sess-17      find strings, then
  hasten core core.1234 --object 1f3a90c1   what an object is, and who holds it
  hasten core core.1234 --path 1f3a90c1     how it is held: a path from a root
  hasten core core.1234 --html              the same as a page: hasten-core.html
  hasten core core.1 --compare core.2       what has grown between two cores of one process

Cores of the kernel and of gcore are read, for Node 18 to 26 on x86-64.
A core file holds everything that the process had in memory, passwords and keys included.
";

/// Read a core file of Node.js: stack, heap, and who holds what
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CoreArgs {
    /// The core file; it may be packed with zstd or gzip
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The program that died, if it is no longer where it was
    #[arg(long, value_name = "PATH")]
    node: Option<PathBuf>,

    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,

    /// Write a heap snapshot for Chrome DevTools
    #[arg(long, value_name = "OUT")]
    heapsnapshot: Option<PathBuf>,

    /// Describe the object at this address, and who holds it
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    object: Option<u64>,

    /// Show how the object at this address is held: a shortest path from a root
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    path: Option<u64>,

    /// Compare with a later core file of the same process: what has grown
    #[arg(long, value_name = "LATER", conflicts_with_all = ["heapsnapshot", "object", "path", "grep", "stack", "html"])]
    compare: Option<PathBuf>,

    /// Write a page: boxes by size, paths, stack, search
    #[arg(long, value_name = "OUT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_PAGE, conflicts_with = "stack")]
    html: Option<PathBuf>,

    /// List the strings that hold this text, with their addresses
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,

    /// Show only the stacks
    #[arg(long)]
    stack: bool,

    /// Leave out strings and numbers
    #[arg(long, conflicts_with = "grep")]
    redact: bool,
}

fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches('@').trim_start_matches("0x");
    u64::from_str_radix(digits, 16)
        .map_err(|_| "write the address in hexadecimal, such as 1f3a90c1".to_owned())
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

pub(crate) fn run(args: &CoreArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        node: args.node.as_deref(),
        heapsnapshot: args.heapsnapshot.as_deref(),
        object: args.object,
        path: args.path,
        tree: args.html.is_some(),
        grep: args.grep.as_deref(),
        redact: args.redact,
        stack_only: args.stack,
    };
    let report = Core::report(&args.file, &options)?;
    if let Some(later) = &args.compare {
        return compared(&report, &Core::report(later, &options)?, args.json);
    }
    if let Some(path) = &args.html {
        let html = page(&report).map_err(|error| Failure::new(error.to_string(), "please report it"))?;
        private(path, html.as_bytes())?;
    }
    let text = match (args.json, &args.html) {
        (true, _) => json(&report)?,
        (false, Some(path)) => format!("page: {}\n", path.display()),
        _ if args.object.is_some() || args.grep.is_some() || args.path.is_some() => found(&report),
        _ => render(&report, args.stack),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|error| Failure::json("report", &error))?;
    Ok(json + "\n")
}

/// A file for the eyes of its owner: it holds what the process had in memory.
fn private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error| CoreError::Write { path: path.to_owned(), error };
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.and_then(|mut file| {
        // One that was there before may be open to others.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        file.write_all(bytes)
    });
    Ok(file.map_err(failed)?)
}

fn compared(before: &Report, after: &Report, is_json: bool) -> Result<ExitCode, Failure> {
    let comparison = Comparison::of(before, after);
    let text = if is_json { json(&comparison)? } else { compare::render(&comparison) };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn found(report: &Report) -> String {
    let mut text = report.found.iter().map(|line| line.clone() + "\n").collect::<String>();
    for path in &report.paths {
        if path.steps.is_empty() {
            _ = writeln!(text, "no root leads to an object at {}", path.address);
        }
        for step in &path.steps {
            _ = writeln!(text, "{:>20}  {} @{}", step.reference, step.name, step.address);
        }
    }
    if text.is_empty() { "nothing found\n".to_owned() } else { text }
}

fn render(report: &Report, stack_only: bool) -> String {
    let mut text = String::new();
    let node = if report.node.is_empty() { "of an unknown release" } else { &report.node };
    let v8 = if report.v8.is_empty() { String::new() } else { format!(" (V8 {})", report.v8) };
    let fault = report.fault_address.as_ref().map_or_else(String::new, |at| format!(" at address {at}"));
    _ = writeln!(text, "Node.js {node}{v8}, {}; signal {}{fault}", report.program.display(), report.signal);
    for note in &report.notes {
        _ = writeln!(text, "note: {note}");
    }
    sections::thrown(&mut text, report);
    stacks(&mut text, report);
    if !stack_only {
        heap(&mut text, report);
        sections::open(&mut text, report);
        sections::promises(&mut text, report);
        sections::environment(&mut text, report);
    }
    text
}

/// The threads that are in JavaScript, and the one that died.
pub(super) fn stacks(text: &mut String, report: &Report) {
    let threads = report.threads.iter().enumerate();
    let shown = threads
        .filter(|(index, thread)| *index == 0 && !thread.frames.is_empty() || thread.is_in_javascript());
    for (_, thread) in shown {
        _ = writeln!(text, "\n{} ({}):", thread.name, thread.id);
        for frame in thread.frames.iter().take(FRAMES) {
            if frame.is_native() {
                let about = if frame.exact { "" } else { ", perhaps of an earlier call" };
                _ = writeln!(text, "  {}\n      native, in {}{about}", frame.function, frame.script);
                continue;
            }
            let about = if frame.exact || frame.line == 0 { "" } else { " (its start)" };
            let place = match frame.script.is_empty() {
                true => "built in".to_owned(),
                false => format!("{}:{}:{}{about}", frame.script, frame.line, frame.column),
            };
            let arguments = match frame.is_inlined() {
                true => String::new(),
                false => format!(" ({})", frame.arguments.join(", ")),
            };
            _ = writeln!(text, "  {}{arguments}\n      {place}, {}", frame.function, frame.kind);
        }
    }
}

fn heap(text: &mut String, report: &Report) {
    let heap = &report.heap;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    _ = writeln!(
        text,
        "\nHeap: {:.1} MB used, {:.1} MB of it alive in {} objects; {:.1} MB in buffers outside",
        megabytes(heap.used_bytes),
        megabytes(heap.live_bytes),
        heap.live_objects,
        megabytes(heap.external_bytes),
    );
    let (share, unknown) = (report.walked_share * 100.0, report.unknown_words);
    _ = writeln!(
        text,
        "      {share:.2} % of the used bytes understood; {unknown} references lead to nothing known"
    );
    if let Some(why) = &report.refused {
        _ = writeln!(text, "      no retained sizes: {why}");
    }
    sections::spaces(text, report);
    _ = writeln!(text, "\n{:>10} {:>14} {:>14}  constructor", "count", "bytes", "retained");
    for Entry { name, count, shallow_bytes, retained_bytes } in report.histogram.iter().take(ROWS) {
        let retained = retained_bytes.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string());
        _ = writeln!(text, "{count:>10} {shallow_bytes:>14} {retained:>14}  {name}");
    }
    for suspect in &report.suspects {
        let (megabytes, share) = (megabytes(suspect.retained_bytes), suspect.share * 100.0);
        let held = match suspect.held_by.as_slice() {
            [] => format!("several objects lead to each of {share:.0} % of all"),
            held_by => format!("{share:.0} % of all live through one object:\n    {}", held_by.join(" ← ")),
        };
        _ = writeln!(
            text,
            "\n{} {} hold {megabytes:.1} MB; {held}\n    how one is held: --path {}",
            suspect.count, suspect.name, suspect.example,
        );
    }
    if !report.retainers.is_empty() {
        _ = writeln!(text, "\n{:>14}  the largest, and who alone holds them", "retained");
    }
    for retainer in &report.retainers {
        let chain: String = retainer.held_by.iter().map(|by| format!(" ← {by}")).collect();
        _ = writeln!(text, "{:>14}  {} @{}{chain}", retainer.retained_bytes, retainer.name, retainer.address);
    }
}
