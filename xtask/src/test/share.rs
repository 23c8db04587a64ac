//! One test program, or one script that runs tests.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::slowest::Run;

#[derive(Debug, Clone)]
pub(super) struct Share {
    name: String,
    program: PathBuf,
    /// Where cargo would run it.
    folder: Option<PathBuf>,
}

/// How a share ended, and the CPU time that it and all that it waited for have used.
type Ended = io::Result<(ExitStatus, Duration)>;

/// What a share's tests came to.
#[derive(Debug)]
pub(super) struct Outcome {
    share: Share,
    pub(super) passed: usize,
    failed: Vec<String>,
    pub(super) times: Vec<(String, f64)>,
    output: String,
    took: Duration,
    cpu: Duration,
    /// It ended as its tests did: well, or with failures that it named.
    is_complete: bool,
}

impl Share {
    pub(super) fn program(name: String, program: PathBuf, folder: PathBuf) -> Self {
        Self { name, program, folder: Some(folder) }
    }

    pub(super) fn script(path: &str) -> Self {
        Self { name: path.to_owned(), program: path.into(), folder: None }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether these are tests of the whole product with real servers.
    pub(super) fn of_servers(&self) -> bool {
        self.folder.as_deref().and_then(Path::file_name).is_some_and(|folder| folder == "tests")
    }

    pub(super) fn run(self) -> Outcome {
        let started = Instant::now();
        let mut lines = Lines::default();
        let ended = self.execute(&[], |line| lines.note(line, started.elapsed()));
        lines.outcome(self, ended, started.elapsed())
    }

    /// Runs one of its tests alone; whether that passes.
    fn passes_alone(&self, test: &str) -> bool {
        let arguments = if self.folder.is_some() { ["--exact", test] } else { ["", test] };
        let mut has_run = false;
        let mut output = String::new();
        let ended = self.execute(&arguments, |line| {
            has_run |= line.starts_with("test ") && line.contains(" ... ok");
            output.push_str(line);
        });
        let passes = has_run && ended.is_ok_and(|(status, _)| status.success());
        if !passes {
            print!("alone, too:\n{output}");
        }
        passes
    }

    fn execute(&self, arguments: &[&str], mut note: impl FnMut(&str)) -> Ended {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        if let Some(folder) = &self.folder {
            // What cargo tells a test program at run time.
            command.current_dir(folder).env("CARGO", super::cargo()).env("CARGO_MANIFEST_DIR", folder);
        }
        let mut child = command.spawn()?;
        // The command holds the pipe's other end.
        drop(command);
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            note(&String::from_utf8_lossy(&line));
            line.clear();
        }
        let cpu = cpu_at_end(&child);
        Ok((child.wait()?, cpu))
    }
}

/// Of the times in `/proc`, on every architecture that we build for.
const TICKS_PER_SECOND: u32 = 100;

/// The CPU time of a child that is about to end, and of all that it waited for; nothing if the kernel does not tell.
fn cpu_at_end(child: &Child) -> Duration {
    let pid = Pid::from_child(child);
    // A child that has ended and was not waited for still has its times.
    if rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).is_err() {
        return Duration::ZERO;
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_secs(ticks) / TICKS_PER_SECOND
}

/// What has been read of a share's output.
#[derive(Debug, Default)]
struct Lines {
    output: String,
    passed: usize,
    failed: Vec<String>,
    run: Run,
    times: Vec<(String, f64)>,
    has_result: bool,
}

impl Lines {
    fn note(&mut self, line: &str, now: Duration) {
        self.output.push_str(line);
        let line = line.trim_end();
        if let Some((name, outcome)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            match outcome.split_once(" <").map_or(outcome, |(outcome, _)| outcome) {
                "ok" => self.passed += 1,
                "FAILED" => self.failed.push(name.trim_end_matches(" - should panic").to_owned()),
                _ => {}
            }
        }
        if self.run.note(line, now.as_secs_f64()) {
            self.has_result = true;
            self.times.extend(std::mem::take(&mut self.run).durations(crate::slowest::threads()));
        }
    }

    fn outcome(self, share: Share, ended: Ended, took: Duration) -> Outcome {
        let Self { mut output, passed, failed, times, has_result, .. } = self;
        let is_success = ended.as_ref().is_ok_and(|(status, _)| status.success());
        let cpu = ended.as_ref().map_or(Duration::ZERO, |(_, cpu)| *cpu);
        let is_complete = has_result && is_success == failed.is_empty();
        if !is_complete {
            match ended {
                Ok((status, _)) => output.push_str(&format!("{}: {status}\n", share.name)),
                Err(error) => output.push_str(&format!("{}: {error}\n", share.name)),
            }
        }
        Outcome { share, passed, failed, times, output, took, cpu, is_complete }
    }
}

impl Outcome {
    /// One line, everything that it printed if it failed, or what it printed besides the progress of its tests.
    pub(super) fn show(&self, number: usize, total: usize) {
        let is_good = self.is_complete && self.failed.is_empty();
        println!(
            "{number:>3}/{total} {} {}: {} passed{} in {:.1} s, {:.1} s of CPU time",
            if is_good { "ok  " } else { "FAIL" },
            self.share.name,
            self.passed,
            if self.failed.is_empty() { String::new() } else { format!(", {} failed", self.failed.len()) },
            self.took.as_secs_f64(),
            self.cpu.as_secs_f64(),
        );
        let is_progress =
            |line: &&str| line.trim().is_empty() || line.starts_with("test ") || line.starts_with("running ");
        if is_good {
            self.output.lines().filter(|line| !is_progress(line)).for_each(|line| println!("        {line}"));
        } else {
            println!("{}", self.output);
        }
    }

    /// Runs what failed once more; each by its name, and whether it passes alone. A program that died names none of its
    /// tests: it is not repeated.
    pub(super) fn repeat(&self) -> Vec<(String, bool)> {
        let name = |test: &str| format!("{}: {test}", self.share.name);
        let mut repeated: Vec<_> =
            self.failed.iter().map(|test| (name(test), self.share.passes_alone(test))).collect();
        if !self.is_complete {
            repeated.push((name("it did not end as its tests did"), false));
        }
        repeated
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A script in the place of a test program.
    fn script(folder: &Path, text: &str) -> Share {
        let path = folder.join("share.sh");
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Share::script(path.to_str().unwrap())
    }

    #[test]
    fn tests_are_counted_and_failures_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = "echo running 3 tests\necho test a ... ok\necho 'test b ... FAILED'\n\
            echo 'test c ... ignored'\necho 'test result: FAILED. 1 passed; 1 failed'\nexit 1\n";
        let outcome = script(folder.path(), text).run();
        assert_eq!((outcome.passed, &*outcome.failed, outcome.is_complete), (1, &["b".to_owned()][..], true));
    }

    #[test]
    fn cpu_time_includes_what_was_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let outcome =
            script(folder.path(), "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'\n").run();
        assert!(!outcome.cpu.is_zero());
        assert!(outcome.cpu <= outcome.took * 2, "{:?} of {:?}", outcome.cpu, outcome.took);
    }

    #[test]
    fn a_program_that_dies_fails_whatever_passed_before() {
        let folder = tempfile::tempdir().unwrap();
        let text = "echo running 2 tests\necho test a ... ok\nkill -9 $$\n";
        let outcome = script(folder.path(), text).run();
        assert!(!outcome.is_complete);
        assert!(outcome.repeat().iter().all(|(_, passes)| !passes));
        let text = "echo test a ... ok\necho 'test result: ok. 1 passed'\nexit 3\n";
        assert!(!script(folder.path(), text).run().is_complete, "a failure that no test has");
    }

    #[test]
    fn what_fails_is_repeated_alone() {
        let folder = tempfile::tempdir().unwrap();
        // Alone, a test has a name; only the second passes then.
        let text = "case $2 in '') echo 'test a ... FAILED'; echo 'test b ... FAILED'\n\
            echo 'test result: FAILED.'; exit 1;; a) exit 1;; b) echo 'test b ... ok';; esac\n";
        let outcome = script(folder.path(), text).run();
        let verdicts: Vec<bool> = outcome.repeat().into_iter().map(|(_, passes)| passes).collect();
        assert_eq!(verdicts, [false, true]);
    }
}
