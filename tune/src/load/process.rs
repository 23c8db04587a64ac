//! A run of the tool: in its own process group, which is gone when the run is over, however it ends.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::LoadError;
use super::command::CommandLine;
use crate::keeper;

const POLL: Duration = Duration::from_millis(5);
/// For reading what is left in the pipes of a tool that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Only the end of longer output is kept.
const MOST: usize = 4 << 20;
const SHOWN_LINES: usize = 12;
const SHOWN_BYTES: usize = 2000;

/// What a tool wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
    /// The file that its arguments told it to write.
    pub file: Option<String>,
    pub elapsed: Duration,
}

impl Printed {
    /// The end of the output, for a message.
    pub(super) fn last_lines(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let both = if self.stdout.trim().is_empty() {
            text.clone()
        } else {
            format!("{}\n{}", self.stderr, self.stdout)
        };
        let lines: Vec<_> = both.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let lines = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        if lines.is_empty() {
            return "(nothing)".to_owned();
        }
        let shown = lines.join("\n");
        let least = shown.len().saturating_sub(SHOWN_BYTES);
        let from = (least..).find(|&at| shown.is_char_boundary(at)).unwrap_or(least);
        shown[from..].to_owned()
    }
}

pub(super) fn run(line: &CommandLine, deadline: Instant, stop: &AtomicBool) -> Result<Printed, LoadError> {
    let mut command = line.command();
    // Ctrl-C at the terminal is ours to handle, and the group can be ended as a whole.
    command.process_group(0);
    let started = Instant::now();
    let child = command.spawn();
    let program = command.get_program().to_string_lossy().into_owned();
    let child = child.map_err(|source| LoadError::Start { program, source })?;
    keeper::watch(child.id());
    let mut group = Group(child);
    let stdout = collect(group.0.stdout.take());
    let stderr = collect(group.0.stderr.take());
    let end = group.wait(deadline, stop);
    let elapsed = started.elapsed();
    // Remaining members of the group would hold the pipes open.
    drop(group);
    let last = Instant::now() + LAST_WORDS;
    let printed = Printed { stdout: text(&stdout, last), stderr: text(&stderr, last), file: None, elapsed };
    match end.map_err(LoadError::Watch)? {
        End::Status(status) if status.success() => Ok(printed),
        End::Status(status) => Err(LoadError::Failed { status, printed: printed.last_lines() }),
        End::Deadline => Err(LoadError::Deadline { printed: printed.last_lines() }),
        End::Stopped => Err(LoadError::Stopped),
    }
}

enum End {
    Status(ExitStatus),
    Deadline,
    Stopped,
}

/// A process and all its descendants; dropping it ends them.
struct Group(Child);

impl Group {
    fn wait(&mut self, deadline: Instant, stop: &AtomicBool) -> io::Result<End> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(End::Status(status));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            if Instant::now() >= deadline {
                return Ok(End::Deadline);
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// The data read from a pipe so far.
#[derive(Default)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Carries no data, but is closed when the pipe is.
    end: Option<Receiver<()>>,
}

/// Reads in a separate thread, which ends with the pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Collected {
    let Some(mut pipe) = pipe else { return Collected::default() };
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let (open, end) = mpsc::channel();
    let shared = Arc::clone(&bytes);
    thread::spawn(move || {
        let _open: mpsc::Sender<()> = open;
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut bytes = shared.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend(&buffer[..count]);
            if bytes.len() > 2 * MOST {
                let surplus = bytes.len() - MOST;
                bytes.drain(..surplus);
            }
        }
    });
    Collected { bytes, end: Some(end) }
}

/// Everything until the pipe ends, or until `last`: a process that left the group may hold it open for ever.
fn text(collected: &Collected, last: Instant) -> String {
    if let Some(end) = &collected.end {
        let _ = end.recv_timeout(last.saturating_duration_since(Instant::now()));
    }
    let bytes = collected.bytes.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn run_line(text: &str, limit: Duration, stop: &AtomicBool) -> Result<Printed, LoadError> {
        run(&CommandLine::parse(text).unwrap(), Instant::now() + limit, stop)
    }

    fn is_alive(pid: &str) -> bool {
        // A process that was killed but not yet waited for by its new parent has an empty command line.
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    }

    #[test]
    fn both_outputs_are_kept() {
        let printed = run_line("sh -c 'echo out; echo err >&2'", LIMIT, &AtomicBool::new(false)).unwrap();
        assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn what_fails_says_what_it_printed_last() {
        let error =
            run_line("sh -c 'echo no such host >&2; exit 3'", LIMIT, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("exit status: 3") && text.ends_with("no such host"), "{text}");
        let error = run_line("/no/such/tool -x", LIMIT, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, LoadError::Start { .. }) && error.to_string().contains("/no/such/tool"));
    }

    #[test]
    fn nothing_is_left_of_it_however_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let child = directory.path().join("child");
        let begin = format!("sleep 600 & echo $! > {}; ", child.display());
        let ends: [(&str, Duration, bool); 3] =
            [("true", LIMIT, false), ("wait", Duration::from_millis(300), false), ("wait", LIMIT, true)];
        for (then, limit, stopped) in ends {
            let _ = fs::remove_file(&child);
            let stop = AtomicBool::new(false);
            let result = thread::scope(|scope| {
                let raise = scope.spawn(|| {
                    while stopped && fs::read_to_string(&child).unwrap_or_default().is_empty() {
                        thread::sleep(POLL);
                    }
                    stop.store(stopped, Ordering::Relaxed);
                });
                let result = run_line(&format!("{begin}{then}"), limit, &stop);
                raise.join().unwrap();
                result
            });
            match (then, stopped) {
                ("true", _) => assert!(result.is_ok()),
                (_, true) => assert!(matches!(result, Err(LoadError::Stopped)), "{result:?}"),
                _ => assert!(matches!(result, Err(LoadError::Deadline { .. })), "{result:?}"),
            }
            let pid = fs::read_to_string(&child).unwrap();
            assert!(!pid.trim().is_empty() && !is_alive(pid.trim()), "{then}: {pid}");
        }
    }

    #[test]
    fn of_a_flood_the_end_is_kept() {
        let flood = "sh -c 'head -c 20000000 /dev/zero | tr \"\\000\" x; echo; echo the end'";
        let printed = run_line(flood, LIMIT, &AtomicBool::new(false)).unwrap();
        assert!(printed.stdout.len() <= 2 * MOST && printed.stdout.ends_with("the end\n"));
    }
}
