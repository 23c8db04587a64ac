//! Processes that this user may not look into.

/// Who may: root may not either where the process belongs to somebody outside of its container.
pub(crate) const CURE: &str =
    "run it with sudo; if you are root, leave the container or give it CAP_SYS_PTRACE";

/// The same for those who are root already.
pub(crate) const ROOT: &str = "if you are root, leave the container or give it CAP_SYS_PTRACE";

/// `/proc`, in which processes are found, is not there: in a change root, as a rule.
pub(crate) const NO_PROC: &str = "/proc is not mounted, and processes are found there";

/// What brings it.
pub(crate) const MOUNT_PROC: &str = "`mount -t proc proc /proc`";

pub(crate) fn has_proc() -> bool {
    std::path::Path::new("/proc/self").exists()
}

/// How many there are, behind a sentence that would be wrong if it did not say so.
pub(crate) fn note(denied: usize) -> String {
    match denied {
        0 => String::new(),
        1 => " (1 process may not be looked into by this user)".to_owned(),
        _ => format!(" ({denied} processes may not be looked into by this user)"),
    }
}
