//! The faults of the simulated libraries, for the tests of the engines and of whole servers.

/// Injected faults, as in `layout.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Injected {
    None,
    InitFailure,
    NoInstance,
    Slow,
    Hang,
    WrongBytes,
    Abort,
    Gone,
    Partial,
    QueueFull,
    Restarting,
    HangInit,
    TooLong,
}
