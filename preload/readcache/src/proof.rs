//! Why a block that was kept is what the file holds now.
//!
//! The identity of a content is the file's device, inode, generation, size, and the times of its last change
//! ([`Identity`]). Every way to change a byte of a file on the supported file systems first sets its change time
//! (`ctime`), which no program can choose: `write` and its relatives before they copy, a shared mapping when a page of it
//! is first written to, truncation and allocation within the same operation. Three things could still make two contents
//! share an identity:
//!
//! - *The clock is coarse.* Two changes within one tick of it (at most 10 ms, a second on old file systems) get the same
//!   time. So no file is accepted that has changed within the last [`SETTLED_S`] seconds: the next change gets another
//!   time.
//! - *A page that is mapped for writing* is written to again without a fault, hence without a new time. So a file is
//!   accepted only if nobody has it open for writing or mapped so, which the kernel says by granting a lease for
//!   reading. Whoever opens it afterwards faults at the first write. The lease is returned at once.
//! - *A crash of the machine* may keep data and lose the time. The store's tags contain the boot id.
//!
//! So once a file has been accepted under an identity, all bytes that anybody can read from it while it has that
//! identity are the same ones. A read from the cache is right if the identity was determined during the call; a block may
//! be kept if the identity is the same before and after it was read.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hasten_blocks::{FileTag, Identity, Store};
use hasten_guard::clock;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, StatxAttributes, StatxFlags, fstat, fstatfs, open, statx,
};

use crate::fds::Mark;

/// Seconds since the last change.
const SETTLED_S: i64 = 2;

/// Local file systems of which all of the above is known from their source: ext2, ext3 and ext4, XFS, Btrfs, F2FS.
const KNOWN: [i64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];

const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;
const F_SETSIG: libc::c_int = 10;

/// A file as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Without the generation.
    identity: Identity,
}

impl Facts {
    /// `None` if it is no file.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        let facts = fstat(fd).ok()?;
        (FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile)
            .then(|| Self { identity: identity(&facts) })
    }

    pub(crate) fn size(&self) -> u64 {
        self.identity.size
    }

    /// Whether its last change is so long ago. A time in the future is none that the clock gave.
    fn is_settled(&self, seconds: i64) -> bool {
        let now = (clock::time_of_day() / 1_000_000_000) as i64;
        let last = self.identity.changed.0.max(self.identity.modified.0);
        now.checked_sub(last).is_some_and(|age| age > seconds)
    }
}

fn identity(facts: &Stat) -> Identity {
    Identity {
        device: facts.st_dev,
        inode: facts.st_ino,
        generation: 0,
        size: facts.st_size as u64,
        modified: (facts.st_mtime, facts.st_mtime_nsec as i64),
        changed: (facts.st_ctime, facts.st_ctime_nsec as i64),
    }
}

/// Why a file is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Perhaps later: it has just changed, or somebody may write to it.
    Now,
    /// Not while it is the same file.
    ForGood,
}

/// The tag of the file's content, if it is accepted.
pub(crate) fn accept(
    store: &Store,
    fd: BorrowedFd<'_>,
    facts: &Facts,
    mark: Mark,
    stable: Option<u32>,
) -> Result<FileTag, Refusal> {
    let known = store.tag(&facts.identity);
    let generation = match ACCEPTED.find(known) {
        Some(generation) => generation,
        None => {
            let second = clock::boot_ns() / 1_000_000_000;
            if REFUSED.has(known, second) {
                return Err(Refusal::Now);
            }
            let seconds = if mark.is_named() { SETTLED_S } else { SETTLED_S.max(stable.unwrap_or(0).into()) };
            let generation = prove(fd, facts, seconds).inspect_err(|_| REFUSED.add(known, second))?;
            ACCEPTED.add(known, generation);
            generation
        }
    };
    Ok(store.tag(&Identity { generation, ..facts.identity }))
}

/// The generation of a file to which the argument above applies.
fn prove(fd: BorrowedFd<'_>, facts: &Facts, seconds: i64) -> Result<u64, Refusal> {
    let is_known = |kind| KNOWN.contains(&kind);
    if !fstatfs(fd).is_ok_and(|system| is_known(system.f_type)) || is_encrypted(fd) {
        return Err(Refusal::ForGood);
    }
    if !facts.is_settled(seconds) {
        return Err(Refusal::Now);
    }
    let generation = generation(fd).ok_or(Refusal::ForGood)?;
    // In this order: what is changed from the lease on changes the facts.
    let is_proven = has_no_writer(fd, facts) && Facts::of(fd) == Some(*facts);
    if is_proven { Ok(generation) } else { Err(Refusal::Now) }
}

/// Whether the file system encrypts the file, or does not say: the store would hold its content in the clear.
fn is_encrypted(fd: BorrowedFd<'_>) -> bool {
    let facts = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    facts.map_or(true, |facts| facts.stx_attributes.contains(StatxAttributes::ENCRYPTED))
}

fn generation(fd: BorrowedFd<'_>) -> Option<u64> {
    // Declared with a `long`, of which the kernel writes an `int`.
    let mut generation = 0i64;
    // SAFETY: it writes no more than that.
    let got = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_GETVERSION, &raw mut generation) };
    (got == 0).then_some(generation as u64)
}

/// Whether nobody has the file open for writing, or mapped so.
///
/// The lease is taken on a description of our own, because those of the program may have leases and owners. Somebody may
/// open the file for writing in the moment in which we have it: then the kernel lets them wait for us, and sends us a
/// signal, for which we choose one that is ignored by default.
fn has_no_writer(fd: BorrowedFd<'_>, facts: &Facts) -> bool {
    let Some(own) = reopen(fd) else { return false };
    if Facts::of(std::os::fd::AsFd::as_fd(&own)).as_ref() != Some(facts) {
        return false;
    }
    let raw = own.as_raw_fd();
    // SAFETY: our own descriptor; these commands take numbers.
    unsafe {
        libc::fcntl(raw, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(raw, libc::F_SETLEASE, libc::F_RDLCK) == 0
            && libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}

/// Another description of the same file.
fn reopen(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let (mut number, mut digits, mut count) = (fd.as_raw_fd(), [0; 10], 0);
    while count == 0 || number > 0 {
        digits[count] = b'0' + (number % 10) as u8;
        number /= 10;
        count += 1;
    }
    for (i, digit) in digits[..count].iter().rev().enumerate() {
        path[14 + i] = *digit;
    }
    let path = core::ffi::CStr::from_bytes_until_nul(&path).ok()?;
    open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).ok()
}

/// Contents that were accepted before, so that each is proven once.
static ACCEPTED: Accepted = Accepted { places: [const { Place::new() }; Accepted::COUNT] };

/// Contents that were refused within this second: a proof takes ten system calls, and may fail at each read.
static REFUSED: Refused = Refused([const { AtomicU64::new(0) }; Refused::COUNT]);

struct Refused([AtomicU64; Self::COUNT]);

impl Refused {
    const COUNT: usize = 512;

    fn has(&self, file: FileTag, second: u64) -> bool {
        let (place, word) = self.of(file, second);
        place.load(Relaxed) == word
    }

    fn add(&self, file: FileTag, second: u64) {
        let (place, word) = self.of(file, second);
        place.store(word, Relaxed);
    }

    /// A collision keeps a file out of the cache for a second.
    fn of(&self, file: FileTag, second: u64) -> (&AtomicU64, u64) {
        let [first, other] = file.words();
        (&self.0[first as usize % Self::COUNT], bound(other, second))
    }
}

struct Accepted {
    places: [Place; Self::COUNT],
}

/// Written without a lock: what is mixed from two is found for neither.
struct Place {
    words: [AtomicU64; 2],
    generation: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; 2], generation: AtomicU64::new(0) }
    }
}

impl Accepted {
    const COUNT: usize = 2048;

    fn find(&self, file: FileTag) -> Option<u64> {
        let [first, second] = file.words();
        let place = &self.places[first as usize % Self::COUNT];
        let generation = place.generation.load(Relaxed);
        let is_it = place.words[0].load(Relaxed) == first
            && place.words[1].load(Relaxed) == bound(second, generation)
            && first != 0;
        is_it.then_some(generation)
    }

    fn add(&self, file: FileTag, generation: u64) {
        let [first, second] = file.words();
        let place = &self.places[first as usize % Self::COUNT];
        place.words[0].store(first, Relaxed);
        place.words[1].store(bound(second, generation), Relaxed);
        place.generation.store(generation, Relaxed);
    }
}

/// A word with which only this generation goes.
fn bound(word: u64, generation: u64) -> u64 {
    word ^ (generation + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_is_found_with_its_generation() {
        let accepted = Accepted { places: [const { Place::new() }; Accepted::COUNT] };
        let tags = |n| Identity { inode: n, ..Identity::default() }.tag([1, 2]);
        for n in 0..100 {
            assert_eq!(accepted.find(tags(n)), None);
            accepted.add(tags(n), n);
            assert_eq!(accepted.find(tags(n)), Some(n));
        }
        accepted.places[tags(5).words()[0] as usize % Accepted::COUNT].generation.store(99, Relaxed);
        assert_eq!(accepted.find(tags(5)), None, "a mixture");
    }

    #[test]
    fn what_was_refused_is_looked_at_again_in_the_next_second() {
        let refused = Refused([const { AtomicU64::new(0) }; Refused::COUNT]);
        let [file, other] = [1, 2].map(|n| Identity { inode: n, ..Identity::default() }.tag([1, 2]));
        assert!(!refused.has(file, 7));
        refused.add(file, 7);
        assert!(refused.has(file, 7) && !refused.has(file, 8) && !refused.has(other, 7));
    }

    #[test]
    fn a_time_in_the_future_is_not_settled() {
        let now = (clock::time_of_day() / 1_000_000_000) as i64;
        let at = |changed| Facts { identity: Identity { changed: (changed, 0), ..Identity::default() } };
        assert!(at(now - 60).is_settled(SETTLED_S));
        assert!(!at(now).is_settled(SETTLED_S) && !at(now + 60).is_settled(SETTLED_S));
    }
}
