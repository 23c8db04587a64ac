//! The inner loop: whole symbols, as long as there is plenty of input and room.
//!
//! It never reports an error. If it cannot finish a symbol, for lack of room or because the stream is damaged, it
//! restores the state from before that symbol and leaves it to the steps of `codes.rs`.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{_bzhi_u32, _mm256_mask_storeu_epi8, _mm256_maskz_loadu_epi8};
use core::ptr::copy_nonoverlapping;
use core::sync::atomic::{AtomicBool, Ordering};

use super::codes::{ZLIB_FAST_INPUT, ZLIB_FAST_ROOM};
use super::io::repeat_exactly;
use super::table::Entry;
use super::window::Window;
use super::{Call, Mode};

/// A refill reads this many bytes and consumes up to seven of them.
const WORD: usize = 8;
/// With less input or room than this the loop is not worth starting.
const LITTLE: usize = 4;
/// Input sufficient for the refills of one turn.
const INPUT: usize = 3 * WORD;
/// The most that one turn writes: two literals and a match.
const ROOM: usize = 2 + 258;

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Too little input or room.
    Margin,
    /// The block is complete.
    Block,
    /// The next symbol cannot be handled by this loop.
    Symbol,
}

/// Decodes symbols from `Mode::Len` on; leaves `Mode::Len`, or `Mode::Type` at the end of the block.
pub(super) fn run(call: &mut Call) {
    // Primed bits must not be given back as bytes.
    if call.input.have() < LITTLE || call.output.left() < LITTLE || call.input.bits >= 8 {
        return;
    }
    let run = Run::new(call);
    // A program that decompresses in place: nothing but the output may be written, and no input read ahead of time.
    if call.output.next().cast_const() < run.input_end && call.input.next() < run.room_end.cast_const() {
        return;
    }
    let mut cursor = Cursor {
        next: call.input.next(),
        hold: call.input.hold,
        bits: call.input.bits,
        put: call.output.next(),
        counted: None,
    };
    #[cfg(target_arch = "x86_64")]
    if Masked::is_usable() {
        // SAFETY: the CPU has these features.
        let end = unsafe { run.all_avx512(&mut cursor) };
        return finish(call, cursor, end);
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the CPU has these features.
        let end = unsafe { run.all_avx(&mut cursor) };
        return finish(call, cursor, end);
    }
    let end = run.all::<Words>(&mut cursor);
    finish(call, cursor, end);
}

/// Gives back the excess input, and brings the call up to date.
fn finish(call: &mut Call, cursor: Cursor, end: End) {
    let unused = (cursor.bits >> 3) as usize;
    let next = cursor.next.wrapping_sub(unused);
    call.input.bits = cursor.bits & 7;
    call.input.hold = cursor.hold & ((1 << call.input.bits) - 1);
    call.input.advance(next as usize - call.input.next() as usize);
    call.output.advance(cursor.put as usize - call.output.next() as usize);
    if let Some(bits) = cursor.counted {
        call.state.back = bits as i32;
    }
    if end == End::Block {
        call.state.back = -1;
        call.state.mode = Mode::Type;
    }
}

/// The state that changes with every symbol. A value, so that it stays in registers.
#[derive(Clone, Copy)]
struct Cursor {
    next: *const u8,
    hold: u64,
    bits: u32,
    put: *mut u8,
    /// Bits of the last symbol, if zlib would have counted them.
    counted: Option<u32>,
}

impl Cursor {
    #[inline(always)]
    fn place(&self) -> Place {
        Place { next: self.next, hold: self.hold, bits: self.bits }
    }

    /// The cursor as it was before a symbol of which nothing has been written.
    #[inline(always)]
    fn back_to(self, place: Place) -> Self {
        Self { next: place.next, hold: place.hold, bits: place.bits, ..self }
    }

    /// # Safety
    ///
    /// There must be room for a byte.
    #[inline(always)]
    unsafe fn literal(&mut self, entry: Entry) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            *self.put = entry.value() as u8;
            self.put = self.put.add(1);
        }
        self.drop(entry.total());
    }

    /// The base plus the extra bits.
    #[inline(always)]
    fn value(&mut self, entry: Entry) -> usize {
        let extra = (self.hold & ((1 << entry.total()) - 1)) >> entry.code();
        self.drop(entry.total());
        entry.value() + extra as usize
    }

    #[inline(always)]
    fn drop(&mut self, count: u32) {
        self.hold >>= count;
        self.bits = self.bits.wrapping_sub(count);
    }

    /// Whether there are fewer than this many bits, or more were dropped than there were.
    #[inline(always)]
    fn lacks(&self, count: u32) -> bool {
        (self.bits as i32) < count as i32
    }

    /// As [`Self::refill`], with `left` bytes of input: all of them if they are less than a word.
    ///
    /// # Safety
    ///
    /// There must be `left` bytes of input.
    #[inline(always)]
    unsafe fn refill_from(&mut self, left: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if left >= WORD {
                return self.refill();
            }
            for _ in 0..left {
                if self.bits >= 56 {
                    break;
                }
                self.hold |= u64::from(*self.next) << self.bits;
                self.next = self.next.add(1);
                self.bits += 8;
            }
        }
    }

    /// Fills `hold` to at least 56 bits. The bits above `bits` are those that the next refill puts there again.
    ///
    /// # Safety
    ///
    /// There must be `WORD` bytes of input.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let word = u64::from_le_bytes(*self.next.cast::<[u8; WORD]>());
            self.hold |= word << self.bits;
            self.next = self.next.add((63 - self.bits as usize) >> 3);
        }
        self.bits |= 56;
    }
}

/// Where in the input a symbol begins.
#[derive(Clone, Copy)]
struct Place {
    next: *const u8,
    hold: u64,
    bits: u32,
}

/// The state that stays the same for all symbols.
struct Run {
    input_end: *const u8,
    begin: *mut u8,
    room_end: *mut u8,
    litlen: *const Entry,
    litlen_mask: u64,
    dist: *const Entry,
    dist_mask: u64,
    window: Window,
}

impl Run {
    fn new(call: &Call) -> Self {
        let (litlen, dist) = call.state.tables();
        let (next, put) = (call.input.next(), call.output.next());
        let input_end = next.wrapping_add(call.input.have());
        let room_end = put.wrapping_add(call.output.left());
        Self {
            input_end,
            begin: put.wrapping_sub(call.output.written()),
            room_end,
            litlen: litlen.as_ptr(),
            litlen_mask: (1 << call.state.tables.litlen_root) - 1,
            dist: dist.as_ptr(),
            dist_mask: (1 << call.state.tables.dist_root) - 1,
            window: call.state.window,
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(clippy::missing_safety_doc, reason = "safe: clippy goes by the target features")]
    #[target_feature(enable = "bmi1,bmi2,avx")]
    fn all_avx(&self, cursor: &mut Cursor) -> End {
        self.all::<Words>(cursor)
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(clippy::missing_safety_doc, reason = "safe: clippy goes by the target features")]
    #[target_feature(enable = "bmi1,bmi2,avx2,avx512bw,avx512vl")]
    fn all_avx512(&self, cursor: &mut Cursor) -> End {
        self.all::<Masked>(cursor)
    }

    #[inline(always)]
    fn all<C: Copies>(&self, cursor: &mut Cursor) -> End {
        let Cursor { next, hold, bits, put, counted } = *cursor;
        let local = Cursor { next, hold, bits, put, counted };
        // SAFETY: `new` took the ends from the call, whose buffers are valid memory, and the tables from the state,
        // which have an entry for every index up to the mask, and behind every link a second table of the width that it
        // names.
        let (local, end) = unsafe {
            let (local, end) = self.turns::<C>(local);
            if end == End::Margin { self.careful_turns(local) } else { (local, end) }
        };
        *cursor = local;
        end
    }

    /// Decodes symbols while there is input and room for any of them.
    ///
    /// # Safety
    ///
    /// As for [`Self::all`]: the pointers must be a call's, and the tables complete.
    #[inline(always)]
    unsafe fn turns<C: Copies>(&self, mut c: Cursor) -> (Cursor, End) {
        if self.input_left(&c) < INPUT || self.room_left(&c) < ROOM {
            return (c, End::Margin);
        }
        // SAFETY: between two checks at most three refills read at most `INPUT` bytes, and at most `ROOM` bytes are
        // written. 56 bits or more are enough for two literals and a look, or for a match.
        unsafe {
            c.refill();
            let mut entry = self.look(&c);
            loop {
                if entry.is_literal() {
                    c.literal(entry);
                    entry = self.look(&c);
                    if entry.is_literal() {
                        c.literal(entry);
                        entry = self.look(&c);
                    }
                    c.refill();
                }
                let begun = c.place();
                let (len, distance) = match self.symbol::<false>(&mut c, entry) {
                    Symbol::Literal => (0, 0),
                    Symbol::Match { len, distance } => (len, distance),
                    Symbol::End => return (c, End::Block),
                    Symbol::Other => return (c.back_to(begun), End::Symbol),
                };
                // Overlaps the next look's wait for memory with copying the match.
                c.refill();
                entry = self.look(&c);
                if len != 0 {
                    let written = c.put as usize - self.begin as usize;
                    if distance <= written {
                        C::repeat(c.put, distance, len);
                    } else if distance - written <= self.window.have {
                        copy_window::<C>(&self.window, c.put, distance - written, distance, len);
                    } else {
                        return (c.back_to(begun), End::Symbol);
                    }
                    c.put = c.put.add(len);
                }
                if self.input_left(&c) < INPUT || self.room_left(&c) < ROOM {
                    return (c, End::Margin);
                }
            }
        }
    }

    /// Decodes symbols while there is input and room for that particular symbol.
    ///
    /// # Safety
    ///
    /// As [`Self::turns`].
    #[inline(always)]
    unsafe fn careful_turns(&self, mut c: Cursor) -> (Cursor, End) {
        loop {
            let (left, room) = (self.input_left(&c), self.room_left(&c));
            let have = left + (c.bits >> 3) as usize;
            if room == 0 {
                return (c, End::Margin);
            }
            // SAFETY: there is room for a byte, or for the match that is checked.
            unsafe {
                c.refill_from(left);
                let begun = c.place();
                let entry = self.look(&c);
                match self.symbol::<true>(&mut c, entry) {
                    Symbol::Literal => {}
                    Symbol::Match { len, distance } if len <= room => {
                        let written = c.put as usize - self.begin as usize;
                        if distance <= written {
                            repeat_exactly(c.put, distance, len);
                        } else if distance - written <= self.window.have {
                            copy_exactly(&self.window, c.put, distance - written, distance, len);
                        } else {
                            return (c.back_to(begun), End::Symbol);
                        }
                        c.put = c.put.add(len);
                    }
                    Symbol::End => return (c, End::Block),
                    Symbol::Match { .. } | Symbol::Other => return (c.back_to(begun), End::Symbol),
                }
                if have < ZLIB_FAST_INPUT || room < ZLIB_FAST_ROOM {
                    c.counted = Some(begun.bits - c.bits);
                }
            }
        }
    }

    /// Decodes the symbol that begins with this entry, and writes it if it is a literal.
    ///
    /// # Safety
    ///
    /// As [`Self::turns`], with at least 48 bits in `hold`, 15 + 5 + 15 + 13, unless `CHECKED`. There
    /// must be room for a byte.
    #[inline(always)]
    unsafe fn symbol<const CHECKED: bool>(&self, c: &mut Cursor, mut entry: Entry) -> Symbol {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if entry.is_special() && entry.is_link() {
                entry = follow(c, self.litlen, entry);
            }
            if CHECKED && c.lacks(entry.total()) {
                return Symbol::Other;
            }
            if entry.is_literal() {
                c.literal(entry);
                return Symbol::Literal;
            }
            if entry.is_special() {
                c.drop(entry.total());
                return if entry.is_end() { Symbol::End } else { Symbol::Other };
            }
            let len = c.value(entry);
            entry = *self.dist.add((c.hold & self.dist_mask) as usize);
            if entry.is_special() {
                if !entry.is_link() {
                    return Symbol::Other;
                }
                entry = follow(c, self.dist, entry);
                if entry.is_special() {
                    return Symbol::Other;
                }
            }
            if CHECKED && c.lacks(entry.total()) {
                return Symbol::Other;
            }
            Symbol::Match { len, distance: c.value(entry) }
        }
    }

    /// # Safety
    ///
    /// The table must be complete.
    #[inline(always)]
    unsafe fn look(&self, c: &Cursor) -> Entry {
        // SAFETY: there is an entry for every index up to the mask.
        unsafe { *self.litlen.add((c.hold & self.litlen_mask) as usize) }
    }

    #[inline(always)]
    fn input_left(&self, c: &Cursor) -> usize {
        self.input_end as usize - c.next as usize
    }

    #[inline(always)]
    fn room_left(&self, c: &Cursor) -> usize {
        self.room_end as usize - c.put as usize
    }
}

enum Symbol {
    Literal,
    Match {
        len: usize,
        distance: usize,
    },
    End,
    /// An error, which this loop does not report.
    Other,
}

/// # Safety
///
/// `entry` must be a link of this table.
#[inline(always)]
unsafe fn follow(c: &mut Cursor, table: *const Entry, entry: Entry) -> Entry {
    c.drop(entry.total());
    let index = (c.hold & ((1 << entry.code()) - 1)) as usize;
    // SAFETY: the second table has an entry for every index of the link's width.
    unsafe { *table.add(entry.value() + index) }
}

/// Copies a match that begins `back` bytes before this call's output.
///
/// # Safety
///
/// The CPU must support the features. `len` bytes must be writable at `put`; `back` must be at most what the window
/// has.
#[inline(always)]
unsafe fn copy_window<C: Copies>(window: &Window, put: *mut u8, back: usize, distance: usize, len: usize) {
    let piece = window.piece(back, len);
    // SAFETY: guaranteed by the caller; the window does not overlap the output.
    unsafe {
        if piece.len() == len {
            C::copy(piece.as_ptr(), put, len);
        } else {
            copy_exactly(window, put, back, distance, len);
        }
    }
}

/// As [`copy_window`], for a match that wraps around the end of the ring or runs out of the window into the output, and
/// without overrun.
///
/// # Safety
///
/// `len` bytes must be writable at `put`; `back` must be at most what the window has.
#[cold]
#[inline(never)]
unsafe fn copy_exactly(window: &Window, put: *mut u8, mut back: usize, distance: usize, len: usize) {
    let mut done = 0;
    while done < len && back > 0 {
        let piece = window.piece(back, len - done);
        // SAFETY: the caller guarantees the room; the window does not overlap the output.
        unsafe { copy_nonoverlapping(piece.as_ptr(), put.add(done), piece.len()) };
        done += piece.len();
        back -= piece.len();
    }
    if done < len {
        // SAFETY: the rest begins with the first byte of this call's output.
        unsafe { repeat_exactly(put.add(done), distance, len - done) };
    }
}

/// How matches are copied. Nothing behind them is read or written, not even to be overwritten later: zlib leaves the
/// room behind its output untouched, so a program that claims more room than it has gets away with it.
trait Copies {
    /// # Safety
    ///
    /// The CPU must support the features. `len` bytes, 3 or more, must be readable at `from` and writable at `put`, and
    /// the two at least 32 bytes or `len` apart.
    unsafe fn copy(from: *const u8, put: *mut u8, len: usize);

    /// Repeats what lies `distance` bytes before `put`.
    ///
    /// # Safety
    ///
    /// The CPU must support the features. `distance` bytes before `put` must be readable, and `len` bytes, 3 or more,
    /// at `put` writable.
    unsafe fn repeat(put: *mut u8, distance: usize, len: usize);
}

/// In words and vectors; the last one starts early enough to end where the match does.
struct Words;

impl Copies for Words {
    #[inline(always)]
    unsafe fn copy(from: *const u8, put: *mut u8, len: usize) {
        // SAFETY: guaranteed by the caller. Each access is as wide as the match is long, or less.
        unsafe {
            match len {
                0..4 => copy_ends::<2>(from, put, len),
                4..8 => copy_ends::<4>(from, put, len),
                8..16 => copy_ends::<8>(from, put, len),
                16.. => copy_all::<16>(from, put, len),
            }
        }
    }

    #[inline(always)]
    unsafe fn repeat(put: *mut u8, distance: usize, len: usize) {
        // SAFETY: guaranteed by the caller. No piece is wider than the distance, so none overlaps itself.
        unsafe {
            let from = put.sub(distance).cast_const();
            match distance {
                32.. => Self::copy(from, put, len),
                _ if distance >= len => Self::copy(from, put, len),
                16.. => copy_all::<16>(from, put, len),
                WORD.. => copy_all::<WORD>(from, put, len),
                1 => put.write_bytes(*from, len),
                _ => repeat_pattern(put, distance, len),
            }
        }
    }
}

/// As [`Copies::repeat`], for distances shorter than a word.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn repeat_pattern(put: *mut u8, distance: usize, len: usize) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller. The first `distance` bytes of each word are right; the next begins behind them.
    unsafe {
        while len - at >= WORD {
            let word = put.add(at).sub(distance).cast::<u64>().read_unaligned();
            put.add(at).cast::<u64>().write_unaligned(word);
            at += distance;
        }
        repeat_exactly(put.add(at), distance, len - at);
    }
}

/// # Safety
///
/// `len` bytes, at least `N` and at most twice that, must be readable at `from` and writable at `put`, and the two as
/// far apart.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(from: *const u8, put: *mut u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        copy_nonoverlapping(from, put, N);
        copy_nonoverlapping(from.add(len - N), put.add(len - N), N);
    }
}

/// # Safety
///
/// `len` bytes, `N` or more, must be writable at `put`, and readable at `from` or written by this, at least `N` bytes
/// apart.
#[inline(always)]
unsafe fn copy_all<const N: usize>(from: *const u8, put: *mut u8, len: usize) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller. What the last piece reads was written before: it ends at least `N` bytes before
    // the match does.
    unsafe {
        while len - at > N {
            copy_nonoverlapping(from.add(at), put.add(at), N);
            at += N;
        }
        copy_nonoverlapping(from.add(len - N), put.add(len - N), N);
    }
}

static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// For tests: copies as on a CPU without AVX-512.
#[doc(hidden)]
pub fn refuse_masks(are_refused: bool) {
    IS_REFUSED.store(are_refused, Ordering::Relaxed);
}

/// In vectors that are stored only in part.
#[cfg(target_arch = "x86_64")]
struct Masked;

#[cfg(target_arch = "x86_64")]
impl Masked {
    fn is_usable() -> bool {
        !IS_REFUSED.load(Ordering::Relaxed)
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("bmi2")
    }

    /// The first `len` bytes, up to 32.
    #[allow(clippy::missing_safety_doc, reason = "safe: clippy goes by the target features")]
    #[target_feature(enable = "bmi2")]
    #[inline]
    fn first(len: usize) -> u32 {
        _bzhi_u32(u32::MAX, len as u32)
    }
}

#[cfg(target_arch = "x86_64")]
impl Copies for Masked {
    #[inline(always)]
    unsafe fn copy(from: *const u8, put: *mut u8, len: usize) {
        let mut at = 0;
        // SAFETY: guaranteed by the caller; nothing is read or written where the mask is not set.
        unsafe {
            while len - at > 32 {
                copy_nonoverlapping(from.add(at), put.add(at), 32);
                at += 32;
            }
            let last = Self::first(len - at);
            let bytes = _mm256_maskz_loadu_epi8(last, from.add(at).cast());
            _mm256_mask_storeu_epi8(put.add(at).cast(), last, bytes);
        }
    }

    #[inline(always)]
    unsafe fn repeat(put: *mut u8, distance: usize, len: usize) {
        // SAFETY: as above.
        unsafe {
            let from = put.sub(distance).cast_const();
            if distance >= 32 {
                return Self::copy(from, put, len);
            }
            if distance == 1 {
                return put.write_bytes(*from, len);
            }
            // The same bytes over and over, as far as the match reaches.
            let whole = Self::first(distance);
            let bytes = _mm256_maskz_loadu_epi8(whole, from.cast());
            let mut at = 0;
            while len - at > distance {
                _mm256_mask_storeu_epi8(put.add(at).cast(), whole, bytes);
                at += distance;
            }
            _mm256_mask_storeu_epi8(put.add(at).cast(), Self::first(len - at), bytes);
        }
    }
}
