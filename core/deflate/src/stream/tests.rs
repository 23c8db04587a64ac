use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use proptest::prelude::{Just, ProptestConfig, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Strategies;

use super::{Deflate, Flush, Io, Outcome, Tally};
use crate::engine::{EngineKind, Settings, Strategy};
use crate::engines::{Backend, Engines};
use crate::header::Wrapper;
use crate::pool;
use crate::store::Store;

static SOUND: Engines = Engines::new();

/// No buffers are available.
static STARVED: Engines = Engines::with(Backend { scratch: |_| None, ..Backend::PROCESS });

/// A stream with its own memory, in pieces that are not contiguous.
struct Owned {
    stream: Deflate,
    memory: Vec<Vec<u8>>,
}

impl Owned {
    fn new(settings: Settings, wrapper: Wrapper, pieces: &[usize], verifies: bool) -> Self {
        Self::by(&SOUND, settings, wrapper, pieces, verifies)
    }

    fn by(
        engines: &'static Engines,
        settings: Settings,
        wrapper: Wrapper,
        pieces: &[usize],
        verifies: bool,
    ) -> Self {
        let mut memory: Vec<_> = pieces.iter().map(|&len| vec![0xa5; len]).collect();
        let regions: Vec<_> =
            memory.iter_mut().map(|piece| (NonNull::from(&mut piece[0]), piece.len())).collect();
        // SAFETY: the memory stays where it is, and nobody else touches it.
        let store = unsafe { Store::new(regions) };
        Self { stream: Deflate::new(settings, wrapper, store, verifies, engines), memory }
    }

    /// Takes the buffers away, or gives them back.
    fn starve(&mut self, is_starved: bool) {
        self.stream.engines = if is_starved { &STARVED } else { &SOUND };
    }

    /// One call with this much room; returns the output and how much input was consumed.
    fn call(&mut self, input: &[u8], room: usize, flush: Flush) -> (Outcome, Vec<u8>, usize) {
        let mut out = vec![0x5a; room];
        let mut io = Io { input, output: &mut out, header: None, complaint: None };
        let outcome = self.stream.deflate(&mut io, flush, &mut Tally::default());
        let (left, taken) = (io.output.len(), input.len() - io.input.len());
        out.truncate(room - left);
        (outcome, out, taken)
    }

    /// Calls until all input is consumed and, as far as the flush demands, all output written.
    fn feed(&mut self, mut input: &[u8], room: usize, flush: Flush) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let (outcome, out, taken) = self.call(input, room, flush);
            input = &input[taken..];
            all.extend_from_slice(&out);
            let is_done = if flush == Flush::Finish {
                outcome == Outcome::StreamEnd
            } else {
                input.is_empty() && out.len() < room
            };
            if is_done || outcome == Outcome::BufError {
                assert!(input.is_empty());
                return all;
            }
            assert_eq!(outcome, Outcome::Ok);
        }
    }
}

/// An independent decoder's view of a stream that may not have ended.
fn inflate(bytes: &[u8], wrapper: Wrapper, window_bits: u8) -> Vec<u8> {
    use libz_rs_sys as z;
    let window = match wrapper {
        Wrapper::Raw => -i32::from(window_bits),
        Wrapper::Zlib => i32::from(window_bits),
        Wrapper::Gzip => i32::from(window_bits) + 16,
    };
    let mut all = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    // SAFETY: a stream and buffers of our own.
    unsafe {
        let mut strm: z::z_stream = std::mem::zeroed();
        let size = size_of::<z::z_stream>() as i32;
        assert_eq!(z::inflateInit2_(&raw mut strm, window, c"1.3".as_ptr(), size), z::Z_OK);
        strm.next_in = bytes.as_ptr().cast_mut();
        strm.avail_in = bytes.len() as u32;
        loop {
            strm.next_out = buffer.as_mut_ptr();
            strm.avail_out = buffer.len() as u32;
            let code = z::inflate(&raw mut strm, z::Z_SYNC_FLUSH);
            assert!(matches!(code, z::Z_OK | z::Z_STREAM_END | z::Z_BUF_ERROR), "{code}");
            all.extend_from_slice(&buffer[..buffer.len() - strm.avail_out as usize]);
            if strm.avail_out > 0 || code != z::Z_OK {
                break;
            }
        }
        z::inflateEnd(&raw mut strm);
    }
    all
}

#[derive(Clone, Debug)]
struct Step {
    kind: u8,
    len: usize,
    room: usize,
    flush: Flush,
    is_starved: bool,
}

fn flushes() -> impl Strategies<Value = Flush> {
    prop_oneof![
        4 => Just(Flush::No),
        1 => Just(Flush::Sync),
        1 => Just(Flush::Full),
        1 => Just(Flush::Partial),
        1 => Just(Flush::Block),
    ]
}

fn steps() -> impl Strategies<Value = Vec<Step>> {
    let len = prop_oneof![Just(0_usize), 1_usize..300, 1_usize..20_000, 100_000_usize..300_000];
    let room = prop_oneof![7_usize..40, 4096_usize..9000, Just(1_usize << 20)];
    let step = (0_u8..4, len, room, flushes(), prop::bool::weighted(0.2))
        .prop_map(|(kind, len, room, flush, is_starved)| Step { kind, len, room, flush, is_starved });
    prop::collection::vec(step, 1..8)
}

/// Text, noise, zeros, or words that recur after a while.
fn data(kind: u8, len: usize, salt: usize) -> Vec<u8> {
    let mut state = salt as u32 * 2 + 1;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    match kind {
        0 => b"the quick brown fox jumps over the lazy dog, again and again. "
            .iter()
            .copied()
            .cycle()
            .skip(salt)
            .take(len)
            .collect(),
        1 => (0..len).map(|_| next() as u8).collect(),
        2 => vec![0; len],
        _ => (0..len).map(|i| if i % 97 < 60 { (i % 97) as u8 } else { b'a' + (next() % 8) as u8 }).collect(),
    }
}

fn settings() -> impl Strategies<Value = (Settings, Wrapper, bool)> {
    let wrapper = prop_oneof![Just(Wrapper::Raw), Just(Wrapper::Zlib), Just(Wrapper::Gzip)];
    (1_u8..=9, 9_u8..=15, 1_u8..=9, any::<bool>(), wrapper, any::<bool>()).prop_map(
        |(level, window_bits, mem_level, filtered, wrapper, verifies)| {
            let strategy = if filtered { Strategy::Filtered } else { Strategy::Default };
            (
                Settings { level, window_bits, mem_level, strategy, tuning: None, narrow: None },
                wrapper,
                verifies,
            )
        },
    )
}

/// The pieces that zlib 1.2.13 allocates, without its state.
fn pieces(settings: &Settings) -> [usize; 4] {
    let window = settings.window();
    [window * 2, window * 2, 2 << (settings.mem_level + 7), 4 << (settings.mem_level + 6)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_went_in_comes_out((settings, wrapper, verifies) in settings(), steps in steps()) {
        let mut owned = Owned::new(settings, wrapper, &pieces(&settings), verifies);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for (salt, step) in steps.iter().enumerate() {
            let data = data(step.kind, step.len, salt);
            owned.starve(step.is_starved);
            output.extend(owned.feed(&data, step.room, step.flush));
            input.extend(data);
            if matches!(step.flush, Flush::Sync | Flush::Full) {
                prop_assert!(output.ends_with(&[0, 0, 0xff, 0xff]) || input.is_empty() || step.len == 0);
                prop_assert!(inflate(&output, wrapper, settings.window_bits) == input, "not all is out after a flush");
            }
        }
        owned.starve(steps[0].is_starved);
        output.extend(owned.feed(&[], 64, Flush::Finish));
        prop_assert!(inflate(&output, wrapper, settings.window_bits) == input);
        prop_assert_eq!(owned.call(&[], 9, Flush::Finish).0, Outcome::StreamEnd);
        prop_assert_eq!(owned.call(&[], 9, Flush::No).0, Outcome::StreamError);
        drop(owned.memory);
    }

    #[test]
    fn a_copy_goes_its_own_way((settings, wrapper, _) in settings(), steps in steps()) {
        let mut first = Owned::new(settings, wrapper, &pieces(&settings), false);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for (salt, step) in steps.iter().enumerate() {
            let data = data(step.kind, step.len, salt);
            output.extend(first.feed(&data, step.room, step.flush));
            input.extend(data);
        }
        let mut second = Owned::new(settings, wrapper, &pieces(&settings), false);
        let store = std::mem::take(&mut second.stream.store);
        second.stream = first.stream.copy_to(store);
        let ends = [(&mut first, &b"one end"[..]), (&mut second, b"another, longer end")].map(|(owned, end)| {
            let rest = owned.feed(end, 1 << 16, Flush::Finish);
            (inflate(&[&output[..], &rest].concat(), wrapper, settings.window_bits), [&input[..], end].concat())
        });
        for (decoded, expected) in ends {
            prop_assert!(decoded == expected);
        }
    }
}

#[test]
fn one_call_within_zlibs_bound_is_enough() {
    for len in [0, 1, 100, 5_000, 70_000, 1_000_000] {
        for kind in 0..4 {
            let input = data(kind, len, 1);
            for level in 1..=9 {
                let settings = Settings { level, ..Settings::default() };
                let mut owned = Owned::new(settings, Wrapper::Zlib, &pieces(&settings), false);
                let bound = len + (len >> 12) + (len >> 14) + (len >> 25) + 13;
                let (outcome, out, taken) = owned.call(&input, bound, Flush::Finish);
                assert_eq!(
                    (outcome, taken),
                    (Outcome::StreamEnd, len),
                    "level {level}, {len} bytes of kind {kind}"
                );
                assert!(inflate(&out, Wrapper::Zlib, 15) == input);
            }
        }
    }
}

#[test]
fn no_progress_is_an_error_that_passes() {
    let settings = Settings::default();
    let mut owned = Owned::new(settings, Wrapper::Gzip, &pieces(&settings), false);
    assert_eq!(owned.call(b"x", 0, Flush::No).0, Outcome::BufError);
    assert_eq!(owned.call(b"x", 100, Flush::No).0, Outcome::Ok);
    assert_eq!(owned.call(b"", 100, Flush::No).0, Outcome::BufError);
    assert_eq!(owned.call(b"", 100, Flush::Sync).0, Outcome::Ok);
    assert_eq!(owned.call(b"", 100, Flush::Sync).0, Outcome::BufError);
    assert_eq!(owned.call(b"", 100, Flush::Finish).0, Outcome::StreamEnd);
    assert_eq!(owned.call(b"x", 100, Flush::Finish).0, Outcome::BufError);
}

#[test]
fn a_flush_that_filled_the_output_is_not_repeated() {
    let settings = Settings::default();
    let mut owned = Owned::new(settings, Wrapper::Raw, &pieces(&settings), false);
    let whole = Owned::new(settings, Wrapper::Raw, &pieces(&settings), false).feed(b"abc", 100, Flush::Sync);
    assert_eq!(owned.call(b"abc", whole.len(), Flush::Sync), (Outcome::Ok, whole, 3));
    assert_eq!(owned.call(b"", 100, Flush::Sync), (Outcome::Ok, Vec::new(), 0));
}

/// Compresses with verification and returns the tally.
fn verified(engines: &'static Engines, settings: Settings, input: &[u8]) -> Tally {
    let mut owned = Owned::by(engines, settings, Wrapper::Gzip, &pieces(&settings), true);
    let mut out = vec![0; input.len() + 10_000];
    let room = out.len();
    let mut io = Io { input, output: &mut out, header: None, complaint: None };
    let mut tally = Tally::default();
    let outcome = owned.stream.deflate(&mut io, Flush::Finish, &mut tally);
    let left = io.output.len();
    assert_eq!(outcome, Outcome::StreamEnd);
    assert!(inflate(&out[..room - left], Wrapper::Gzip, 15) == input);
    tally
}

#[test]
fn what_an_engine_does_wrong_does_not_leave_and_the_engine_comes_back_once_it_is_right() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    static IS_BROKEN: AtomicBool = AtomicBool::new(false);
    static ENGINES: Engines = Engines::with(Backend {
        compress: |kind, settings, chunk, out| {
            let written = pool::compress(kind, settings, chunk, out)?;
            let is_wrong = kind != EngineKind::Original && IS_BROKEN.load(Relaxed);
            out[written.bytes / 2] ^= u8::from(is_wrong) << 4;
            Some(written)
        },
        clock: || NOW.load(Relaxed),
        ..Backend::PROCESS
    });
    // Not so dense that another engine is asked as well.
    let digits = (1..9000_u32).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761) >> 12));
    // Nor a table of numbers.
    let letter = |byte: u8| if byte == b' ' { byte } else { byte - b'0' + b'a' };
    let input: Vec<u8> = digits.flat_map(String::into_bytes).map(letter).take(50_000).collect();
    let input = &input[..];
    for (level, kind) in [(1, EngineKind::Isal), (6, EngineKind::Libdeflate)] {
        let settings = Settings { level, ..Settings::default() };
        let of = |tally: &Tally| tally.engines[kind as usize];
        IS_BROKEN.store(true, Relaxed);
        let tally = verified(&ENGINES, settings, input);
        assert_eq!((tally.mismatches, tally.verified), (1, 0));
        let work = of(&tally);
        assert_eq!((work.chunks, work.wrong, work.opened), (0, 1, 1));
        assert!(!ENGINES.breakers.is_closed(kind));
        IS_BROKEN.store(false, Relaxed);

        assert_eq!(of(&verified(&ENGINES, settings, input)), Default::default(), "it is left alone");

        NOW.fetch_add(60_000_000_000, Relaxed);
        IS_BROKEN.store(true, Relaxed);
        let tally = verified(&ENGINES, settings, input);
        assert_eq!((of(&tally).wrong, of(&tally).opened), (1, 0), "tried again, and still wrong");
        IS_BROKEN.store(false, Relaxed);

        NOW.fetch_add(60_000_000_000, Relaxed);
        while !ENGINES.breakers.is_closed(kind) {
            let work = of(&verified(&ENGINES, settings, input));
            assert_eq!((work.chunks, work.wrong, work.bytes_in), (1, 0, 50_000));
        }
    }
}

#[test]
fn what_a_rival_does_wrong_is_not_used() {
    static ENGINES: Engines = Engines::with(Backend {
        compress: |kind, settings, chunk, out| {
            let written = pool::compress(kind, settings, chunk, out)?;
            out[written.bytes / 2] ^= u8::from(kind == EngineKind::ZlibRs) << 4;
            Some(written)
        },
        ..Backend::PROCESS
    });
    let tally = verified(&ENGINES, Settings { level: 1, ..Settings::default() }, &data(0, 50_000, 0));
    let [isal, zlib_rs] = [EngineKind::Isal, EngineKind::ZlibRs].map(|kind| tally.engines[kind as usize]);
    assert_eq!((isal.chunks, isal.wrong, zlib_rs.chunks, zlib_rs.wrong), (1, 0, 0, 1));
    assert_eq!((tally.mismatches, tally.verified), (1, 50_000));
    assert!(!ENGINES.breakers.is_closed(EngineKind::ZlibRs));
}
