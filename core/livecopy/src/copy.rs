//! Stops a process, has it fork itself, lets it go on, and writes down the copy.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::LiveError;
use crate::image::CoreFile;
use crate::limits::{self, Memory};
use crate::packed::Packer;
use crate::space;
use crate::stopped::{Pause, Stopped};
use crate::trace::Thread;

/// What was written.
#[derive(Debug)]
pub struct Written {
    pub pause: Pause,
    /// Bytes of memory that the file has, and of the file.
    pub memory: u64,
    pub file: u64,
    /// From the end of the pause to the end of the file.
    pub took: Duration,
}

/// Writes a core file, packed with zstd and readable for its owner only, of a process that goes on running.
///
/// # Errors
///
/// The process may not be traced, is none that can be copied, or there is not enough of memory or disk. It goes on in each case.
pub fn snapshot(pid: i32, out: &Path) -> Result<Written, LiveError> {
    let system = |what: &'static str| move |error| LiveError::System { pid, what, error };
    check(pid)?;
    let before = space::with_flags(pid).map_err(|error| denied(pid, error))?;
    let resident = limits::resident(pid);
    let memory = Memory::of(pid);
    memory.enough(pid, resident)?;
    limits::disk(pid, out, resident)?;
    let write = |error| LiveError::Write { path: out.to_owned(), error };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out).map_err(write)?;
    let guard = Unfinished(Some(out));
    let mut stopped = Stopped::all(pid)?;
    let copy = stopped.copy(&before)?;
    let (pause, threads) = stopped.go_on();
    let started = Instant::now();
    // If memory runs out, it is the copy that ends.
    let _ = fs::write(format!("/proc/{}/oom_score_adj", copy.0), "1000");
    let mappings = space::now(copy.0, &before).map_err(system("the copy's mappings"))?;
    let core = CoreFile::of(copy.0, &threads, &mappings, &memory).map_err(system("the copy's memory"))?;
    let mut to = Packer::new(BufWriter::with_capacity(1 << 20, file)).map_err(write)?;
    let written = core.write(&mut to).and_then(|present| Ok((present, to.finish()?)));
    let (present, to) = written.map_err(|error| match error.downcast::<LiveError>() {
        Ok(LiveError::GivenUp { what, least, .. }) => LiveError::GivenUp { pid, what, least },
        Ok(other) => other,
        Err(error) => write(error),
    })?;
    guard.keep();
    let file = to.get_ref().metadata().map_or(0, |metadata| metadata.len());
    Ok(Written { pause, memory: present, file, took: started.elapsed() })
}

/// A thread as it stands.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub id: i32,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
}

/// Looks at a process while all its threads stand still, which is as long as the look takes.
///
/// # Errors
///
/// The process may not be traced, or ended.
pub fn look<T>(pid: i32, look: impl FnOnce(&[Standing]) -> T) -> Result<(Pause, T), LiveError> {
    check(pid)?;
    let stopped = Stopped::all(pid)?;
    let standing = |thread: &Thread| Standing {
        id: thread.id,
        stack_pointer: thread.registers[19],
        frame_pointer: thread.registers[4],
    };
    let seen = look(&stopped.threads.iter().map(standing).collect::<Vec<_>>());
    Ok((stopped.go_on().0, seen))
}

/// A file that goes if it is not finished.
struct Unfinished<'a>(Option<&'a Path>);

impl Unfinished<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a process can be looked at, where that can be said before anything is done.
///
/// # Errors
///
/// There is no such process, it is traced already, or the number is that of a thread.
pub fn check(pid: i32) -> Result<(), LiveError> {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| LiveError::NoProcess { pid })?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match field("TracerPid:").and_then(|by| by.parse().ok()) {
        Some(by) if by != 0 => return Err(LiveError::Traced { pid, by }),
        _ => {}
    }
    if field("Tgid:").and_then(|group| group.parse().ok()) != Some(pid) {
        return Err(LiveError::Unfit { pid, why: "the number is that of a thread".to_owned() });
    }
    if field("State:").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return Err(LiveError::Ended { pid });
    }
    Ok(())
}

pub(crate) fn denied(pid: i32, error: Error) -> LiveError {
    match error.kind() {
        ErrorKind::NotFound => LiveError::NoProcess { pid },
        _ if error.raw_os_error() == Some(libc::ESRCH) => LiveError::Ended { pid },
        _ => LiveError::Refused { pid, error, why: why_denied(pid) },
    }
}

fn why_denied(pid: i32) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let user = |pid: &str| {
        let status = read(format!("/proc/{pid}/status"));
        status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::to_owned)).unwrap_or_default()
    };
    let scope = read("/proc/sys/kernel/yama/ptrace_scope".to_owned());
    match scope.trim() {
        _ if !rustix::process::geteuid().is_root() && user(&pid.to_string()) != user("self") => {
            ": it belongs to another user".to_owned()
        }
        "1" => ": kernel.yama.ptrace_scope is 1, which allows to trace child processes only".to_owned(),
        "2" => ": kernel.yama.ptrace_scope is 2, which allows it to root only".to_owned(),
        "3" => ": kernel.yama.ptrace_scope is 3, which allows it to nobody until the next boot".to_owned(),
        _ => String::new(),
    }
}
