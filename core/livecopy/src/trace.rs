//! Threads of a process that are stopped by ptrace. Whatever happens to their holder, the kernel lets them go on.

use std::io::Error;

use libc::{c_int, c_void, pid_t};

/// As ptrace orders them: r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, the call, ip, cs, flags, sp, ss, …
pub(crate) type Registers = [u64; 27];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) id: pid_t,
    pub(crate) registers: Registers,
}

/// What a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Stopped,
    /// It made another process.
    Made(pid_t),
    /// A signal is about to reach it.
    Signal(c_int),
    Ended,
}

const OPTIONS: c_int = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;

/// As each C library declares it.
#[cfg(target_env = "musl")]
type Request = c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(request: Request, id: pid_t, address: usize, data: usize) -> Result<(), Error> {
    // SAFETY: none of the requests of this module without a buffer touches memory of this process.
    let result = unsafe { libc::ptrace(request, id, address as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Attaches without stopping; what the thread makes is attached from its first moment.
pub(crate) fn seize(id: pid_t) -> Result<(), Error> {
    request(libc::PTRACE_SEIZE, id, 0, OPTIONS as usize)
}

pub(crate) fn interrupt(id: pid_t) -> Result<(), Error> {
    request(libc::PTRACE_INTERRUPT, id, 0, 0)
}

pub(crate) fn go_on(id: pid_t, signal: c_int) -> Result<(), Error> {
    request(libc::PTRACE_CONT, id, 0, signal as usize)
}

pub(crate) fn let_go(id: pid_t, signal: c_int) {
    // A thread that ended meanwhile needs it no more.
    let _ = request(libc::PTRACE_DETACH, id, 0, signal as usize);
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn registers(id: pid_t) -> Result<Registers, Error> {
    let mut registers: Registers = [0; 27];
    // SAFETY: `registers` has the size and the layout of user_regs_struct, which the kernel fills.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGS,
            id,
            std::ptr::null_mut::<c_void>(),
            std::ptr::from_mut(&mut registers).cast::<c_void>(),
        )
    };
    if result == -1 { Err(Error::last_os_error()) } else { Ok(registers) }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn set_registers(id: pid_t, registers: &Registers) -> Result<(), Error> {
    // SAFETY: the kernel reads a user_regs_struct, whose size and layout `registers` has.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_SETREGS,
            id,
            std::ptr::null_mut::<c_void>(),
            std::ptr::from_ref(registers).cast::<c_void>(),
        )
    };
    if result == -1 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Other CPUs have other registers, and the instructions of `stub` are none of theirs; [`crate::check`] says so before anything is done.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn registers(_: pid_t) -> Result<Registers, Error> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn set_registers(_: pid_t, _: &Registers) -> Result<(), Error> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The next thing that a traced thread does.
pub(crate) fn wait(id: pid_t) -> Result<Event, Error> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one status.
        let result = unsafe { libc::waitpid(id, &raw mut status, libc::__WALL) };
        if result >= 0 {
            break;
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Event::Ended);
    }
    match status >> 16 {
        0 => Ok(Event::Signal(libc::WSTOPSIG(status))),
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            let mut made: libc::c_ulong = 0;
            // SAFETY: the kernel writes one number of this size.
            let result = unsafe {
                libc::ptrace(
                    libc::PTRACE_GETEVENTMSG,
                    id,
                    std::ptr::null_mut::<c_void>(),
                    std::ptr::from_mut(&mut made).cast::<c_void>(),
                )
            };
            if result == -1 { Err(Error::last_os_error()) } else { Ok(Event::Made(made as pid_t)) }
        }
        _ => Ok(Event::Stopped),
    }
}

/// Ends a traced process, and waits for it.
pub(crate) fn kill(id: pid_t) {
    // SAFETY: a signal to a process that is traced by this one, so that its number is still its own.
    unsafe { libc::kill(id, libc::SIGKILL) };
    while !matches!(wait(id), Ok(Event::Ended) | Err(_)) {}
}
