//! Reads.

use core::ffi::c_int;
use core::ops::Range;
use std::os::fd::BorrowedFd;

use hasten_blocks::trial::Side;
use hasten_blocks::{Answer, BLOCK, FileTag};
use hasten_guard::clock;
use hasten_telemetry::{Event, slot};
use libc::{iovec, off_t, size_t, ssize_t};

use crate::cache::{self, Cache};
use crate::fds::{self, Mark};
use crate::hooks::original;
use crate::proof::{self, Facts, Refusal};
use crate::room::{self, Edges, Room};
use crate::{config, start};

type Pread = unsafe extern "C" fn(c_int, *mut u8, size_t, off_t) -> ssize_t;
type PreadChecked = unsafe extern "C" fn(c_int, *mut u8, size_t, off_t, size_t) -> ssize_t;
type Preadv = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
type Preadv2 = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t, c_int) -> ssize_t;
type Read = unsafe extern "C" fn(c_int, *mut u8, size_t) -> ssize_t;
type ReadChecked = unsafe extern "C" fn(c_int, *mut u8, size_t, size_t) -> ssize_t;

/// Longer reads are scans, compactions and copies, which a cache would only slow down.
const LONGEST: usize = 256 << 10;

/// What `O_DIRECT` asks for, on most disks.
const SECTOR: usize = 512;

/// # Safety
///
/// As for pread(2).
pub(crate) unsafe fn pread(
    original: Pread,
    fd: c_int,
    buffer: *mut u8,
    count: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the program's call.
    unsafe {
        match fds::mark_of(fd) {
            None => original(fd, buffer, count, offset),
            Some(mark) => Request { fd, buffer, count, offset, mark }.answer(original),
        }
    }
}

/// # Safety
///
/// As for pread(2), with the size of the buffer, which the original compares.
pub(crate) unsafe fn pread_chk(
    checked: PreadChecked,
    fd: c_int,
    buffer: *mut u8,
    count: size_t,
    offset: off_t,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's call; a count that fits needs no check.
    unsafe {
        if count > size || fds::mark_of(fd).is_none() {
            return checked(fd, buffer, count, offset, size);
        }
        pread(original::pread64.get(), fd, buffer, count, offset)
    }
}

/// # Safety
///
/// As for preadv(2).
pub(crate) unsafe fn preadv(
    original: Preadv,
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the program's call; with a count of 1 there is one buffer.
    unsafe {
        if count != 1 || fds::mark_of(fd).is_none() || buffers.is_null() {
            return original(fd, buffers, count, offset);
        }
        let buffer = &*buffers;
        pread(original::pread64.get(), fd, buffer.iov_base.cast(), buffer.iov_len, offset)
    }
}

/// # Safety
///
/// As for preadv2(2).
pub(crate) unsafe fn preadv2(
    original: Preadv2,
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's call; with a count of 1 there is one buffer.
    unsafe {
        if count != 1 || flags != 0 || offset < 0 || fds::mark_of(fd).is_none() || buffers.is_null() {
            return original(fd, buffers, count, offset, flags);
        }
        let buffer = &*buffers;
        pread(original::pread64.get(), fd, buffer.iov_base.cast(), buffer.iov_len, offset)
    }
}

/// # Safety
///
/// As for read(2), with the size of the buffer, which the original compares.
pub(crate) unsafe fn read_chk(
    checked: ReadChecked,
    fd: c_int,
    buffer: *mut u8,
    count: size_t,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's call; a count that fits needs no check.
    unsafe {
        if count > size || fds::mark_of(fd).is_none() {
            return checked(fd, buffer, count, size);
        }
        read(original::read.get(), fd, buffer, count)
    }
}

/// A read at the descriptor's position is one at an offset, after which the position moves. Others may read through the
/// same description: the bytes are ours only if nobody has moved it meanwhile.
///
/// # Safety
///
/// As for read(2).
pub(crate) unsafe fn read(original: Read, fd: c_int, buffer: *mut u8, count: size_t) -> ssize_t {
    // SAFETY: the program's call.
    unsafe {
        let Some(mark) = fds::mark_of(fd) else { return original(fd, buffer, count) };
        if count > LONGEST || start::is_sandboxed() {
            return original(fd, buffer, count);
        }
        let errno = *libc::__errno_location();
        let position = libc::lseek(fd, 0, libc::SEEK_CUR);
        let pread = original::pread64.get();
        let request = Request { fd, buffer, count, offset: position, mark };
        let got = if position < 0 { -1 } else { request.answer(pread) };
        *libc::__errno_location() = errno;
        if got <= 0 {
            return original(fd, buffer, count);
        }
        let begin = libc::lseek(fd, got as off_t, libc::SEEK_CUR) - got as off_t;
        if begin == position {
            return got;
        }
        // What lies between is another reader's; from `begin` on it is ours.
        let again = pread(fd, buffer, got as size_t, begin);
        libc::lseek(fd, (again.max(0) - got) as off_t, libc::SEEK_CUR);
        again
    }
}

/// Through the page cache, or past it.
enum Way {
    Buffered,
    Direct,
}

/// A read at an offset from a descriptor that is worth a look.
struct Request {
    fd: c_int,
    buffer: *mut u8,
    count: size_t,
    offset: off_t,
    mark: Mark,
}

impl Request {
    /// # Safety
    ///
    /// As for pread(2), with `original`, and the request's fields as arguments.
    unsafe fn answer(&self, original: Pread) -> ssize_t {
        // SAFETY: the program's call.
        unsafe {
            let whole = || original(self.fd, self.buffer, self.count, self.offset);
            let is_usual = self.count > 0 && self.count <= LONGEST && self.offset >= 0 && self.fd >= 0;
            if !is_usual || start::is_sandboxed() {
                return whole();
            }
            let errno = *libc::__errno_location();
            let answer = self.way().and_then(|way| match way {
                Way::Buffered => self.in_memory().or_else(|| self.by_cache(original)),
                Way::Direct => self.by_cache(original),
            });
            // Unless the original has just set it.
            if answer.is_none_or(|got| got >= 0) {
                *libc::__errno_location() = errno;
            }
            answer.unwrap_or_else(whole)
        }
    }

    /// How the descriptor reads now; `None` if it cannot, or not what is asked for.
    fn way(&self) -> Option<Way> {
        // SAFETY: the command reads flags of a descriptor, whatever it is.
        let flags = unsafe { libc::fcntl(self.fd, libc::F_GETFL) };
        if flags < 0 || flags & libc::O_PATH != 0 || flags & libc::O_ACCMODE == libc::O_WRONLY {
            return None;
        }
        if flags & libc::O_DIRECT == 0 {
            return Some(Way::Buffered);
        }
        // Past the page cache, the kernel refuses what is not aligned to sectors.
        let parts = self.buffer as usize | self.count | self.offset as usize;
        parts.is_multiple_of(SECTOR).then_some(Way::Direct)
    }

    /// From the page cache, without a wait, if everything is there.
    ///
    /// # Safety
    ///
    /// As for pread(2).
    unsafe fn in_memory(&self) -> Option<ssize_t> {
        // SAFETY: the program's buffer.
        let got = unsafe { resident(self.fd, self.buffer, self.count, self.offset) };
        (got == self.count as ssize_t).then_some(got)
    }

    /// # Safety
    ///
    /// As for pread(2).
    unsafe fn by_cache(&self, original: Pread) -> Option<ssize_t> {
        let config = config::get()?;
        // SAFETY: a descriptor that the program is using; if it is none, the next call says so.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        let Some(facts) = Facts::of(fd) else {
            fds::set(self.fd, None);
            return None;
        };
        let begin = self.offset as u64;
        let end = facts.size().min(begin.checked_add(self.count as u64)?);
        if begin >= end {
            return None;
        }
        let cache = cache::get(config)?;
        let file = match proof::accept(&cache.store, fd, &facts, self.mark, config.stable) {
            Ok(file) => file,
            Err(refusal) => {
                if refusal == Refusal::ForGood {
                    fds::set(self.fd, None);
                }
                return None;
            }
        };
        let known = Known { fd, facts, file, range: begin..end };
        // SAFETY: as this function.
        unsafe { self.either(cache, &known, original) }
    }

    /// # Safety
    ///
    /// As for pread(2).
    unsafe fn either(&self, cache: &Cache, known: &Known<'_>, original: Pread) -> Option<ssize_t> {
        let side = cache.side()?;
        let mut room = room::take()?;
        let permit = cache.admit()?;
        let begin = clock::now();
        let len = (known.range.end - known.range.start) as usize;
        let found = if side == Side::Cache {
            // SAFETY: the program's buffer, which has room for what it asks for, and which it leaves to this call.
            let buffer = unsafe { core::slice::from_raw_parts_mut(self.buffer, len) };
            load(cache, &mut room, known, buffer)
        } else {
            known
                .blocks()
                .map(|block| cache.store.has(&mut room.cursor, known.file, block))
                .try_fold(true, |all, has| Ok(all && has?))
        };
        let is_found = match found {
            Ok(is_found) => is_found,
            Err(error) => {
                cache.failed(permit, &error);
                return None;
            }
        };
        cache.succeeded(permit);
        if is_found && side == Side::Cache {
            cache.report(side, clock::now() - begin);
            slot().event_n(Event::ReadCacheHitBytes, len as u64);
            return Some(len as ssize_t);
        }
        // SAFETY: as this function.
        Some(unsafe { self.disk(cache, &mut room, known, is_found, original) })
    }

    /// # Safety
    ///
    /// As for pread(2).
    unsafe fn disk(
        &self,
        cache: &Cache,
        room: &mut Room,
        known: &Known<'_>,
        is_found: bool,
        original: Pread,
    ) -> ssize_t {
        let len = (known.range.end - known.range.start) as usize;
        let begin = clock::now();
        let keeps = !is_found && cache.may_keep(len as u64);
        // SAFETY: the program's buffer.
        let is_whole = keeps && unsafe { room.edges.read(known, self.buffer) };
        let got = if is_whole {
            len as ssize_t
        } else {
            // SAFETY: the program's call.
            unsafe { original(self.fd, self.buffer, self.count, self.offset) }
        };
        let took = clock::now() - begin;
        cache.share.earn(took);
        if is_found {
            cache.report(Side::Disk, took);
        }
        if got > 0 {
            slot().event_n(Event::ReadCacheMissBytes, got as u64);
        }
        if is_whole {
            // SAFETY: the kernel has just filled so much of the program's buffer.
            let data = unsafe { core::slice::from_raw_parts(self.buffer, len) };
            keep(cache, room, known, data);
        }
        got
    }
}

/// A part of a file whose content has been accepted.
struct Known<'a> {
    fd: BorrowedFd<'a>,
    facts: Facts,
    file: FileTag,
    range: Range<u64>,
}

impl Known<'_> {
    fn blocks(&self) -> Range<u64> {
        self.range.start / BLOCK as u64..self.range.end.div_ceil(BLOCK as u64)
    }

    /// The part of a block that the range has.
    fn part(&self, block: u64) -> Range<usize> {
        let begin = block * BLOCK as u64;
        let within = |at: u64| at.clamp(begin, begin + BLOCK as u64) - begin;
        within(self.range.start) as usize..within(self.range.end) as usize
    }

    /// Where its first block begins and its last one ends.
    fn whole(&self) -> (u64, u64) {
        let blocks = self.blocks();
        (blocks.start * BLOCK as u64, blocks.end * BLOCK as u64)
    }

    /// A block, from what the program wanted and what it did not. Behind the end of the file it is zero.
    fn assemble(&self, block: u64, data: &[u8], edges: &Edges, whole: &mut [u8; BLOCK]) {
        let part = self.part(block);
        let (begin, _) = self.whole();
        if block * BLOCK as u64 == begin {
            whole[..part.start].copy_from_slice(&edges.head[..part.start]);
        }
        let from = (block * BLOCK as u64 + part.start as u64 - self.range.start) as usize;
        whole[part.clone()].copy_from_slice(&data[from..from + part.len()]);
        let content = (self.facts.size() - block * BLOCK as u64).min(BLOCK as u64) as usize;
        let end = content.max(part.end);
        whole[part.end..end].copy_from_slice(&edges.tail[..end - part.end]);
        whole[end..].fill(0);
    }
}

/// Reads the range from the store; whether it has all of it.
fn load(cache: &Cache, room: &mut Room, known: &Known<'_>, mut into: &mut [u8]) -> std::io::Result<bool> {
    for block in known.blocks() {
        let part = known.part(block);
        let (piece, rest) = into.split_at_mut(part.len());
        match cache.store.load(&mut room.cursor, (known.file, block), part, piece)? {
            Answer::Hit => {}
            Answer::Miss => return Ok(false),
            Answer::Damaged => {
                slot().event(Event::ReadCacheDamaged);
                return Ok(false);
            }
        }
        into = rest;
    }
    Ok(true)
}

impl Edges {
    /// Reads whole blocks, with what the program wants in its own buffer; whether all of it came. Disks read no less than
    /// this anyway.
    ///
    /// # Safety
    ///
    /// The buffer may be written to as far as the range is long, if it is memory at all: the kernel finds out.
    unsafe fn read(&mut self, known: &Known<'_>, buffer: *mut u8) -> bool {
        let (begin, end) = known.whole();
        let (before, len) =
            ((known.range.start - begin) as usize, (known.range.end - known.range.start) as usize);
        let after = (end - known.range.end) as usize;
        let piece = |base: *mut u8, len| iovec { iov_base: base.cast(), iov_len: len };
        let pieces =
            [piece(self.head.as_mut_ptr(), before), piece(buffer, len), piece(self.tail.as_mut_ptr(), after)];
        let used = &pieces[usize::from(before == 0)..3 - usize::from(after == 0)];
        let fd = std::os::fd::AsRawFd::as_raw_fd(&known.fd);
        let expected = end.min(known.facts.size()) - begin;
        // SAFETY: the edges and the caller's buffer have these lengths.
        let got = unsafe { original::preadv64.get()(fd, used.as_ptr(), used.len() as c_int, begin as off_t) };
        got >= 0 && got as u64 == expected
    }
}

/// Keeps the blocks that have just been read.
fn keep(cache: &Cache, room: &mut Room, known: &Known<'_>, data: &[u8]) {
    // After everything was read.
    if Facts::of(known.fd) != Some(known.facts) {
        return;
    }
    let Some(permit) = cache.admit() else { return };
    let (start, mut kept) = (clock::now(), 0);
    for block in known.blocks() {
        known.assemble(block, data, &room.edges, &mut room.block);
        match cache.store.keep(&mut room.cursor, (known.file, block), &room.block) {
            Ok(is_new) => kept += u64::from(is_new) * BLOCK as u64,
            Err(error) => return cache.failed(permit, &error),
        }
    }
    cache.succeeded(permit);
    cache.kept(permit, clock::now() - start);
    slot().event_n(Event::ReadCacheKeptBytes, kept);
}

/// Reads what is in the page cache, without a wait for the disk.
///
/// # Safety
///
/// As for pread(2).
unsafe fn resident(fd: c_int, buffer: *mut u8, count: usize, offset: off_t) -> ssize_t {
    const NOWAIT: c_int = 8;
    let piece = iovec { iov_base: buffer.cast(), iov_len: count };
    // By number: the C library has the function since glibc 2.26, and waits in its place where the kernel has none.
    // SAFETY: the caller's buffer. The offset is in the fourth argument; the fifth is its upper half, unused here.
    unsafe { libc::syscall(libc::SYS_preadv2, fd, &raw const piece, 1, offset, 0, NOWAIT) as ssize_t }
}
