//! How long each test took, derived from the output of the test programs.
//!
//! Cargo's stable test runner reports no times. It runs tests in the order of their names, and starts the next when
//! one has ended; so a test's start follows from the ends of the others.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use clap::Args;

use crate::error::Error;

const SHOWN: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct SlowestArgs {
    /// Where seconds and names of tests are kept, a line each
    file: PathBuf,

    /// Pass on the output of test programs from standard input, and add what their tests took to FILE
    #[arg(long)]
    clock: bool,
}

pub(crate) fn run(args: &SlowestArgs) -> Result<(), Error> {
    if args.clock { clock(&args.file) } else { print(&args.file) }
}

fn clock(file: &Path) -> Result<(), Error> {
    let io_error = |source| Error::File { path: file.to_owned(), source };
    let mut times = OpenOptions::new().append(true).create(true).open(file).map_err(io_error)?;
    pass_on(&mut io::stdin().lock(), &mut io::stdout().lock(), &mut times).map_err(io_error)
}

fn pass_on(from: &mut dyn BufRead, to: &mut dyn Write, times: &mut File) -> io::Result<()> {
    let threads = threads();
    let started = Instant::now();
    let mut run = Run::default();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        if run.note(String::from_utf8_lossy(&line).trim_end(), started.elapsed().as_secs_f64()) {
            for (name, seconds) in std::mem::take(&mut run).durations(threads) {
                writeln!(times, "{seconds:.3} {name}")?;
            }
        }
        line.clear();
    }
    Ok(())
}

/// How many tests a test program runs at once.
pub(crate) fn threads() -> usize {
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    threads.or(thread::available_parallelism().ok()).map_or(1, usize::from)
}

fn print(file: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(file).map_err(|source| Error::File { path: file.to_owned(), source })?;
    let parsed = text.lines().filter_map(|line| line.split_once(' '));
    let mut all: Vec<(f64, &str)> =
        parsed.filter_map(|(seconds, name)| Some((seconds.parse().ok()?, name))).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (seconds, name) in all.iter().take(SHOWN) {
        println!("{seconds:>7.1} s  {name}");
    }
    Ok(())
}

/// The tests of one program.
#[derive(Debug, Default)]
pub(crate) struct Run {
    begun: f64,
    /// When each ended.
    ended: BTreeMap<String, f64>,
    /// From a runner that reports times.
    told: Vec<(String, f64)>,
}

impl Run {
    /// Processes a line of the output; returns whether it was the last one about tests.
    pub(crate) fn note(&mut self, line: &str, now: f64) -> bool {
        if let Some(rest) = line.strip_prefix("test ")
            && let Some((name, outcome)) = rest.rsplit_once(" ... ")
        {
            self.note_end(name, outcome, now);
        } else if line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")) {
            *self = Self { begun: now, ..Self::default() };
        }
        line.starts_with("test result: ")
    }

    fn note_end(&mut self, name: &str, outcome: &str, now: f64) {
        let (outcome, took) = outcome.split_once(" <").unwrap_or((outcome, ""));
        if !matches!(outcome, "ok" | "FAILED") {
            return;
        }
        match took.strip_suffix("s>").and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => self.told.push((name.to_owned(), seconds)),
            None => _ = self.ended.insert(name.to_owned(), now),
        }
    }

    pub(crate) fn durations(self, threads: usize) -> Vec<(String, f64)> {
        let mut ends: Vec<f64> = self.ended.values().copied().collect();
        ends.sort_by(f64::total_cmp);
        let begins = std::iter::repeat_n(self.begun, threads).chain(ends);
        let measured = self.ended.into_iter().zip(begins).map(|((name, end), begin)| (name, end - begin));
        measured.chain(self.told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(lines: &[(&str, f64)]) -> Vec<(String, f64)> {
        let mut run = Run::default();
        for (line, now) in lines {
            assert_eq!(run.note(line, *now), line.starts_with("test result"));
        }
        run.durations(2)
    }

    #[test]
    fn the_next_test_begins_when_one_has_ended() {
        // a and b begin at 1; c when b has ended, d when c has.
        let found = durations(&[
            ("running 5 tests", 1.0),
            ("test b ... ok", 2.0),
            ("test ignored ... ignored, takes long", 2.0),
            ("test c::x - should panic ... FAILED", 4.0),
            ("test a ... ok", 11.0),
            ("test d ... ok", 14.0),
            ("test result: FAILED. 3 passed; 1 failed", 14.0),
        ]);
        let expected = [("a", 10.0), ("b", 1.0), ("c::x - should panic", 2.0), ("d", 10.0)];
        assert_eq!(found, expected.map(|(name, seconds)| (name.to_owned(), seconds)));
    }

    #[test]
    fn a_runner_that_tells_times_is_believed() {
        let found = durations(&[("test it ... works (node 22) ... ok <1.250s>", 9.0)]);
        assert_eq!(found, [("it ... works (node 22)".to_owned(), 1.25)]);
    }

    #[test]
    fn output_is_passed_on_as_it_is_and_each_program_begins_anew() {
        let output = b"running 1 test\ntest a ... ok\n\xff no line of a test\ntest result: ok.\n\
            running 1 test\ntest a ... ok\ntest result: ok.\nno end";
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut passed = Vec::new();
        let mut times = OpenOptions::new().append(true).open(file.path()).unwrap();
        pass_on(&mut &output[..], &mut passed, &mut times).unwrap();
        assert_eq!(passed, output);
        let times = fs::read_to_string(file.path()).unwrap();
        assert_eq!(times, "0.000 a\n0.000 a\n");
    }
}
