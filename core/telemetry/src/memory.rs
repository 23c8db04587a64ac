//! The memory behind a page: a sealed memfd, mapped shared.

use crate::layout::{PAGE_NAME, PAGE_SIZE, Page};
use libc::c_int;

/// Servers count on small descriptors; ours stays out of their way.
const LOWEST_FD: c_int = 512;

/// Neither shrunk (a reader that maps it must not get SIGBUS), grown, nor
/// unsealed.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Maps a new shared page, or `None` where the kernel, a limit or a sandbox
/// does not allow it. The descriptor stays open: it is how a reader without
/// root finds the page, in `/proc/PID/fd`.
pub(crate) fn map_new_page() -> Option<&'static Page> {
    let fd = move_up(create_memfd()?);
    let page = map(fd);
    match page {
        Some(_) => seal(fd),
        None => close(fd),
    }
    page
}

fn create_memfd() -> Option<c_int> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Hosts with vm.memfd_noexec=2 insist on the flag; kernels before 6.3 do
    // not know it.
    [flags | libc::MFD_NOEXEC_SEAL, flags].into_iter().find_map(|flags| {
        // SAFETY: PAGE_NAME is a NUL-terminated constant; the call touches no
        // other memory of ours.
        let fd = unsafe { libc::memfd_create(PAGE_NAME.as_ptr(), flags) };
        (fd >= 0).then_some(fd)
    })
}

/// The same file at a high number, or where it was if the limit on open files
/// forbids that.
fn move_up(fd: c_int) -> c_int {
    // SAFETY: duplicates a descriptor that we own; no memory is involved.
    let high = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, LOWEST_FD) };
    if high < 0 {
        return fd;
    }
    close(fd);
    high
}

fn map(fd: c_int) -> Option<&'static Page> {
    const { assert!(align_of::<Page>() <= 4096, "mmap aligns to memory pages only") };
    // SAFETY: `fd` is our memfd. The mapping is fresh memory at an address the
    // kernel chooses, so nothing of ours is replaced.
    let address = unsafe {
        if libc::ftruncate(fd, PAGE_SIZE as libc::off_t) != 0 {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), PAGE_SIZE, access, libc::MAP_SHARED, fd, 0)
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is PAGE_SIZE == size_of::<Page>() bytes, aligned to
    // a memory page, zero-filled (a valid Page: atomics only), never unmapped,
    // and other processes that map it are only ever given atomics as well.
    Some(unsafe { &*address.cast::<Page>() })
}

/// Best effort: without seals the page still counts, and our reader copies it
/// with `pread`, which a truncated file cannot hurt.
fn seal(fd: c_int) {
    // FUTURE_WRITE leaves our mapping (and those inherited through fork)
    // writable and makes the page read-only for everybody who opens it.
    for seals in [SEALS | libc::F_SEAL_FUTURE_WRITE, SEALS] {
        // SAFETY: sets seals on a descriptor that we own; no memory is involved.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } == 0 {
            return;
        }
    }
}

fn close(fd: c_int) {
    // SAFETY: every caller owns `fd` and does not use it afterwards.
    unsafe { libc::close(fd) };
}
