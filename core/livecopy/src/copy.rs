//! Stops a process, has it fork itself, lets it go on, and writes down the copy.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::LiveError;
use crate::image::CoreFile;
use crate::limits::{self, Memory};
use crate::packed::Packer;
use crate::space::{self, Mapping};
use crate::stub::{self, Plan};
use crate::trace::{self, Event, Thread};

/// Below its pointer a function may use so many bytes of the stack; the code's own stack is below its data.
const RED_ZONE: u64 = 128;
const OWN_STACK: u64 = 1024;
const PAGE: u64 = 4096;
/// The code is a few microseconds long, once the copy exists.
const LEAVES: Duration = Duration::from_micros(100);
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the process stood still.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    /// From the first thread that stopped to the last that went on.
    pub wall: Duration,
    /// What the process itself computed meanwhile: the fork.
    pub cpu: Duration,
}

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

/// A copy that never runs, and ends with its holder.
struct Copy(i32);

impl Drop for Copy {
    fn drop(&mut self) {
        trace::kill(self.0);
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

fn denied(pid: i32, error: Error) -> LiveError {
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

/// The nanoseconds that a thread has run.
fn cpu(pid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// All threads of a process, standing still until this is dropped.
struct Stopped {
    pid: i32,
    /// The main thread first.
    threads: Vec<Thread>,
    memory: File,
    since: Instant,
    cpu: Duration,
    /// Code of ours in the process, and what was there before.
    code: Option<(u64, Vec<u8>)>,
}

impl Stopped {
    fn all(pid: i32) -> Result<Self, LiveError> {
        let system = |error| LiveError::System { pid, what: "the threads", error };
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = memory.map_err(|error| denied(pid, error))?;
        let mut stopped =
            Self { pid, threads: Vec::new(), memory, since: Instant::now(), cpu: cpu(pid), code: None };
        // Threads that start meanwhile are found in another round.
        loop {
            let known = stopped.threads.len();
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| denied(pid, error))?;
            let mut ids: Vec<i32> =
                tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
            ids.sort_unstable_by_key(|&id| (id != pid, id));
            for id in ids {
                if stopped.threads.iter().any(|thread| thread.id == id) {
                    continue;
                }
                match trace::seize(id).and_then(|()| trace::interrupt(id)) {
                    Ok(()) => stopped.threads.push(Thread { id, registers: [0; 27] }),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && id != pid => {}
                    Err(error) => return Err(denied(pid, error)),
                }
            }
            if stopped.threads.len() == known {
                break;
            }
            for thread in &mut stopped.threads[known..] {
                stop(thread.id).map_err(system)?;
                thread.registers = trace::registers(thread.id).map_err(system)?;
            }
        }
        match stopped.threads.first() {
            Some(main) if main.id == pid => Ok(stopped),
            _ => Err(LiveError::Ended { pid }),
        }
    }

    /// Has the main thread make a copy of the process.
    fn copy(&mut self, before: &[Mapping]) -> Result<Copy, LiveError> {
        let pid = self.pid;
        let system = |what: &'static str| move |error| LiveError::System { pid, what, error };
        let unfit = |why: &str| LiveError::Unfit { pid, why: why.to_owned() };
        let main = self.threads[0];
        // 64-bit code runs in this segment.
        if main.registers[17] != 0x33 {
            return Err(unfit("its main thread does not run 64-bit code"));
        }
        let mappings = space::now(pid, before).map_err(system("the mappings"))?;
        let kept = space::kept(&mappings);
        let sp = main.registers[19];
        let stack =
            mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&sp) && mapping.writable);
        let room = sp.saturating_sub(stack.map_or(sp, |stack| stack.start));
        let size = 16 * (kept.len() as u64 + 2);
        if room < RED_ZONE + size + OWN_STACK + PAGE {
            return Err(unfit("there is no room on the stack of its main thread"));
        }
        let data = (sp - RED_ZONE - size) & !63;
        let plan = Plan { data, kept: &kept, registers: &main.registers };
        let code = stub::code(&plan);
        let at = self
            .gap(&mappings, code.len())
            .ok_or_else(|| unfit("its code leaves no gap for a few instructions"))?;
        self.memory.write_all_at(&stub::data(&plan), data).map_err(system("the stack"))?;
        self.memory.write_all_at(&code, at).map_err(system("the code"))?;
        self.code = Some((at, vec![0; code.len()]));
        let mut registers = main.registers;
        // No call of the kernel is to be done again: the code does that.
        (registers[15], registers[16], registers[19]) = (u64::MAX, at, (data - OWN_STACK / 2) & !15);
        trace::set_registers(pid, &registers).map_err(system("the registers"))?;
        let followed = self.follow();
        if followed.is_err() {
            // The code may wait for its helper, and goes on when this process ends. It does no harm where it is.
            self.code = None;
        }
        followed.map_err(system("the fork"))?.ok_or_else(|| unfit("the kernel refused the fork"))
    }

    /// From the helper that the main thread makes to the copy that the helper makes.
    fn follow(&self) -> Result<Option<Copy>, Error> {
        trace::go_on(self.pid, 0)?;
        let helper = loop {
            match trace::wait(self.pid)? {
                Event::Made(helper) => break helper,
                Event::Signal(signal) if signal == libc::SIGSEGV || signal == libc::SIGILL => {
                    return Err(Error::other("the code failed"));
                }
                Event::Signal(signal) => trace::go_on(self.pid, signal)?,
                Event::Stopped => trace::go_on(self.pid, 0)?,
                Event::Ended => return Err(Error::from_raw_os_error(libc::ESRCH)),
            }
        };
        trace::go_on(self.pid, 0)?;
        let mut copy = None;
        loop {
            match trace::wait(helper)? {
                Event::Made(made) => {
                    copy = Some(Copy(made));
                    trace::go_on(helper, 0)?;
                }
                Event::Signal(signal) => trace::go_on(helper, signal)?,
                Event::Stopped => trace::go_on(helper, 0)?,
                Event::Ended => break,
            }
        }
        if let Some(copy) = &copy {
            stop(copy.0)?;
        }
        Ok(copy)
    }

    /// Zeros at the end of the last page of some code, where no section is.
    fn gap(&self, mappings: &[Mapping], length: usize) -> Option<u64> {
        let code =
            mappings.iter().filter(|mapping| mapping.executable && !mapping.writable && mapping.inode != 0);
        code.filter_map(|mapping| {
            let mut page = [0; PAGE as usize];
            self.memory.read_exact_at(&mut page, mapping.end - PAGE).ok()?;
            // What a run that was killed left there is over, unless a thread stands in it.
            let left = stub::left(&page);
            let inside = mapping.end - left as u64..mapping.end;
            if self.threads.iter().any(|thread| inside.contains(&thread.registers[16])) {
                return None;
            }
            let free = &page[..page.len() - left];
            let zeros = free.iter().rev().take_while(|&&byte| byte == 0).count() + left;
            // Not the zeros that an instruction ends with.
            (zeros >= length + 16).then(|| mapping.end - length as u64)
        })
        .next()
    }

    /// Lets all threads go on, and says how long they stood, and what their registers were.
    fn go_on(mut self) -> (Pause, Vec<Thread>) {
        let threads = self.threads.clone();
        for thread in self.threads.split_off(1) {
            trace::let_go(thread.id, 0);
        }
        self.finish();
        let pause = Pause { wall: self.since.elapsed(), cpu: cpu(self.pid).saturating_sub(self.cpu) };
        (pause, threads)
    }

    /// The main thread is let go when it has left our code, and that is removed.
    fn leave(&mut self) {
        let Some((at, before)) = self.code.take() else { return };
        let code = at..at + before.len() as u64;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let inside = trace::registers(self.pid).is_ok_and(|registers| code.contains(&registers[16]));
            if !inside {
                let _ = self.memory.write_all_at(&before, at);
                return;
            }
            if trace::go_on(self.pid, 0).is_err() {
                return;
            }
            std::thread::sleep(LEAVES);
            if trace::interrupt(self.pid).and_then(|()| stop(self.pid)).is_err() {
                return;
            }
        }
    }
}

impl Stopped {
    fn finish(&mut self) {
        let main = self.threads.first().is_some_and(|thread| thread.id == self.pid);
        if main && self.code.is_some() {
            // It may run, or stand where it made its helper.
            let _ = trace::interrupt(self.pid).and_then(|()| stop(self.pid));
            self.leave();
        }
        for thread in self.threads.drain(..) {
            trace::let_go(thread.id, 0);
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Waits until a thread stands still. Signals that come first are delivered.
fn stop(id: i32) -> Result<(), Error> {
    loop {
        match trace::wait(id)? {
            Event::Stopped => return Ok(()),
            Event::Signal(signal) => trace::go_on(id, signal)?,
            Event::Made(_) => trace::go_on(id, 0)?,
            Event::Ended => return Err(Error::from_raw_os_error(libc::ESRCH)),
        }
    }
}
