//! The memory behind a page: a sealed memfd, mapped shared.

use crate::control::{CONTROL_NAME, ControlPage};
use crate::layout::{PAGE_NAME, Page};
use libc::c_int;
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// Servers count on small descriptors; ours stay out of their way. No higher, because the kernel's table grows with the
/// highest.
const LOWEST_FD: c_int = 512;

/// Where to look from when the limit does not allow that: just below it, for what four descriptors need first (two
/// libraries, two pages), then further down, but not among the first without need.
const BELOW_LIMIT: [c_int; 3] = [4, 16, 64];
const LOWEST_FD_OF_FEW: c_int = 64;

/// Neither shrunk (a reader that maps it must not get SIGBUS), grown, nor
/// unsealed.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// What may be mapped shared.
///
/// # Safety
///
/// All-zero bytes are a valid value, and it consists of atomics alone, without padding: other processes write it, too.
pub(crate) unsafe trait Shared: Sized + 'static {
    /// Name of the memfd.
    const NAME: &'static CStr;
    /// Whether those who open the file may write it.
    const WRITABLE: bool;
}

// SAFETY: atomics only, as the layout's assertions and types say.
unsafe impl Shared for Page {
    const NAME: &'static CStr = PAGE_NAME;
    const WRITABLE: bool = false;
}

// SAFETY: as above.
unsafe impl Shared for ControlPage {
    const NAME: &'static CStr = CONTROL_NAME;
    const WRITABLE: bool = true;
}

/// A fresh page, the inode of its file, and a descriptor of it.
pub(crate) struct Mapped<T: 'static> {
    pub(crate) page: &'static T,
    pub(crate) inode: u64,
    fd: c_int,
}

/// Maps a new shared page, or `None` where the kernel, a limit or a sandbox
/// does not allow it. The descriptor stays open: it is how a reader without
/// root finds the page, in `/proc/PID/fd`.
pub(crate) fn map_new<T: Shared>() -> Option<Mapped<T>> {
    let fd = move_up(create_memfd(T::NAME)?);
    let page = map(fd);
    match page {
        Some(_) => seal(fd, T::WRITABLE),
        None => close(fd),
    }
    page.map(|page| Mapped { page, inode: inode(fd), fd })
}

impl<T> Mapped<T> {
    /// Takes back a page that nobody was given.
    pub(crate) fn discard(self) {
        close(self.fd);
        // SAFETY: the mapping that `map` made, which nobody else refers to: the page is given up with this value.
        unsafe { libc::munmap(std::ptr::from_ref(self.page).cast_mut().cast(), size_of::<T>()) };
    }
}

/// How large the mark of [`map_mark`] is: as nobody else's memory of this kind.
pub(crate) const MARK_SIZE: usize = 17 * 4096;

/// Shows readers that there could be no page, by a mapping in `/proc/PID/maps`: of shared memory that nobody can use. It
/// takes neither a descriptor nor memory, so it is to be had where a page is not, unless address space is what is short.
pub(crate) fn map_mark() {
    let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: at an address the kernel chooses, so nothing of ours is replaced.
    unsafe { libc::mmap(std::ptr::null_mut(), MARK_SIZE, libc::PROT_NONE, kind, -1, 0) };
}

fn create_memfd(name: &'static CStr) -> Option<c_int> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Hosts with vm.memfd_noexec=2 insist on the flag; kernels before 6.3 do
    // not know it.
    [flags | libc::MFD_NOEXEC_SEAL, flags].into_iter().find_map(|flags| {
        // SAFETY: the name is NUL-terminated; the call touches no other memory
        // of ours.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        (fd >= 0).then_some(fd)
    })
}

/// The same file at a high number, or where it was if the limit on open files
/// forbids that.
fn move_up(fd: c_int) -> c_int {
    let limit = soft_limit();
    let below = || BELOW_LIMIT.into_iter().map(|distance| limit.saturating_sub(distance));
    let not_among_the_first = below().filter(|place| *place >= LOWEST_FD_OF_FEW).chain([LOWEST_FD_OF_FEW]);
    let places = std::iter::once(LOWEST_FD).chain(not_among_the_first).chain(below());
    let high = places.filter(|place| (fd + 1..limit).contains(place)).find_map(|place| {
        // SAFETY: duplicates a descriptor that we own; no memory is involved.
        let high = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, place) };
        (high >= 0).then_some(high)
    });
    let Some(high) = high else { return fd };
    close(fd);
    high
}

/// One more than the highest descriptor that this process may have.
fn soft_limit() -> c_int {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: `limit` is a place for the answer, and all-zero bytes are one.
    let limit = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr());
        limit.assume_init().rlim_cur
    };
    c_int::try_from(limit).unwrap_or(c_int::MAX)
}

fn map<T: Shared>(fd: c_int) -> Option<&'static T> {
    const { assert!(align_of::<T>() <= 4096, "mmap aligns to memory pages only") };
    let size = size_of::<T>();
    // SAFETY: `fd` is our memfd. The mapping is fresh memory at an address the
    // kernel chooses, so nothing of ours is replaced.
    let address = unsafe {
        if libc::ftruncate(fd, size as libc::off_t) != 0 {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, fd, 0)
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has the size of T, is aligned to a memory page,
    // zero-filled (valid, says `Shared`) and never unmapped; other processes
    // that map it are only ever given atomics as well.
    Some(unsafe { &*address.cast::<T>() })
}

/// Best effort: without seals the page still counts, and our reader copies it
/// with `pread`, which a truncated file cannot hurt.
fn seal(fd: c_int, writable: bool) {
    // FUTURE_WRITE leaves our mapping (and those inherited through fork)
    // writable and makes the page read-only for everybody who opens it.
    let future = if writable { 0 } else { libc::F_SEAL_FUTURE_WRITE };
    for seals in [SEALS | future, SEALS] {
        // SAFETY: sets seals on a descriptor that we own; no memory is involved.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } == 0 {
            return;
        }
    }
}

/// The number by which others find the file; 0 where the kernel does not tell.
fn inode(fd: c_int) -> u64 {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is a place for the answer, and all-zero bytes are one.
    unsafe {
        libc::fstat(fd, status.as_mut_ptr());
        status.assume_init().st_ino
    }
}

fn close(fd: c_int) {
    // SAFETY: every caller owns `fd` and does not use it afterwards.
    unsafe { libc::close(fd) };
}
