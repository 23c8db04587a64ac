//! Making a log.

use core::ffi::{CStr, c_char, c_int, c_uint};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hasten_logs::{names, place};
use hasten_telemetry::{Event, slot};

use crate::config::{self, Config};
use crate::start;
use crate::sys::{self, errno_neutral};

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;

/// The device must have so much room: a log that does not fit is better made at home.
const ROOM: u64 = 64 << 20;

/// # Safety
///
/// As for open(2). A caller may leave the mode out, which is then whatever the register holds; it is passed on.
pub(crate) unsafe fn open(original: Open, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the program's call.
    unsafe { opened(libc::AT_FDCWD, path, flags, mode, || original(path, flags, mode)) }
}

/// # Safety
///
/// As for openat(2); for the mode see [`open`].
pub(crate) unsafe fn openat(
    original: OpenAt,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the program's call.
    unsafe { opened(directory, path, flags, mode, || original(directory, path, flags, mode)) }
}

/// # Safety
///
/// As for creat(2).
pub(crate) unsafe fn creat(
    original: unsafe extern "C" fn(*const c_char, c_uint) -> c_int,
    path: *const c_char,
    mode: c_uint,
) -> c_int {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    // SAFETY: the program's call.
    unsafe { opened(libc::AT_FDCWD, path, flags, mode, || original(path, mode)) }
}

/// # Safety
///
/// As for open(2) without a mode: with `O_CREAT` the original ends the program.
pub(crate) unsafe fn open_2(
    original: unsafe extern "C" fn(*const c_char, c_int) -> c_int,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        let call = || original(path, flags);
        if flags & libc::O_CREAT != 0 { call() } else { opened(libc::AT_FDCWD, path, flags, 0, call) }
    }
}

/// # Safety
///
/// As for openat(2) without a mode; see [`open_2`].
pub(crate) unsafe fn openat_2(
    original: unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int,
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        let call = || original(directory, path, flags);
        if flags & libc::O_CREAT != 0 { call() } else { opened(directory, path, flags, 0, call) }
    }
}

/// # Safety
///
/// As for openat(2).
unsafe fn opened(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
    original: impl FnOnce() -> c_int,
) -> c_int {
    let Some(config) = config::get() else { return original() };
    if path.is_null() || start::is_sandboxed() || flags & (libc::O_CREAT | libc::O_NOFOLLOW) == 0 {
        return original();
    }
    // SAFETY: the program's C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    if flags & libc::O_NOFOLLOW != 0 {
        // SAFETY: the program's path.
        let place = unsafe { sys::place_of(directory, path) };
        if let Some(place) = place.filter(|_| flags & libc::O_EXCL == 0) {
            // To the program it is no link.
            // SAFETY: a C string.
            return unsafe { libc::open(place.as_ptr(), flags, mode) };
        }
    }
    let is_new = flags & libc::O_CREAT != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    if !is_new || flags & (libc::O_TMPFILE | libc::O_DIRECTORY) != 0 || !names::is_possible(name) {
        return original();
    }
    let log = Log { directory, path, bytes, name };
    // SAFETY: the program's path.
    match errno_neutral(|| unsafe { log.make(config, flags, mode) }) {
        Some(fd) => fd,
        None => original(),
    }
}

/// A file that may be a log.
struct Log<'a> {
    directory: c_int,
    path: *const c_char,
    bytes: &'a [u8],
    name: &'a [u8],
}

impl Log<'_> {
    /// The descriptor of the log on the fast device, with a link to it in its place; or nothing at all has happened.
    ///
    /// # Safety
    ///
    /// `path` is a C string.
    unsafe fn make(&self, config: &Config, flags: c_int, mode: c_uint) -> Option<c_int> {
        // SAFETY: C strings.
        unsafe {
            if exists(self.directory, self.path) || !self.is_log() {
                return None;
            }
            hasten_telemetry::start();
            let made = self.make_away(config, flags, mode);
            slot().event(if made.is_some() { Event::WalMade } else { Event::WalAtHome });
            made
        }
    }

    /// # Safety
    ///
    /// `path` is a C string.
    unsafe fn make_away(&self, config: &Config, flags: c_int, mode: c_uint) -> Option<c_int> {
        let fast = prepared(config)?;
        let home = sys::facts_of(self.directory, &self.parent()?)?;
        if !has_room(fast) || sys::facts_of(libc::AT_FDCWD, fast)?.st_dev == home.st_dev {
            return None;
        }
        let place = new_place(&config.directory, self.name)?;
        // SAFETY: C strings; on every way out but the last, what was made is removed.
        unsafe {
            let fd = libc::open(place.as_ptr(), flags | libc::O_CREAT | libc::O_EXCL, mode);
            if fd < 0 {
                return None;
            }
            if home.st_mode & libc::S_ISGID != 0 {
                // As the kernel does at home; where it may not, the group is the process's.
                libc::fchown(fd, libc::uid_t::MAX, home.st_gid);
            }
            // Both names before the program goes on: the log is as durable as one at home whose directory is synced.
            let is_linked = sys::sync_directory(libc::AT_FDCWD, fast)
                && libc::symlinkat(place.as_ptr(), self.directory, self.path) == 0;
            if is_linked && sys::sync_parent(self.directory, self.path) {
                return Some(fd);
            }
            if is_linked {
                libc::unlinkat(self.directory, self.path, 0);
            }
            libc::close(fd);
            libc::unlink(place.as_ptr());
            None
        }
    }

    fn parent(&self) -> Option<CString> {
        CString::new(sys::parent(self.bytes)).ok()
    }

    fn is_log(&self) -> bool {
        let parent = Path::new(OsStr::from_bytes(sys::parent(self.bytes)));
        let is_there = |witness: &str| {
            let path = CString::new(parent.join(witness).as_os_str().as_bytes());
            // SAFETY: a C string.
            path.is_ok_and(|path| unsafe { exists(self.directory, path.as_ptr()) })
        };
        names::kind(self.name, is_there).is_some()
    }
}

/// Whether there is anything of this name, be it a link to nothing.
///
/// # Safety
///
/// `path` is a C string.
unsafe fn exists(directory: c_int, path: *const c_char) -> bool {
    // SAFETY: as the contract. The call reads the path only; other errors count as existence.
    unsafe {
        libc::faccessat(directory, path, libc::F_OK, libc::AT_SYMLINK_NOFOLLOW) == 0
            || sys::errno() != libc::ENOENT
    }
}

/// The directory on the fast device, made at the first call; `None` if there can be none, or another thread is just making
/// it. Nobody waits: a child that was forked meanwhile would wait for a thread that it does not have.
fn prepared(config: &Config) -> Option<&'static CStr> {
    static FAST: OnceLock<Option<CString>> = OnceLock::new();
    static PREPARING: AtomicBool = AtomicBool::new(false);
    if FAST.get().is_none() && !PREPARING.swap(true, Relaxed) {
        let _ = FAST.set(prepare(config));
    }
    FAST.get()?.as_deref()
}

fn prepare(config: &Config) -> Option<CString> {
    let (named, fast) = (c_path(&config.named)?, c_path(&config.directory)?);
    if is_in_memory(&named) && !config.may_be_lost {
        hasten_telemetry::page().set_note("logs stay at home: HASTEN_WAL is in memory");
        return None;
    }
    // SAFETY: C strings.
    let is_new = unsafe { libc::mkdir(fast.as_ptr(), 0o700) } == 0;
    if !is_new && sys::errno() != libc::EEXIST || is_new && !sys::sync_directory(libc::AT_FDCWD, &named) {
        hasten_telemetry::page().set_note("logs stay at home: HASTEN_WAL cannot be written to");
        return None;
    }
    hasten_telemetry::page().set_note(&format!("new logs are in {}", config.directory.display()));
    Some(fast)
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// A new place in the directory of another, and that directory.
pub(crate) fn beside(place: &CStr) -> Option<(CString, CString)> {
    let place = Path::new(OsStr::from_bytes(place.to_bytes()));
    let directory = place.parent()?;
    Some((c_path(directory)?, new_place(directory, b"link")?))
}

fn new_place(directory: &Path, name: &[u8]) -> Option<CString> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // Process numbers come again, and so do numbers from zero; the time does not.
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    let time = (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64);
    let number = time.wrapping_add(NUMBER.fetch_add(1, Relaxed));
    c_path(&place::of(directory, name, std::process::id(), number))
}

fn has_room(fast: &CStr) -> bool {
    // SAFETY: a C string, and a structure that the call fills.
    unsafe {
        let mut facts: libc::statfs = core::mem::zeroed();
        libc::statfs(fast.as_ptr(), &raw mut facts) == 0
            && facts.f_bavail.saturating_mul(facts.f_bsize as u64) >= ROOM
    }
}

fn is_in_memory(path: &CStr) -> bool {
    const RAMFS: i64 = 0x8584_58f6;
    // SAFETY: as above.
    unsafe {
        let mut facts: libc::statfs = core::mem::zeroed();
        libc::statfs(path.as_ptr(), &raw mut facts) == 0 && [libc::TMPFS_MAGIC, RAMFS].contains(&facts.f_type)
    }
}
