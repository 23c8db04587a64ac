//! The memory behind a page: a sealed memfd, mapped shared.
//!
//! A page may be created while another preloaded library holds locks that its wrappers of the C library would take
//! again, for example while it forks. So the kernel is called directly.

use crate::control::{CONTROL_NAME, ControlPage};
use crate::layout::{PAGE_NAME, Page};
use rustix::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};
use std::ffi::{CStr, c_int};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

/// Servers rely on small descriptors; ours stay out of their way. They are no higher, because the kernel's table grows
/// with the highest.
const LOWEST_FD: c_int = 512;

/// Where to look if the limit does not allow that: just below it, with room for four descriptors (two libraries, two
/// pages), then further down, but among the lowest only if necessary.
const BELOW_LIMIT: [c_int; 3] = [4, 16, 64];
const LOWEST_FD_OF_FEW: c_int = 64;

/// The file cannot be shrunk (a reader that maps it must not get SIGBUS), grown, or unsealed.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Types that may be mapped shared.
///
/// # Safety
///
/// All-zero bytes are a valid value, and it consists only of atomics, without padding: other processes write it, too.
pub(crate) unsafe trait Shared: Sized + 'static {
    /// Name of the memfd.
    const NAME: &'static CStr;
    /// Whether processes that open the file may write it.
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

/// A new page, the inode of its file, and a descriptor for it.
pub(crate) struct Mapped<T: 'static> {
    pub(crate) page: &'static T,
    pub(crate) inode: u64,
    fd: File,
}

/// A descriptor that stays open, unless it is [closed](File::close).
struct File(ManuallyDrop<OwnedFd>);

impl File {
    fn new(fd: OwnedFd) -> Self {
        Self(ManuallyDrop::new(fd))
    }

    /// Closes through the kernel, because the standard library would call the C library.
    fn close(self) {
        let fd = ManuallyDrop::into_inner(self.0).into_raw_fd();
        // SAFETY: it was ours, and is not used afterwards.
        unsafe { rustix::io::close(fd) };
    }

    fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

/// Maps a new shared page; `None` if the kernel, a limit or a sandbox does not allow it. The descriptor stays open:
/// through it a reader without root finds the page, in `/proc/PID/fd`.
pub(crate) fn map_new<T: Shared>() -> Option<Mapped<T>> {
    let fd = move_up(create_memfd(T::NAME)?);
    let Some(page) = map(&fd) else {
        fd.close();
        return None;
    };
    seal(&fd, T::WRITABLE);
    Some(Mapped { page, inode: inode(&fd), fd })
}

impl<T> Mapped<T> {
    /// Removes a page that was never handed out.
    pub(crate) fn discard(self) {
        self.fd.close();
        // SAFETY: the mapping that `map` made, which has no other references: the page is given up with this value.
        let _ = unsafe { munmap(std::ptr::from_ref(self.page).cast_mut().cast(), size_of::<T>()) };
    }
}

/// The size of the mark of [`map_mark`], which no other memory of this kind has.
pub(crate) const MARK_SIZE: usize = 17 * 4096;

/// Shows readers that the page could not be created, by a mapping in `/proc/PID/maps` of inaccessible shared memory. It
/// takes neither a descriptor nor memory, so it is available where a page is not, unless address space itself is short.
pub(crate) fn map_mark() {
    let kind = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: at an address the kernel chooses, so nothing of ours is replaced.
    let _ = unsafe { mmap_anonymous(null_mut(), MARK_SIZE, ProtFlags::empty(), kind) };
}

fn create_memfd(name: &'static CStr) -> Option<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Hosts with vm.memfd_noexec=2 require the flag; kernels before 6.3 do not know it.
    let fd =
        [flags | MemfdFlags::NOEXEC_SEAL, flags].into_iter().find_map(|flags| memfd_create(name, flags).ok());
    fd.map(File::new)
}

/// The same file at a high number, or at its old number if the limit on open files forbids that.
fn move_up(fd: File) -> File {
    let limit = soft_limit();
    let below = || BELOW_LIMIT.into_iter().map(|distance| limit.saturating_sub(distance));
    let not_among_the_first = below().filter(|place| *place >= LOWEST_FD_OF_FEW).chain([LOWEST_FD_OF_FEW]);
    let places = std::iter::once(LOWEST_FD).chain(not_among_the_first).chain(below());
    let high = places
        .filter(|place| (fd.number() + 1..limit).contains(place))
        .find_map(|place| fcntl_dupfd_cloexec(&*fd.0, place).ok());
    let Some(high) = high else { return fd };
    fd.close();
    File::new(high)
}

/// One more than the highest descriptor this process may have.
fn soft_limit() -> c_int {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| c_int::try_from(limit).ok()).unwrap_or(c_int::MAX)
}

fn map<T: Shared>(fd: &File) -> Option<&'static T> {
    const { assert!(align_of::<T>() <= 4096, "mmap aligns to memory pages only") };
    let size = size_of::<T>();
    if !may_be_so_long(size as u64) {
        return None;
    }
    ftruncate(&*fd.0, size as u64).ok()?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: `fd` is our memfd. The mapping is fresh memory at an address the
    // kernel chooses, so nothing of ours is replaced.
    let address = unsafe { mmap(null_mut(), size, access, MapFlags::SHARED, &*fd.0, 0) }.ok()?;
    // SAFETY: the mapping has the size of T, is aligned to a memory page, zero-filled (valid, says `Shared`) and never
    // unmapped; other processes that map it only get atomics as well.
    Some(unsafe { &*address.cast::<T>() })
}

/// Whether `ulimit -f` allows a file of this length. The limit applies to memory files too, and exceeding it is not only
/// an error: it raises SIGXFSZ, which ends the program.
fn may_be_so_long(length: u64) -> bool {
    getrlimit(Resource::Fsize).current.is_none_or(|limit| length <= limit)
}

/// Best effort: without seals the page still counts, and our reader copies it with `pread`, which a truncated file
/// cannot hurt.
fn seal(fd: &File, writable: bool) {
    // FUTURE_WRITE leaves our mapping (and those inherited through fork) writable and makes the page read-only for
    // everyone who opens it.
    let future = if writable { SealFlags::empty() } else { SealFlags::FUTURE_WRITE };
    let _ = fcntl_add_seals(&*fd.0, SEALS | future).or_else(|_| fcntl_add_seals(&*fd.0, SEALS));
}

/// The number by which others find the file; 0 if the kernel does not give one.
fn inode(fd: &File) -> u64 {
    fstat(&*fd.0).map_or(0, |status| status.st_ino)
}

/// Whether a descriptor is a listening socket; the error says what else it is.
pub(crate) fn is_listening(fd: c_int) -> rustix::io::Result<bool> {
    // SAFETY: not -1, as the caller counts from zero. The kernel itself determines whether it is open.
    rustix::net::sockopt::socket_acceptconn(unsafe { BorrowedFd::borrow_raw(fd) })
}
