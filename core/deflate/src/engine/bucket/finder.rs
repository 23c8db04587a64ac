//! Finds matches: buckets of positions by the hash of four bytes.
//!
//! A bucket is one word, or two, of 16-bit positions, the latest lowest; a new one shifts the oldest out. It has no
//! tags: whether a candidate is any good, only a comparison tells. So nothing is decided, and mispredicted, until the
//! lengths of all matches of a position are known. Buckets are read, and written, a good way ahead of the parser for
//! all positions, where one cache miss hides behind the next; candidates are compared only where the parser goes.

use core::arch::asm;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__m128i, _mm_insert_epi16, _mm_slli_si128};
use core::marker::PhantomData;

use super::cpu::{Cpu, FARTHEST, LANES, WIDTH, Work};
use super::level::Level;
use super::symbols::LONGEST;

/// Text in a buffer, in front of bytes that may be read, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    start: *const u8,
    end: u32,
}

impl Text {
    /// How many readable bytes must follow the text: positions are hashed that far ahead, and matches compared beyond
    /// its end. They take part in comparisons, so they must not depend on what was there before.
    pub(super) const BEHIND: usize = 384;

    /// A text's end must fit into 32 bits, with what is read behind it.
    pub(super) const LONGEST: usize = 1 << 30;

    /// The text in `buffer` without the last [`Self::BEHIND`] bytes.
    ///
    /// # Safety
    ///
    /// The buffer stays as it is as long as the result is used.
    pub(super) unsafe fn new(buffer: &[u8]) -> Self {
        assert!((Self::BEHIND..Self::LONGEST).contains(&buffer.len()));
        Self { start: buffer.as_ptr(), end: (buffer.len() - Self::BEHIND) as u32 }
    }

    pub(super) fn end(self) -> u32 {
        self.end
    }

    #[inline(always)]
    pub(super) fn byte(self, at: u32) -> u8 {
        debug_assert!(at < self.end);
        // SAFETY: the parser asks for bytes of the text only.
        unsafe { *self.start.add(at as usize) }
    }
}

/// How many positions the ring holds. From the positions fetched last, [`STEP`] twice ahead of the parser, to where it
/// is must be less.
const RING: usize = 256;

/// How many positions are fetched at once.
pub(super) const STEP: u32 = 32;

/// How many of them are fetched without a look at their number.
const UNROLLED: usize = 8;

/// The most candidates that a position has.
const MOST: usize = 8;

/// The binary logarithm of the largest table.
pub(super) const LARGEST_TABLE: u32 = 17;

/// What a finder works with. It may be all zeros.
#[repr(C, align(64))]
pub(super) struct Memory {
    /// For each position, its bucket as it was found: [`Level::WAYS`] positions; later, their nearness.
    ring: [u16; RING * MOST],
    table: [u16; 1 << LARGEST_TABLE],
}

/// A bucket of eight positions.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Vector(__m128i);

#[cfg(target_arch = "x86_64")]
impl Vector {
    #[inline(always)]
    fn shifted_in(self, position: u16) -> Self {
        // SAFETY: every x86-64 CPU has these instructions.
        unsafe { Self(_mm_insert_epi16::<0>(_mm_slli_si128::<2>(self.0), position.into())) }
    }
}

/// A bucket of eight positions, the first one lowest.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Vector(u128);

#[cfg(not(target_arch = "x86_64"))]
impl Vector {
    #[inline(always)]
    fn shifted_in(self, position: u16) -> Self {
        Self(self.0 << 16 | u128::from(position))
    }
}

/// A match: its length above 16 bits, and below them its nearness, which is [`FARTHEST`] less the distance less one, so
/// that of two equally long ones the nearer is the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match(u32);

impl Match {
    #[inline(always)]
    const fn new(length: u32, nearness: u32) -> Self {
        Self(length << 16 | nearness)
    }

    #[inline(always)]
    pub(super) const fn length(self) -> u32 {
        self.0 >> 16
    }

    /// The distance less one.
    #[inline(always)]
    pub(super) const fn distance(self) -> u32 {
        FARTHEST - (self.0 & 0xffff)
    }

    /// Whether it beats literals: with four bytes only from nearby.
    #[inline(always)]
    pub(super) const fn is_good(self) -> bool {
        const FAR: u32 = 8192;
        self.0 >= Self::new(4, FARTHEST - FAR).0
    }

    /// About what it saves: four points for a byte, less the bits of the distance.
    #[inline(always)]
    pub(super) const fn score(self) -> i32 {
        let log = 31 - (self.distance() | 1).leading_zeros();
        4 * self.length() as i32 - log as i32
    }
}

/// The positions before `fetched` are in the table; for those before `ready`, as far as the ring reaches, it has the
/// distances of candidates. `fetched` is [`STEP`] ahead: what was written by single words is to be through to the cache
/// before it is read by long ones.
pub(super) struct Finder<'a, L> {
    text: Text,
    /// The parts of a memory that is borrowed exclusively. Pointers, because a [`View`] reads the ring meanwhile.
    table: *mut u16,
    ring: *mut u16,
    /// By how much a hash is shifted to make an index.
    shift: u32,
    /// The largest distance less one.
    cap: u16,
    fetched: u32,
    memory: PhantomData<(&'a mut Memory, L)>,
}

impl<'a, L: Level> Finder<'a, L> {
    /// With a table for a text of that length, cleared.
    pub(super) fn new(text: Text, memory: &'a mut Memory, window: usize) -> Self {
        const { assert!(L::WAYS <= MOST && L::WAYS.is_power_of_two() && L::TABLE <= LARGEST_TABLE) }
        let log = (32 - text.end.max(256).leading_zeros()).min(L::TABLE);
        // Whatever is in a table, its candidates are compared. But output must not depend on earlier texts.
        memory.table[..1 << log].fill(FARTHEST as u16);
        let buckets = log - L::WAYS.ilog2();
        Self {
            text,
            table: memory.table.as_mut_ptr(),
            ring: memory.ring.as_mut_ptr(),
            shift: 32 - buckets,
            cap: (window - 1).min(FARTHEST as usize) as u16,
            fetched: 0,
            memory: PhantomData,
        }
    }

    /// Enters the history, and returns the first position for [`Self::advance`].
    #[inline(always)]
    pub(super) fn enter_history(&mut self, length: u32) -> u32 {
        let mut at = 0;
        while at + STEP <= length {
            self.fetch::<false>(at);
            at += STEP;
        }
        self.start_at(at)
    }

    /// Leaves out what is before `at`, and returns the first position for [`Self::advance`].
    #[inline(always)]
    pub(super) fn start_at(&mut self, at: u32) -> u32 {
        debug_assert!(at.is_multiple_of(STEP));
        self.fetch::<true>(at);
        self.fetched = at + STEP;
        at
    }

    /// Makes the positions from `ready` on ready, and returns the first behind them.
    pub(super) fn advance<C: Cpu>(&mut self, cpu: C, ready: u32) -> u32 {
        cpu.run(Advance { finder: self, ready })
    }

    /// The best match at a position, which is ready.
    #[inline(always)]
    pub(super) fn best<C: Cpu>(view: View, cpu: C, at: u32) -> Match {
        let here = view.text.start.wrapping_add(at as usize);
        let farthest = here.wrapping_sub(FARTHEST as usize + 1);
        let mut matches = [0; MOST];
        let slot = (at as usize & (RING - 1)) * L::WAYS;
        for (way, found) in matches.iter_mut().enumerate().take(L::WAYS) {
            // SAFETY: the slot lies within the ring. What is in it was made by `measure`, so the candidate lies in the
            // text, before the position, which the parser says is in it, too; `WIDTH` bytes follow both.
            let (equal, nearness) = unsafe {
                let nearness = scalar(u32::from(*view.ring.add(slot + way)));
                (cpu.equal(here, farthest.wrapping_add(nearness as usize)), nearness)
            };
            *found = scalar(Match::new(equal, nearness).0);
        }
        // The parser waits for the result, so comparisons do not wait for each other.
        let mut half = L::WAYS / 2;
        while half > 0 {
            for way in 0..half {
                matches[way] = scalar(matches[way].max(matches[way + half]));
            }
            half /= 2;
        }
        let best = Match(matches[0]);
        if best.length() == WIDTH { view.longest::<C, L>(cpu, at) } else { best }
    }

    /// Fetches the buckets of the next [`STEP`] positions, and enters these.
    #[inline(always)]
    fn fetch<const KEEPS: bool>(&mut self, at: u32) {
        let Self { text, table, ring, shift, .. } = *self;
        let ring = ring.wrapping_add((at as usize & (RING - 1)) * L::WAYS);
        // A step does not cross a multiple of 2^16, so this is a position's low half, less `i`.
        let low = at & 0xffff;
        for start in (0..STEP as usize).step_by(UNROLLED) {
            for i in start..start + UNROLLED {
                let position = at as usize + i;
                // SAFETY: a step begins at most one step behind the end of the text, whose last bytes are followed by
                // `Text::BEHIND` more. The index has as many bits as there are buckets. A step's part of the ring begins at a
                // multiple of its length, so it lies in the ring.
                unsafe {
                    let word = text.start.add(position).cast::<u32>().read_unaligned();
                    let index = (word.wrapping_mul(0x9e37_79b1) >> shift) as usize;
                    let (bucket, kept) = (table.add(index * L::WAYS), ring.add(i * L::WAYS));
                    match L::WAYS {
                        1 => {
                            let old = bucket.read();
                            if KEEPS {
                                kept.write(old);
                            }
                            bucket.write(position as u16);
                        }
                        2 => {
                            let bucket = bucket.cast::<u32>();
                            let old = bucket.read();
                            if KEEPS {
                                kept.cast::<u32>().write(old);
                            }
                            bucket.write((old << 16) + (low + i as u32));
                        }
                        4 => {
                            let bucket = bucket.cast::<u64>();
                            let old = bucket.read();
                            if KEEPS {
                                kept.cast::<u64>().write(old);
                            }
                            bucket.write((old << 16) + u64::from(low) + i as u64);
                        }
                        _ => {
                            let (bucket, kept) = (bucket.cast::<Vector>(), kept.cast::<Vector>());
                            let old = bucket.read();
                            if KEEPS {
                                kept.write(old);
                            }
                            bucket.write(old.shifted_in(position as u16));
                        }
                    }
                }
            }
        }
    }

    /// Replaces the positions in the ring by the nearness of a byte of the text within the window, whatever the positions
    /// are. (The very first position has nothing before it, and is never asked for.)
    #[inline(always)]
    fn measure<C: Cpu>(&mut self, cpu: C, at: u32) {
        let start = (at as usize & (RING - 1)) * L::WAYS;
        let mut before = at.wrapping_sub(1) as u16;
        for lanes in 0..STEP as usize * L::WAYS / LANES {
            // Where the text is shorter than the longest distance, it is the limit.
            let limit = if at > FARTHEST { u16::MAX } else { 0 };
            // SAFETY: a step's part of the ring begins at a multiple of its length, so it lies in the ring, and begins at
            // a multiple of the length of a vector. Nobody reads it before it is ready.
            unsafe {
                let entries = self.ring.add(start + lanes * LANES).cast::<[u16; LANES]>();
                let old = entries.read();
                entries.write(cpu.nearness(&old, before, const { &offsets(L::WAYS) }, limit, self.cap));
            }
            before = before.wrapping_add((LANES / L::WAYS) as u16);
        }
    }

    /// What the parser reads, which it may keep while the finder advances.
    pub(super) fn view(&self) -> View {
        View { text: self.text, ring: self.ring }
    }
}

/// To which of several consecutive positions an entry of the ring belongs.
const fn offsets(ways: usize) -> [u16; LANES] {
    let mut offsets = [0; LANES];
    let mut i = 0;
    while i < LANES {
        offsets[i] = (i / ways) as u16;
        i += 1;
    }
    offsets
}

/// See [`Finder::advance`].
struct Advance<'f, 'a, L> {
    finder: &'f mut Finder<'a, L>,
    ready: u32,
}

impl<L: Level> Work for Advance<'_, '_, L> {
    type Output = u32;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> u32 {
        let Self { finder, ready } = self;
        finder.fetch::<true>(finder.fetched);
        finder.fetched += STEP;
        finder.measure(cpu, ready);
        ready + STEP
    }
}

/// The same value, in a register of its own. The compiler would put those of a bucket's candidates into one vector, and
/// spend more on that than it saves.
#[inline(always)]
fn scalar(mut value: u32) -> u32 {
    // SAFETY: there is no instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("/* {0:e} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: there is no instruction.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("/* {0:w} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// The text, and the ring of a finder, which outlives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    text: Text,
    ring: *const u16,
}

impl View {
    #[inline(always)]
    pub(super) fn text(self) -> Text {
        self.text
    }

    /// The longest of the matches of at least [`WIDTH`].
    #[cold]
    fn longest<C: Cpu, L: Level>(self, cpu: C, at: u32) -> Match {
        cpu.run(Longest::<L> { view: self, at, level: PhantomData })
    }
}

/// See [`View::longest`].
struct Longest<L> {
    view: View,
    at: u32,
    level: PhantomData<L>,
}

impl<L: Level> Work for Longest<L> {
    type Output = Match;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Match {
        let Self { view, at, .. } = self;
        let here = view.text.start.wrapping_add(at as usize);
        let farthest = here.wrapping_sub(FARTHEST as usize + 1);
        let slot = (at as usize & (RING - 1)) * L::WAYS;
        let mut best = 0;
        for way in 0..L::WAYS {
            // SAFETY: as in `Finder::best`; the longest match and `WIDTH` more bytes follow the position, too.
            unsafe {
                let nearness = u32::from(*view.ring.add(slot + way));
                let there = farthest.wrapping_add(nearness as usize);
                let mut length = 0;
                while length < LONGEST {
                    let equal = cpu.equal(here.add(length as usize), there.add(length as usize));
                    length += equal;
                    if equal < WIDTH {
                        break;
                    }
                }
                best = best.max(Match::new(length.min(LONGEST), nearness).0);
            }
            if best >> 16 >= L::NICE {
                break;
            }
        }
        Match(best)
    }
}
