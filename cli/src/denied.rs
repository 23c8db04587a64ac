//! Processes that this user may not inspect.

/// Who may: not even root, if the process belongs to somebody outside its container.
pub(crate) const CURE: &str =
    "run it with sudo; if you are root, leave the container or give it CAP_SYS_PTRACE";

/// The same for users who are root already.
pub(crate) const ROOT: &str = "if you are root, leave the container or give it CAP_SYS_PTRACE";

/// `/proc`, where processes are found, is missing: usually in a change root.
pub(crate) const NO_PROC: &str = "/proc is not mounted, and processes are found there";

/// The command that mounts it.
pub(crate) const MOUNT_PROC: &str = "`mount -t proc proc /proc`";

pub(crate) fn has_proc() -> bool {
    std::path::Path::new("/proc/self").exists()
}

/// How many there are, appended to a sentence that would otherwise be wrong.
pub(crate) fn note(denied: usize) -> String {
    match denied {
        0 => String::new(),
        1 => " (1 process may not be inspected by this user)".to_owned(),
        _ => format!(" ({denied} processes may not be inspected by this user)"),
    }
}
