//! Become another program and leave no trace of having been there.
//!
//! A program inherits from the one that executes it: ignored signals, the signal mask, open files. The Rust
//! runtime alters some of that before `main`, and [`std::process::Command`] resets more than the runtime
//! altered. [`exec`] restores what this process itself was given.

use std::ffi::{CString, OsStr, OsString, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Whether `SIGPIPE` was ignored when this process started.
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// A bit for each standard stream that was closed when this process started.
static CLOSED_STREAMS: AtomicU8 = AtomicU8::new(0);

const STANDARD_STREAMS: [c_int; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];

/// Runs before the Rust runtime: the loader calls the functions of this section before the entry point.
#[used]
// SAFETY: the section holds pointers to functions of this type, and `note` does not use the runtime.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: an all-zero sigaction is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is valid for writing; a null new action only asks.
    if unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), &mut action) } == 0 {
        SIGPIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
    for stream in STANDARD_STREAMS {
        // SAFETY: F_GETFD only asks.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            CLOSED_STREAMS.fetch_or(1 << stream, Ordering::Relaxed);
        }
    }
}

/// Replaces this process by `command`, its name looked up in `PATH` by the rules of `execvp`, with `environment`
/// changed: a value sets a variable, `None` removes it. If `file` is given, it is executed instead, and no shell is
/// tried if the kernel rejects it.
///
/// Returns only if that fails. Must be called while this process has a single thread.
pub fn exec(
    file: Option<&Path>,
    command: &[OsString],
    environment: &[(String, Option<OsString>)],
) -> io::Error {
    let arguments: Result<Vec<CString>, _> =
        command.iter().map(|word| CString::new(word.as_bytes())).collect();
    let Ok(arguments) = arguments else {
        return io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a zero byte");
    };
    let Some(program) = arguments.first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    };
    let Ok(file) = file.map(|file| CString::new(file.as_os_str().as_bytes())).transpose() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "the path holds a zero byte");
    };
    for (name, value) in environment {
        set_variable(name, value.as_deref());
    }
    restore();
    let pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
    // SAFETY: `program` and `file` are C strings and `pointers` a null-terminated array of C strings; all outlive the call.
    unsafe {
        match &file {
            None => libc::execvp(program.as_ptr(), pointers.as_ptr()),
            Some(file) => libc::execv(file.as_ptr(), pointers.as_ptr()),
        }
    };
    let error = io::Error::last_os_error();
    hide_again();
    error
}

/// Restricts this thread, and so the command that it becomes, to these CPUs.
pub fn keep_to_cpus(cpus: &[usize]) -> io::Result<()> {
    const BITS: usize = u64::BITS as usize;
    let mut mask = vec![0u64; cpus.iter().max().map_or(0, |cpu| cpu / BITS + 1)];
    for cpu in cpus {
        mask[cpu / BITS] |= 1 << (cpu % BITS);
    }
    // SAFETY: the mask is valid for reading for as many bytes as are given; the kernel takes masks of any length, and 0
    // is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&mask[..]), mask.as_ptr().cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Denies transparent huge pages to this process, to the command that it becomes, and to what that starts.
pub fn forbid_huge_pages() -> io::Result<()> {
    // SAFETY: this option takes a flag and three zeros, and no pointer.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_variable(name: &str, value: Option<&OsStr>) {
    match value {
        // SAFETY: the caller of `exec` promises a single thread, so nobody reads the environment meanwhile.
        Some(value) => unsafe { std::env::set_var(name, value) },
        // SAFETY: as above.
        None => unsafe { std::env::remove_var(name) },
    }
}

fn restore() {
    if !SIGPIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: the default action needs no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    for stream in closed_streams() {
        // SAFETY: the runtime opened /dev/null there; a later write to it gets EBADF, as it will in the command.
        unsafe { libc::close(stream) };
    }
}

/// After a failed `execvp`, so that reporting it behaves as before.
fn hide_again() {
    for _ in closed_streams() {
        // SAFETY: the path is a C string; the lowest free descriptors are the ones that `restore` closed.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
    // SAFETY: ignoring a signal needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

fn closed_streams() -> impl Iterator<Item = c_int> {
    let closed = CLOSED_STREAMS.load(Ordering::Relaxed);
    STANDARD_STREAMS.into_iter().filter(move |stream| closed & (1 << stream) != 0)
}
