//! The file: a page of facts, then the sets, then the blocks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use rustix::fs::{FlockOperation, flock};

use crate::key::{FileTag, Identity, Tag};
use crate::set::{self, Set, WAYS};
use crate::sum;
use crate::trial::Lesson;

/// Bytes of a block: a page, which is what storage and file systems read at least.
pub const BLOCK: usize = 4096;

const NAME: &str = "blocks-1";
const MAGIC: u64 = u64::from_le_bytes(*b"hstblk01");
const LESSON_AT: u64 = 2048;
/// Sets that a process changes at the same time.
const STRIPES: usize = 64;

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path}: {source}")]
    System { path: PathBuf, source: io::Error },
    #[error("{0} belongs to another user: name a directory of your own")]
    Foreign(PathBuf),
    #[error("{0} bytes hold no set of blocks: allow at least {least}", least = Store::least())]
    TooSmall(u64),
    #[error("another process is just making it")]
    Busy,
    #[error("this process may not write files of {0} bytes (RLIMIT_FSIZE): allow less, or raise the limit")]
    Limited(u64),
    #[error(
        "/proc/sys/kernel/random/boot_id cannot be read: mount /proc, which tells one start of the machine from another"
    )]
    NoBoot,
}

/// What a look for a block found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Hit,
    Miss,
    /// A block with a wrong checksum, which is gone now.
    Damaged,
}

/// The set that was read last, because the next block is usually in the same one, and room to work in. The caller provides
/// it: a preload library has no claim to so much of a program's stack.
#[derive(Debug)]
pub struct Cursor {
    set: Option<u64>,
    bytes: [u8; set::BYTES],
    decoded: Set,
    block: [u8; BLOCK],
}

impl Cursor {
    #[must_use]
    pub const fn new() -> Self {
        Self { set: None, bytes: [0; set::BYTES], decoded: Set::empty(), block: [0; BLOCK] }
    }

    /// Forgets the set, which may have changed meanwhile.
    pub const fn reset(&mut self) {
        self.set = None;
    }
}

impl Default for Cursor {
    fn default() -> Self {
        Self::new()
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    file: File,
    /// Device and inode of the file: a program may close descriptors that are not its own.
    is: (u64, u64),
    sets: u64,
    secret: [u64; 2],
    stripes: [Mutex<()>; STRIPES],
}

impl Store {
    /// Opens or makes the store in a directory, with at most `budget` bytes. Its first user decides on the size, as long
    /// as any other has it open.
    pub fn open(directory: &Path, budget: u64) -> Result<Self, OpenError> {
        Self::open_with(directory, budget, |file| file)
    }

    /// As [`open`](Self::open), with a say in which descriptor is kept.
    pub fn open_with(
        directory: &Path,
        budget: u64,
        place: impl FnOnce(OwnedFd) -> OwnedFd,
    ) -> Result<Self, OpenError> {
        let failed = |source| OpenError::System { path: directory.to_owned(), source };
        let sets = sets_for(budget).ok_or(OpenError::TooSmall(budget))?;
        let boot = boot().ok_or(OpenError::NoBoot)?;
        if !is_within_limit(size_of_file(sets)) {
            return Err(OpenError::Limited(size_of_file(sets)));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let path = directory.join(NAME);
        let failed = |source| OpenError::System { path: path.clone(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if !facts.is_file() || facts.uid() != rustix::process::geteuid().as_raw() || facts.mode() & 0o77 != 0
        {
            return Err(OpenError::Foreign(path));
        }
        let file = File::from(place(file.into()));
        let is = (facts.dev(), facts.ino());
        let sets = lock_and_settle(&file, is, sets, boot).map_err(failed)?.ok_or(OpenError::Busy)?;
        let secret = [0, 1].map(|seed| sum::of_words(seed, &boot));
        let stripes = [const { Mutex::new(()) }; STRIPES];
        Ok(Self { file, is, sets, secret, stripes })
    }

    /// The smallest budget of which anything can be made.
    #[must_use]
    pub const fn least() -> u64 {
        size_of_file(1)
    }

    /// Bytes of the file, which it never exceeds.
    #[must_use]
    pub const fn size(&self) -> u64 {
        size_of_file(self.sets)
    }

    /// How many blocks it holds at most.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.sets * WAYS as u64
    }

    #[must_use]
    pub fn tag(&self, identity: &Identity) -> FileTag {
        identity.tag(self.secret)
    }

    /// Reads a part of a block into memory of that size. Anything but a hit leaves arbitrary bytes there.
    pub fn load(
        &self,
        cursor: &mut Cursor,
        (file, block): (FileTag, u64),
        part: Range<usize>,
        into: &mut [u8],
    ) -> io::Result<Answer> {
        let Some((set, way, sum)) = self.find(cursor, file, block)? else { return Ok(Answer::Miss) };
        let tag = file.block(block);
        let at = self.block_at(set, way);
        if self.read_part(&mut cursor.block, at, part, into, |block| tag.sum(block) == sum)? {
            if let Some((at, uses)) = Set::used_in(&cursor.bytes, way) {
                cursor.bytes[at] = uses;
                self.write(&[uses], Self::set_at(set) + at as u64)?;
            }
            return Ok(Answer::Hit);
        }
        self.forget(cursor, set, tag)?;
        Ok(Answer::Damaged)
    }

    /// Whether the store seems to have a block. Only [`load`](Self::load) says whether it is any good.
    pub fn has(&self, cursor: &mut Cursor, file: FileTag, block: u64) -> io::Result<bool> {
        Ok(self.find(cursor, file, block)?.is_some())
    }

    /// Keeps a block, unless it is there or another thread is changing its set; returns whether it was written.
    pub fn keep(
        &self,
        cursor: &mut Cursor,
        (file, block): (FileTag, u64),
        data: &[u8; BLOCK],
    ) -> io::Result<bool> {
        let (tag, set) = (file.block(block), file.place(block) % self.sets);
        let _changing = match self.stripes[set as usize % STRIPES].try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        self.read_set(cursor, set)?;
        if cursor.decoded.has(tag) {
            return Ok(false);
        }
        let way = cursor.decoded.admit(tag, tag.sum(data));
        // The data first: until the set is written, nobody looks for it here, and whoever finds the old block's entry
        // finds its checksum wrong.
        self.write(data, self.block_at(set, way))?;
        self.write_set(cursor, set)?;
        Ok(true)
    }

    /// What earlier processes learned about this device.
    #[must_use]
    pub fn lesson(&self) -> Option<Lesson> {
        let mut bytes = [0; Lesson::BYTES];
        self.file.read_exact_at(&mut bytes, LESSON_AT).ok()?;
        Lesson::decode(&bytes)
    }

    pub fn learn(&self, lesson: &Lesson) -> io::Result<()> {
        self.write(&lesson.encode(), LESSON_AT)
    }

    fn find(&self, cursor: &mut Cursor, file: FileTag, block: u64) -> io::Result<Option<(u64, usize, u64)>> {
        let set = file.place(block) % self.sets;
        if cursor.set != Some(set) {
            cursor.set = None;
            self.file.read_exact_at(&mut cursor.bytes, Self::set_at(set))?;
            cursor.set = Some(set);
        }
        Ok(Set::find_in(&cursor.bytes, file.block(block)).map(|(way, sum)| (set, way, sum)))
    }

    /// Reads a whole block, of which only `part` goes to the caller, and says whether it is right.
    ///
    /// The kernel writes into the caller's memory in every case, so that memory which is not there is an error and not
    /// a signal.
    fn read_part(
        &self,
        block: &mut [u8; BLOCK],
        at: u64,
        part: Range<usize>,
        into: &mut [u8],
        is_right: impl Fn(&[u8]) -> bool,
    ) -> io::Result<bool> {
        if part == (0..BLOCK) {
            return match self.file.read_exact_at(into, at) {
                Ok(()) => Ok(is_right(into)),
                // Behind the end of a file that was damaged.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
                Err(error) => Err(error),
            };
        }
        let (head, rest) = block.split_at_mut(part.start);
        let tail = &mut rest[part.len()..];
        let pieces = &mut [IoSliceMut::new(head), IoSliceMut::new(into), IoSliceMut::new(tail)];
        if rustix::io::preadv(&self.file, pieces, at)? != BLOCK {
            // Cut off by the end of a damaged file; or the caller's memory ends there, which is no damage.
            let is_cut = self.file.metadata()?.len() < at + BLOCK as u64;
            return if is_cut { Ok(false) } else { Err(rustix::io::Errno::FAULT.into()) };
        }
        block[part].copy_from_slice(into);
        Ok(is_right(block))
    }

    fn forget(&self, cursor: &mut Cursor, set: u64, tag: Tag) -> io::Result<()> {
        self.read_set(cursor, set)?;
        cursor.decoded.remove(tag);
        self.write_set(cursor, set)
    }

    fn read_set(&self, cursor: &mut Cursor, set: u64) -> io::Result<()> {
        cursor.set = None;
        self.file.read_exact_at(&mut cursor.bytes, Self::set_at(set))?;
        cursor.decoded.decode_from(&cursor.bytes);
        Ok(())
    }

    fn write_set(&self, cursor: &mut Cursor, set: u64) -> io::Result<()> {
        cursor.decoded.encode_into(&mut cursor.bytes);
        self.write(&cursor.bytes, Self::set_at(set))
    }

    const fn set_at(set: u64) -> u64 {
        BLOCK as u64 + set * set::BYTES as u64
    }

    const fn block_at(&self, set: u64, way: usize) -> u64 {
        blocks_begin(self.sets) + (set * WAYS as u64 + way as u64) * BLOCK as u64
    }

    /// Whether the descriptor is still that of the store.
    #[must_use]
    pub fn is_open(&self) -> bool {
        is_file(&self.file, self.is).is_ok_and(|is_it| is_it)
    }

    /// Writes into the store and nothing else: if the program has closed the descriptor and the number is another
    /// file's by now, that file must not change.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if !is_file(&self.file, self.is)? {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the descriptor of the store was closed"));
        }
        if !is_within_limit(at + bytes.len() as u64) {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.file.write_all_at(bytes, at)
    }
}

fn is_file(file: &File, is: (u64, u64)) -> io::Result<bool> {
    let facts = file.metadata()?;
    Ok((facts.dev(), facts.ino()) == is)
}

/// Whether a file may be so long. Writing beyond the limit of the process would end it with a signal.
fn is_within_limit(length: u64) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    limit.is_none_or(|limit| length <= limit)
}

const NOFOLLOW: i32 = 0o400_000;

const fn blocks_begin(sets: u64) -> u64 {
    let end = BLOCK as u64 + sets * set::BYTES as u64;
    end.div_ceil(BLOCK as u64) * BLOCK as u64
}

const fn size_of_file(sets: u64) -> u64 {
    blocks_begin(sets) + sets * (WAYS * BLOCK) as u64
}

/// The most sets that a budget has room for.
fn sets_for(budget: u64) -> Option<u64> {
    let about = budget.checked_sub(BLOCK as u64)? / (WAYS * BLOCK + set::BYTES) as u64;
    let sets = if size_of_file(about) <= budget { about } else { about.checked_sub(1)? };
    (sets > 0).then_some(sets)
}

/// The number of sets, once nobody can make the file anew under us; `None` while somebody is.
fn lock_and_settle(file: &File, is: (u64, u64), wanted: u64, boot: [u64; 2]) -> io::Result<Option<u64>> {
    if flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok() {
        let now = sets_of(file, boot)?;
        // As for every write: the number may be another file's by now.
        if now != Some(wanted) && is_file(file, is)? {
            make(file, wanted, boot)?;
        }
    }
    // From exclusive to shared, or shared from the start.
    match flock(file.as_fd(), FlockOperation::NonBlockingLockShared) {
        Ok(()) => sets_of(file, boot),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn make(file: &File, sets: u64, boot: [u64; 2]) -> io::Result<()> {
    file.set_len(0)?;
    file.set_len(size_of_file(sets))?;
    file.write_all_at(&head(sets, boot), 0)
}

/// What the head says, if it is of this version, whole, and of this start of the machine.
fn sets_of(file: &File, boot: [u64; 2]) -> io::Result<Option<u64>> {
    let mut bytes = [0; 64];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut sets = [0; 8];
    sets.copy_from_slice(&bytes[8..16]);
    let sets = u64::from_le_bytes(sets);
    let is_plausible = sets > 0 && sets < 1 << 40 && bytes == head(sets, boot);
    Ok((is_plausible && file.metadata()?.len() == size_of_file(sets)).then_some(sets))
}

fn head(sets: u64, boot: [u64; 2]) -> [u8; 64] {
    let words = [MAGIC, sets, boot[0], boot[1], sum::of_words(MAGIC, &[sets, boot[0], boot[1]]), 0, 0, 0];
    let mut bytes = [0; 64];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(eight, word)| eight.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// This start of the machine. A crash may lose the change of a file's times and keep that of its content, so what was
/// known before it is not known after it.
fn boot() -> Option<[u64; 2]> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|id| !id.is_empty())?;
    Some([1, 2].map(|seed| sum::of_bytes(seed, &id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn file(number: u64) -> FileTag {
        Identity { inode: number, ..Identity::default() }.tag([3, 4])
    }

    fn block(number: u64) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block.chunks_exact_mut(8).enumerate().for_each(|(i, word)| {
            word.copy_from_slice(&(number ^ (i as u64) << 32).to_le_bytes());
        });
        block
    }

    fn load(store: &Store, at: (FileTag, u64), part: Range<usize>) -> (Answer, Vec<u8>) {
        let mut into = vec![0; part.len()];
        let answer = store.load(&mut Cursor::new(), at, part, &mut into).expect("readable");
        (answer, into)
    }

    fn keep(store: &Store, at: (FileTag, u64)) -> bool {
        store.keep(&mut Cursor::new(), at, &block(at.1)).expect("kept")
    }

    #[test]
    fn blocks_come_back_in_any_part_and_through_another_opening() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), 8 * MIB).expect("a store");
        for number in 0..100 {
            assert!(keep(&store, (file(1), number)));
        }
        let again = Store::open(directory.path(), 64 * MIB).expect("the same store");
        assert_eq!(again.size(), store.size(), "its size is the first user's");
        for number in 0..100 {
            for part in [0..BLOCK, 0..1, 5..4001, 4095..4096] {
                let (answer, bytes) = load(&again, (file(1), number), part.clone());
                assert_eq!((answer, &bytes[..]), (Answer::Hit, &block(number)[part]));
            }
        }
        assert_eq!(load(&again, (file(2), 0), 0..BLOCK).0, Answer::Miss);
    }

    #[test]
    fn a_budget_is_kept_to_the_byte() {
        let directory = tempfile::tempdir().expect("a directory");
        for budget in [Store::least(), Store::least() + 1, MIB, 3 * MIB + 17] {
            let store = Store::open(directory.path(), budget).expect("a store");
            for number in 0..2 * store.capacity() {
                keep(&store, (file(1), number));
            }
            let length = fs::metadata(directory.path().join(NAME)).expect("a file").len();
            assert!(length == store.size() && length <= budget, "{length} of {budget}");
            assert!(budget - length < (WAYS * BLOCK + set::BYTES + BLOCK) as u64, "{length} of {budget}");
        }
        let too_small = Store::open(directory.path(), Store::least() - 1);
        assert!(matches!(too_small, Err(OpenError::TooSmall(_))));
    }

    #[test]
    fn damage_is_a_miss_wherever_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), 2 * MIB).expect("a store");
        for number in 0..64 {
            keep(&store, (file(1), number));
        }
        let path = directory.path().join(NAME);
        let raw = OpenOptions::new().read(true).write(true).open(path).expect("the file");
        let mut damaged = 0;
        for at in (BLOCK as u64..store.size()).step_by(509) {
            let mut byte = [0];
            raw.read_exact_at(&mut byte, at).expect("a byte");
            raw.write_all_at(&[byte[0] ^ 0x55], at).expect("written");
        }
        for number in 0..64 {
            let (answer, bytes) = load(&store, (file(1), number), 0..BLOCK);
            assert!(answer != Answer::Hit || bytes == block(number));
            damaged += usize::from(answer == Answer::Damaged);
            assert_ne!(load(&store, (file(1), number), 0..BLOCK).0, Answer::Damaged, "it is gone");
        }
        assert!(damaged > 0);
    }

    #[test]
    fn a_store_that_is_cut_off_or_foreign_is_made_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(NAME);
        for length in [0, 10, 5000] {
            keep(&Store::open(directory.path(), MIB).expect("a store"), (file(1), 1));
            OpenOptions::new().write(true).open(&path).expect("the file").set_len(length).expect("cut off");
            let store = Store::open(directory.path(), MIB).expect("a new store");
            assert_eq!(load(&store, (file(1), 1), 0..BLOCK).0, Answer::Miss);
        }
    }

    #[test]
    fn others_may_not_have_the_store_open_to_everyone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(NAME);
        OpenOptions::new().write(true).create_new(true).mode(0o666).open(&path).expect("made");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("permitted");
        assert!(matches!(Store::open(directory.path(), MIB), Err(OpenError::Foreign(_))));
    }

    #[test]
    fn a_block_that_is_written_at_the_same_time_is_whole_or_a_miss() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), MIB).expect("a store");
        let other = Store::open(directory.path(), MIB).expect("the same store");
        std::thread::scope(|scope| {
            for store in [&store, &other] {
                scope.spawn(move || {
                    for number in 0..3000 {
                        keep(store, (file(number % 7), number));
                    }
                });
                scope.spawn(move || {
                    for number in 0..3000 {
                        let (answer, bytes) = load(store, (file(number % 7), number), 0..BLOCK);
                        assert!(answer != Answer::Hit || bytes == block(number), "block {number}");
                    }
                });
            }
        });
    }
}
