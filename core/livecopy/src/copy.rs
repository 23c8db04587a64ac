//! Stops a process, has it fork itself, lets it go on, and writes down the copy.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::LiveError;
use crate::image::CoreFile;
use crate::limits::{self, Memory};
use crate::packed::Packer;
use crate::space::{self, Mapping};
use crate::stopped::{Copy, Pause, Stopped};
use crate::trace::Thread;

/// So long a process is waited for to be at rest. Then it is copied as it is: one that is short of memory may have no other moment.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile, while it runs.
const LOOK: Duration = Duration::from_micros(100);
/// Mappings come and go; what is known of them is as good as new for so long.
const FRESH: Duration = Duration::from_millis(250);
/// So many copies are made until one has all memory.
const COPIES: u32 = 4;

/// What was written.
#[derive(Debug)]
pub struct Written {
    pub pause: Pause,
    /// How often it was stopped: once, if it was at rest and no memory came meanwhile.
    pub stops: u32,
    /// What it was in the middle of, if it was never at rest.
    pub amid: Option<&'static str>,
    /// From the first look to the stop that the copy was made in.
    pub waited: Duration,
    /// Bytes of memory that the file has, and of the file.
    pub memory: u64,
    pub file: u64,
    /// From the end of the pause to the end of the file.
    pub took: Duration,
}

/// Writes a core file, packed with zstd and readable for its owner only, of a process that goes on running.
///
/// `busy` says what the process is in the middle of, if a copy would not be whole now. It is asked while the process runs, and again
/// when it stands still.
///
/// # Errors
///
/// The process may not be traced, is none that can be copied, or there is not enough of memory or disk. It goes on in each case.
pub fn snapshot(pid: i32, out: &Path, busy: impl Fn() -> Option<&'static str>) -> Result<Written, LiveError> {
    check(pid)?;
    // Whether it may be traced comes before what the copy needs.
    File::open(format!("/proc/{pid}/mem")).map_err(|error| denied(pid, error))?;
    let resident = limits::resident(pid);
    let memory = Memory::of(pid);
    memory.enough(pid, resident)?;
    limits::disk(pid, out, resident)?;
    let write = |error| LiveError::Write { path: out.to_owned(), error };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out).map_err(write)?;
    let guard = Unfinished(Some(out));
    let taken = Taken::of(pid, busy)?;
    let started = Instant::now();
    let core = CoreFile::of(taken.copy.0, &taken.threads, &taken.mappings, &memory);
    let core = core.map_err(|error| LiveError::System { pid, what: "the copy's memory", error })?;
    let mut to = Packer::new(BufWriter::with_capacity(1 << 20, file)).map_err(write)?;
    let written = core.write(&mut to).and_then(|present| Ok((present, to.finish()?)));
    let (present, to) = written.map_err(|error| match error.downcast::<LiveError>() {
        Ok(LiveError::GivenUp { what, least, .. }) => LiveError::GivenUp { pid, what, least },
        Ok(other) => other,
        Err(error) => write(error),
    })?;
    guard.keep();
    let file = to.get_ref().metadata().map_or(0, |metadata| metadata.len());
    Ok(Written {
        pause: taken.pause,
        stops: taken.stops,
        amid: taken.amid,
        waited: taken.waited,
        memory: present,
        file,
        took: started.elapsed(),
    })
}

/// A copy, and the process that goes on.
struct Taken {
    copy: Copy,
    mappings: Vec<Mapping>,
    threads: Vec<Thread>,
    pause: Pause,
    stops: u32,
    amid: Option<&'static str>,
    waited: Duration,
}

impl Taken {
    /// With all memory, if a few tries make such a copy. V8 maps a page and then keeps it from forks: of one that is stopped
    /// between the two, or that nobody has seen before the stop, the flags are not known, and the fork may leave it out.
    fn of(pid: i32, busy: impl Fn() -> Option<&'static str>) -> Result<Self, LiveError> {
        let (since, mut stops, mut pause, mut copies) = (Instant::now(), 0, Pause::default(), 0);
        loop {
            let mut rest = Rest::of(pid, since, &busy)?;
            let (copy, there) = rest.stopped.copy(&rest.mappings)?;
            let (stood, threads) = rest.stopped.go_on();
            // If memory runs out, it is the copy that ends.
            let _ = fs::write(format!("/proc/{}/oom_score_adj", copy.0), "1000");
            (stops, pause) = (stops + rest.stops, pause + rest.before + stood);
            let mappings = space::now(copy.0, &there);
            let mappings =
                mappings.map_err(|error| LiveError::System { pid, what: "the copy's mappings", error })?;
            let is_whole = space::has_all(&mappings, &there);
            copies += 1;
            if is_whole || copies == COPIES {
                let amid = rest.amid.or_else(|| (!is_whole).then_some("an allocation"));
                return Ok(Self { copy, mappings, threads, pause, stops, amid, waited: rest.waited });
            }
        }
    }
}

/// A process that stands still, at rest if it ever was.
struct Rest {
    stopped: Stopped,
    mappings: Vec<Mapping>,
    amid: Option<&'static str>,
    waited: Duration,
    stops: u32,
    /// How long it stood in the stops that were too late.
    before: Pause,
}

impl Rest {
    fn of(pid: i32, since: Instant, busy: impl Fn() -> Option<&'static str>) -> Result<Self, LiveError> {
        let (mut stops, mut before) = (0, Pause::default());
        loop {
            let mappings = space::with_flags(pid).map_err(|error| denied(pid, error))?;
            let known = Instant::now();
            while busy().is_some() && known.elapsed() < FRESH {
                sleep(LOOK);
            }
            let stopped = Stopped::all(pid)?;
            stops += 1;
            let (amid, waited) = (busy(), since.elapsed());
            if amid.is_none() || waited > PATIENCE {
                return Ok(Self { stopped, mappings, amid, waited, stops, before });
            }
            before = before + stopped.go_on().0;
        }
    }
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
/// There is no such process, it is traced already, or the number is that of a thread; or the machine is none that is understood.
pub fn check(pid: i32) -> Result<(), LiveError> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(LiveError::Machine { machine: std::env::consts::ARCH });
    }
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A copy of a process that is busy at the first so many looks.
    fn copied(looks: u32) -> Written {
        let sleeper = Sleeper(Command::new("sleep").arg("60").spawn().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let looked = Cell::new(0);
        let busy = || {
            looked.set(looked.get() + 1);
            (looked.get() <= looks).then_some("work")
        };
        snapshot(sleeper.0.id().cast_signed(), &folder.path().join("core"), busy).unwrap()
    }

    #[test]
    fn a_process_at_rest_is_stopped_once() {
        let written = copied(0);
        assert_eq!((written.stops, written.amid), (1, None));
        // It is waited for while it runs.
        assert_eq!(copied(3).stops, 1);
    }

    #[test]
    fn one_that_never_rests_is_copied_as_it_is() {
        let written = copied(u32::MAX);
        assert!(written.stops > 1 && written.waited > PATIENCE, "{written:?}");
        assert_eq!(written.amid, Some("work"));
    }

    /// Maps memory that it keeps from forks, at addresses that V8 would not use, as often as it is told to.
    const MAPS: &str = "\
import mmap, sys
known = []
while sys.stdin.buffer.read(1):
    known.append(mmap.mmap(-1, 12288, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    known[-1].madvise(mmap.MADV_DONTFORK)
    known[-1][0] = 1
    sys.stdout.buffer.write(b'1')
    sys.stdout.buffer.flush()
";

    /// A copy of a process that maps more, at so many stops, after its mappings were read and before it stands still.
    fn of_one_that_maps(times: u32) -> Written {
        let mut command = Command::new("python3");
        let child = command.args(["-c", MAPS]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut maps = Sleeper(child);
        let mut pipes = (maps.0.stdin.take().unwrap(), maps.0.stdout.take().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mut map = || {
            pipes.0.write_all(b"1").unwrap();
            pipes.1.read_exact(&mut [0]).unwrap();
        };
        map();
        let map = RefCell::new(map);
        let looked = Cell::new(0_u32);
        let busy = || {
            // Each second look is at a process that stands still.
            if looked.get().is_multiple_of(2) && looked.get() / 2 < times {
                map.borrow_mut()();
            }
            looked.set(looked.get() + 1);
            None
        };
        snapshot(maps.0.id().cast_signed(), &folder.path().join("core"), busy).unwrap()
    }

    #[test]
    fn memory_that_came_after_the_look_has_another_copy_made() {
        for times in 0..COPIES {
            let written = of_one_that_maps(times);
            assert_eq!((written.stops, written.amid), (times + 1, None));
        }
        let never = of_one_that_maps(u32::MAX);
        assert_eq!((never.stops, never.amid), (COPIES, Some("an allocation")));
    }
}
