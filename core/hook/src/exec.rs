//! Stays loaded when a server replaces its own executable.
//!
//! nginx's binary upgrade (USR2) starts the new master with an environment of its own making, without LD_PRELOAD. A
//! program that executes its own file again gets back the variables that were set when it started; any other program
//! gets exactly the environment its caller passed.
//!
//! Every preload library hooks execve with this, because each may be the only one. Where several are loaded, the first
//! restores the whole list and the others find it in place.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// The prototype of execve(2).
pub type Execve = unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The variables to restore: the preload list and our own.
static INHERITED: OnceLock<Vec<CString>> = OnceLock::new();
static EXECUTABLE: OnceLock<CString> = OnceLock::new();

/// Records the environment and the executable as they are at start. Called from the library's constructor.
pub fn init() {
    INHERITED.get_or_init(|| {
        // Not through std, which would copy every variable.
        // SAFETY: a constructor runs before the program has threads that could change its environment.
        let lines = unsafe { environ };
        if lines.is_null() {
            return Vec::new();
        }
        // SAFETY: a null-terminated array of C strings.
        let lines = unsafe { entries(lines).map(|line| CStr::from_ptr(line)) };
        let ours = |line: &&CStr| {
            let line = line.to_bytes();
            line.starts_with(b"LD_PRELOAD=") || line.starts_with(b"HASTEN_") && line.contains(&b'=')
        };
        lines.filter(ours).map(CStr::to_owned).collect()
    });
    let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    if let Ok(path) = CString::new(executable.as_os_str().as_bytes()) {
        let _ = EXECUTABLE.set(path);
    }
}

/// The logic behind the hook.
///
/// # Safety
///
/// As for execve(2): C strings, and null-terminated arrays of C strings.
pub unsafe fn execve(
    original: Execve,
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    // SAFETY: the program's call: C strings and null-terminated arrays of C strings.
    unsafe {
        if envp.is_null() || !is_own_executable(path) || has_preload(envp) {
            return original(path, argv, envp);
        }
        // A forked child of a threaded program may not allocate; servers that
        // upgrade themselves fork from a single thread.
        let mut environment: Vec<*const c_char> = entries(envp).collect();
        environment.extend(INHERITED.get().into_iter().flatten().map(|line| line.as_ptr()));
        environment.push(null());
        original(path, argv, environment.as_ptr())
    }
}

/// # Safety
///
/// `path` is null or a C string.
unsafe fn is_own_executable(path: *const c_char) -> bool {
    let Some(own) = EXECUTABLE.get() else { return false };
    if path.is_null() {
        return false;
    }
    // SAFETY: C strings; realpath allocates its result, which is freed.
    unsafe {
        if CStr::from_ptr(path) == own.as_c_str() {
            return true;
        }
        let real = libc::realpath(path, core::ptr::null_mut());
        if real.is_null() {
            return false;
        }
        let same = CStr::from_ptr(real) == own.as_c_str();
        libc::free(real.cast());
        same
    }
}

/// # Safety
///
/// `envp` is as for [`entries`], and its entries are C strings.
unsafe fn has_preload(envp: *const *const c_char) -> bool {
    // SAFETY: as `entries`.
    unsafe { entries(envp).any(|line| CStr::from_ptr(line).to_bytes().starts_with(b"LD_PRELOAD=")) }
}

/// # Safety
///
/// `envp` is a null-terminated array, and stays one while the iterator is used.
unsafe fn entries(envp: *const *const c_char) -> impl Iterator<Item = *const c_char> {
    // SAFETY: the array is null-terminated and is not read past its end.
    (0..).map(move |i| unsafe { *envp.add(i) }).take_while(|line| !line.is_null())
}
