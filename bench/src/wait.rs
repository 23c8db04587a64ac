//! The end of a process and its cost: `wait4` is the only call that reports both.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How a process ended and what it used, including descendants that were waited for.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// User and system time.
    pub cpu: Duration,
    /// Bytes.
    pub peak_rss: u64,
}

/// Waits for `child`, the leader of its own group, which is killed once `limit` has passed or `stopped` says so.
/// `None` if it was killed.
pub fn wait(child: &mut Child, limit: Duration, stopped: &dyn Fn() -> bool) -> io::Result<Option<Ended>> {
    const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Instant::now() + limit;
    loop {
        let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut ended, Some(&SLICE)) {
            Ok(0) if stopped() || Instant::now() > deadline => {
                let _ = kill_process_group(pid, Signal::KILL);
                child.wait()?;
                return Ok(None);
            }
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return reap(pid).map(Some),
            Err(error) => return Err(error.into()),
        }
    }
}

/// `pid` must be a child that has ended and has not been waited for.
fn reap(pid: Pid) -> io::Result<Ended> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers lead to local memory of the right type, and wait4 writes nothing else. All bytes zero are
    // a valid rusage, so it is initialised whatever wait4 does.
    let (reaped, usage) = unsafe {
        let reaped = libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    if reaped < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    })
}

fn time(value: libc::timeval) -> Duration {
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(value.tv_sec)) + Duration::from_micros(part(value.tv_usec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn sh(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_process_is_charged_for_what_it_used() {
        let limit = Duration::from_secs(60);
        let busy =
            wait(&mut sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3"), limit, &|| false);
        let idle = wait(&mut sh("sleep 0.1"), limit, &|| false).unwrap().unwrap();
        let busy = busy.unwrap().unwrap();
        assert_eq!(busy.status.code(), Some(3));
        assert!(idle.status.success());
        assert!(busy.cpu > idle.cpu * 2, "{busy:?} {idle:?}");
        assert!(busy.peak_rss > 100 << 10, "{busy:?}");
    }

    #[test]
    fn a_process_that_nobody_wants_to_wait_for_is_ended_with_its_children() {
        let mut child = sh("sleep 600 & wait");
        assert!(wait(&mut child, Duration::from_secs(60), &|| true).unwrap().is_none());
        let mut child = sh("sleep 600 & wait");
        assert!(wait(&mut child, Duration::ZERO, &|| false).unwrap().is_none());
    }
}
