//! `hasten core`: what a Node.js process held when it died.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hasten_corefile::{Core, CoreError, Entry, Options, Report};

use crate::failure::Failure;
use crate::output::print;

const ROWS: usize = 25;
const FRAMES: usize = 30;

const EXAMPLES: &str = "\
Examples:
  hasten core core.1234                     who died and where, and what filled the heap
  hasten core core.1234.zst                 packed files, too
  hasten core core.1234 --node ./node       where the program is not where it was
  hasten core core.1234 --heapsnapshot app.heapsnapshot
                                            open it in Chrome DevTools, or with memlab
  hasten core core.1234 --grep sess-17      find strings, then
  hasten core core.1234 --object 1f3a90c1   what an object is, and who holds it

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
        grep: args.grep.as_deref(),
        redact: args.redact,
        stack_only: args.stack,
    };
    let report = Core::report(&args.file, &options)?;
    let text = match args.json {
        true => {
            let json =
                serde_json::to_string_pretty(&report).map_err(|error| Failure::json("report", &error))?;
            json + "\n"
        }
        false if args.object.is_some() || args.grep.is_some() => found(&report),
        false => render(&report, args.stack),
    };
    print(&text).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

fn found(report: &Report) -> String {
    match report.found.is_empty() {
        true => "nothing found\n".to_owned(),
        false => report.found.join("\n") + "\n",
    }
}

fn render(report: &Report, stack_only: bool) -> String {
    let mut text = String::new();
    let node = if report.node.is_empty() { "of an unknown release" } else { &report.node };
    _ = writeln!(text, "Node.js {node}, {}; signal {}", report.program.display(), report.signal);
    for note in &report.notes {
        _ = writeln!(text, "note: {note}");
    }
    stacks(&mut text, report);
    if !stack_only {
        heap(&mut text, report);
    }
    text
}

fn stacks(text: &mut String, report: &Report) {
    for thread in report.threads.iter().filter(|thread| !thread.frames.is_empty()) {
        _ = writeln!(text, "\n{} ({}):", thread.name, thread.id);
        for frame in thread.frames.iter().take(FRAMES) {
            let about = if frame.exact || frame.line == 0 { "" } else { " (its start)" };
            let place = match frame.script.is_empty() {
                true => "built in".to_owned(),
                false => format!("{}:{}:{}{about}", frame.script, frame.line, frame.column),
            };
            let arguments = frame.arguments.join(", ");
            _ = writeln!(text, "  {} ({arguments})\n      {place}, {}", frame.function, frame.kind);
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
    _ = writeln!(text, "\n{:>10} {:>14} {:>14}  constructor", "count", "bytes", "retained");
    for Entry { name, count, shallow_bytes, retained_bytes } in report.histogram.iter().take(ROWS) {
        let retained = retained_bytes.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string());
        _ = writeln!(text, "{count:>10} {shallow_bytes:>14} {retained:>14}  {name}");
    }
    if !report.retainers.is_empty() {
        _ = writeln!(text, "\n{:>14}  the largest, and who alone holds them", "retained");
    }
    for retainer in &report.retainers {
        let chain: String = retainer.held_by.iter().map(|by| format!(" ← {by}")).collect();
        _ = writeln!(text, "{:>14}  {} @{}{chain}", retainer.retained_bytes, retainer.name, retainer.address);
    }
}
