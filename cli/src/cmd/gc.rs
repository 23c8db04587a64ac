//! `hasten gc`: the cost of garbage collection in a Node.js program, and how to reduce it.

mod compare;
mod cpu;
mod error;
mod facts;
mod json;
mod output;
mod record;
mod report;
mod screen;
mod source;
mod spark;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use hasten_v8::advice::{Advice, advise};
use hasten_v8::compare::Comparison;
use hasten_v8::summary::Summary;

use self::error::GcError;
use self::facts::Size;
use self::screen::Screen;
use crate::failure::Failure;
use crate::output::print;
use crate::render::say;

/// More would neither fit on a screen nor be distinguishable.
const TRACES: usize = 16;

const DEFAULT_PAGE: &str = "hasten-gc.html";

const EXAMPLES: &str = "\
Examples:
  node --trace-gc app.js > gc.log           make a trace; --trace-gc-nvp tells more
  hasten gc record 1234 --for 180s          or record a running process
  hasten gc gc.log                          what it shows, and what to do
  hasten gc gc.log --html                   the same as a page with charts: hasten-gc.html
  hasten gc before.log after.log            side by side
  hasten gc gc.jsonl --cpuprofile app.cpuprofile   the CPU profile of a recording, for Chrome's DevTools
  kubectl logs app | hasten gc - --memory-limit 512M
  hasten gc --json gc.log > gc.json && hasten run --apply-gc-advice gc.json -- node app.js

Traces of Node 18 to 26 are read, mixed with the program's own output, of several processes, gzipped or not.
";

/// Read traces of V8's garbage collection: pauses, heap, leaks, advice
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct GcArgs {
    #[command(subcommand)]
    command: Option<GcCommand>,

    /// Traces; `-` is standard input; the first is what the others are compared with
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,

    /// Write a page with charts; its name ends in .html
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_PAGE)]
    html: Option<PathBuf>,

    /// Write the CPU profile of a recording made with --cpu, for Chrome's DevTools
    #[arg(long, value_name = "FILE")]
    cpuprofile: Option<PathBuf>,

    /// The memory that the program may use, such as 512M; by default what this host's cgroup allows
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Size>,

    /// The version of Node that wrote the traces, where they do not say it
    #[arg(long, value_name = "VERSION", value_parser = facts::parse_version)]
    node: Option<String>,
}

#[derive(Debug, Subcommand)]
enum GcCommand {
    Record(record::RecordArgs),
}

pub(crate) fn run(args: &GcArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(GcCommand::Record(args)) => record::run(args),
        None => Ok(read(args)?),
    }
}

/// Everything to show.
struct Findings {
    traces: Vec<Summary>,
    comparison: Option<Comparison>,
    advice: Vec<Advice>,
}

fn read(args: &GcArgs) -> Result<ExitCode, GcError> {
    let (files, page) = names(args)?;
    let profiles = args.cpuprofile.as_deref().map(|path| cpu::export(&files, path)).transpose()?;
    let traces = source::read_all(&files)?;
    let facts = facts::of(&traces, args.memory_limit, args.node.clone());
    let findings = Findings { comparison: Comparison::of(&traces), advice: advise(&traces, &facts), traces };
    // The page first: a reader of standard output may be gone after that is written.
    let page = page.map(|path| output::page(&path, &findings)).transpose()?;
    let text = match args.json {
        true => json::render(&findings)?,
        false => report::render(&findings, &files, Screen::stdout()),
    };
    print(&text).map_err(GcError::Output)?;
    if let Some(page) = page {
        say(format!("Page: {}", page.display()));
    }
    for profile in profiles.iter().flatten() {
        say(format!("CPU profile: {}", profile.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The traces and the page. People write `--html out.html`, and also `--html gc.log`: a name that ends in .html is
/// the page, whether a space or an equals sign precedes it.
fn names(args: &GcArgs) -> Result<(Vec<PathBuf>, Option<PathBuf>), GcError> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "html" || end == "htm");
    let (mut pages, files): (Vec<_>, Vec<_>) = args.files.iter().cloned().partition(is_page);
    let page = match (&args.html, pages.pop(), pages.is_empty()) {
        (Some(page), Some(named), true) if page == Path::new(DEFAULT_PAGE) => Some(named),
        (Some(page), None, _) if is_page(page) => Some(page.clone()),
        (Some(page), None, _) => return Err(GcError::PageName { path: page.clone() }),
        (None, None, _) => None,
        (_, Some(named), _) => return Err(GcError::PageAsTrace { path: named }),
    };
    match files.len() {
        0 => Err(GcError::NoTrace),
        1..=TRACES => Ok((files, page)),
        count => Err(GcError::TooMany { count }),
    }
}
