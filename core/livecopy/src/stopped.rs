//! A process whose threads all stand still, and the copy that it makes of itself.

use std::fs::{self, File, OpenOptions};
use std::io::Error;
use std::ops::Add;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::copy::denied;
use crate::error::LiveError;
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
#[derive(Debug, Clone, Copy, Default)]
pub struct Pause {
    /// From the first thread that stopped to the last that went on.
    pub wall: Duration,
    /// What the process itself computed meanwhile: the fork.
    pub cpu: Duration,
}

impl Add for Pause {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

/// All threads of a process, standing still until this is dropped.
pub(crate) struct Stopped {
    pid: i32,
    /// The main thread first.
    pub(crate) threads: Vec<Thread>,
    memory: File,
    since: Instant,
    cpu: Duration,
    /// Code of ours in the process, and what was there before.
    code: Option<(u64, Vec<u8>)>,
}

impl Stopped {
    pub(crate) fn all(pid: i32) -> Result<Self, LiveError> {
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

    /// Has the main thread make a copy of the process. With it come the mappings that the process has.
    pub(crate) fn copy(&mut self, before: &[Mapping]) -> Result<(Copy, Vec<Mapping>), LiveError> {
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
        let copy = followed.map_err(system("the fork"))?;
        Ok((copy.ok_or_else(|| unfit("the kernel refused the fork"))?, mappings))
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
    pub(crate) fn go_on(mut self) -> (Pause, Vec<Thread>) {
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

/// A copy that never runs, and ends with its holder.
pub(crate) struct Copy(pub(crate) i32);

impl Drop for Copy {
    fn drop(&mut self) {
        trace::kill(self.0);
    }
}

/// The nanoseconds that a thread has run.
fn cpu(pid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0))
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
