//! What is asked of the kernel during a call of the program.
//!
//! The calls bypass the C library: its functions may be wrapped by another preloaded library, which may block in them,
//! or be the present caller and hold a lock of its own. None of them changes errno.

use core::ffi::{CStr, c_int};
use core::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, fcntl_getfl, fstat, stat, statat};
use rustix::net::sockopt::{socket_cookie, socket_linger};

/// A descriptor of the program, by its number. It is borrowed only for the call.
fn borrowed(fd: c_int) -> Option<BorrowedFd<'static>> {
    // SAFETY: it is not -1. The kernel itself determines whether it is open.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Whether operations on it do not block; `None` if it is not open.
pub(crate) fn is_non_blocking(fd: c_int) -> Option<bool> {
    let flags = fcntl_getfl(borrowed(fd)?).ok()?;
    Some(flags.contains(OFlags::NONBLOCK))
}

/// The number of the socket behind a descriptor, which is never reused; 0 if it is not a socket.
pub(crate) fn socket(fd: c_int) -> u64 {
    borrowed(fd).and_then(|fd| socket_cookie(fd).ok()).unwrap_or(0)
}

/// Whether it is a socket whose close waits until its peer has received everything.
pub(crate) fn lingers(fd: c_int) -> bool {
    let time = borrowed(fd).and_then(|fd| socket_linger(fd).ok().flatten());
    time.is_some_and(|time| !time.is_zero())
}

/// Whether it is neither a pipe nor a socket nor a terminal.
pub(crate) fn is_file(fd: c_int) -> bool {
    let file = borrowed(fd).and_then(|fd| fstat(fd).ok());
    file.is_some_and(|file| {
        matches!(FileType::from_raw_mode(file.st_mode), FileType::RegularFile | FileType::BlockDevice)
    })
}

/// Whether a path, relative to a directory or to `AT_FDCWD`, leads to a named pipe.
pub(crate) fn is_fifo(directory: c_int, path: &CStr) -> bool {
    let directory = if directory == libc::AT_FDCWD { Some(CWD) } else { borrowed(directory) };
    let file = directory.and_then(|directory| statat(directory, path, AtFlags::empty()).ok());
    file.is_some_and(|file| FileType::from_raw_mode(file.st_mode) == FileType::Fifo)
}

/// Whether this process has a single thread: the kernel's task directory has two links plus one per thread.
pub(crate) fn has_one_thread() -> bool {
    stat(c"/proc/self/task").is_ok_and(|threads| threads.st_nlink == 3)
}

/// Whether an operation on a descriptor can proceed, or will fail, at this moment.
pub(crate) fn is_ready(fd: c_int, event: PollFlags) -> bool {
    let Some(fd) = borrowed(fd) else { return false };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error counts as ready: the caller then makes its call and gets the error itself.
    poll(&mut [PollFd::from_borrowed_fd(fd, event)], Some(&now)) != Ok(0)
}

pub(crate) fn sleep(time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    // A signal may cut it short.
    let _ = rustix::thread::nanosleep(&time);
}

/// Yields to other threads.
pub(crate) fn step_back() {
    rustix::thread::sched_yield();
}

/// This thread's number.
pub(crate) fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs::File;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    /// A number that no descriptor has.
    const NONE: c_int = 1 << 20;

    #[test]
    fn sockets_are_told_apart_and_asked_for_their_ways() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let (one, other) = (client.as_raw_fd(), server.as_raw_fd());
        assert_ne!(socket(one), 0);
        assert_ne!(socket(one), socket(other));
        assert_eq!(socket(one), socket(client.try_clone().unwrap().as_raw_fd()));

        assert_eq!(is_non_blocking(one), Some(false));
        client.set_nonblocking(true).unwrap();
        assert_eq!(is_non_blocking(one), Some(true));

        assert!(!is_ready(one, PollFlags::IN) && is_ready(one, PollFlags::OUT));
        server.write_all(b"x").unwrap();
        while !is_ready(one, PollFlags::IN) {}

        assert!(!lingers(one));
        let set = |time| rustix::net::sockopt::set_socket_linger(&client, time).unwrap();
        set(Some(Duration::from_secs(2)));
        assert!(lingers(one));
        set(Some(Duration::ZERO));
        assert!(!lingers(one));
        assert!(!is_file(one));
    }

    #[test]
    fn what_is_not_open_is_nothing_and_errno_stays() {
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = 77 };
        for fd in [-1, NONE] {
            assert_eq!(is_non_blocking(fd), None);
            assert_eq!(socket(fd), 0);
            assert!(!lingers(fd) && !is_file(fd) && !is_fifo(fd, c"relative"));
        }
        // A read from it shows at once that it is closed.
        assert!(is_ready(NONE, PollFlags::IN));
        // SAFETY: this thread's.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    }

    #[test]
    fn other_threads_are_seen() {
        assert!(!has_one_thread(), "tests run in threads");
        let other = std::thread::spawn(thread).join().unwrap();
        assert!(other != thread() && thread() == thread());
    }

    #[test]
    fn pipes_with_names_are_seen() {
        let directory = std::env::temp_dir().join(format!("hasten-kernel-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let (pipe, file) = (directory.join("pipe"), directory.join("file"));
        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let plain = File::create(&file).unwrap();
        let inside = File::open(&directory).unwrap();
        assert!(is_fifo(libc::AT_FDCWD, &name));
        assert!(is_fifo(inside.as_raw_fd(), c"pipe"));
        assert!(!is_fifo(inside.as_raw_fd(), c"file") && !is_fifo(inside.as_raw_fd(), c"none"));
        assert!(is_file(plain.as_raw_fd()));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
