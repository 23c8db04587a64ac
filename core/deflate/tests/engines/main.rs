//! Every engine's output is part of a deflate stream that decodes to its input, whatever the settings.

mod bucket;
mod guard;
mod inflate;
mod original;
mod pool;
mod text;

use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings, Strategy, Tuning, Written, bound, serves};
use hasten_deflate::{checksum, pool as process, verify};
use inflate::{inflate, join};
use proptest::prelude::{Just, ProptestConfig, Strategy as _, any, prop_oneof};
use proptest::proptest;
use text::{Random, noise, text};

const KINDS: [EngineKind; 5] = EngineKind::ALL;

fn compress(kind: EngineKind, settings: &Settings, chunk: &Chunk) -> Option<(Vec<u8>, Written)> {
    original::load();
    let mut out = vec![0xa5; bound(chunk.input.len())];
    let written = process::compress(kind, settings, chunk, &mut out)?;
    out.truncate(written.bytes);
    Some((out, written))
}

/// Compresses, and decodes the output with an inflater that shares nothing with the engines.
fn check(kind: EngineKind, settings: &Settings, chunk: &Chunk) -> Option<(Vec<u8>, Written)> {
    let compressed = compress(kind, settings, chunk);
    assert_eq!(
        compressed.is_some(),
        serves(kind, settings, chunk),
        "{kind} is not what it says: {settings:?}"
    );
    let (out, written) = compressed?;
    let (bytes, end) = join(out.clone(), written.after);
    let before = usize::from(chunk.before.count());
    assert_eq!(Bits::new(bytes.first().map_or(0, |byte| *byte), chunk.before.count()), chunk.before);
    let inflated = inflate(&bytes, before, end, chunk.history);
    assert!(inflated.plain == chunk.input, "{kind} wrote something else");
    assert_eq!(inflated.is_final, chunk.last);
    assert!(inflated.reach <= settings.window(), "{kind} reaches {} bytes back", inflated.reach);
    if chunk.last {
        assert_eq!(inflated.end.div_ceil(8), written.bytes, "bytes behind the end");
        assert!(written.after.is_empty() && !written.synced);
    }
    if written.synced {
        assert!(out.ends_with(&[0, 0, 0xff, 0xff]) && written.after.is_empty());
    }
    assert!(verify::matches(settings, chunk, &out, &written), "verification refuses what is right");
    Some((out, written))
}

#[test]
fn every_level_and_length() {
    let bytes = text(120_000, 1);
    for kind in KINDS {
        for level in 0..=9 {
            for length in [0, 1, 2, 3, 5, 8, 31, 100, 1000, 5000, 33_000, 70_000] {
                let settings = Settings { level, ..Settings::default() };
                for (last, history) in [(true, 0), (true, 20_000), (false, 0), (false, 32_768)] {
                    let (history, rest) = bytes.split_at(history);
                    let chunk = Chunk { before: Bits::NONE, history, input: &rest[..length], last };
                    check(kind, &settings, &chunk);
                }
            }
        }
    }
}

fn settings() -> impl proptest::strategy::Strategy<Value = Settings> {
    let strategy = prop_oneof![
        4 => Just(Strategy::Default),
        1 => (0..5).prop_map(|number| Strategy::from_number(number).unwrap()),
    ];
    let tuning = prop_oneof![
        4 => Just(None),
        1 => (1..50, 1..50, 3..258, 1..300).prop_map(|(good_length, max_lazy, nice_length, max_chain)| {
            Some(Tuning { good_length, max_lazy, nice_length, max_chain })
        }),
    ];
    let window_bits = prop_oneof![2 => Just(15), 1 => 9_u8..=15];
    (0_u8..=9, window_bits, 1_u8..=9, strategy, tuning).prop_map(
        |(level, window_bits, mem_level, strategy, tuning)| Settings {
            narrow: None,
            level,
            window_bits,
            mem_level,
            strategy,
            tuning,
        },
    )
}

/// Stretches of text, noise and repetition.
fn input(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let stretch = 1 + random.next() as usize % 20_000;
        match random.next() % 4 {
            0 => bytes.extend(noise(stretch / 4, random.next())),
            1 => bytes.extend(std::iter::repeat_n(random.next() as u8, stretch)),
            _ => bytes.extend(text(stretch, random.next())),
        }
    }
    bytes.truncate(length);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A stream whose chunks are compressed by one engine after the other, each continuing the bits of the last.
    #[test]
    fn engines_take_turns(
        seed in any::<u64>(),
        settings in settings(),
        steps in proptest::collection::vec((0_usize..KINDS.len(), prop_oneof![0_usize..40, 0_usize..70_000]), 1..6),
    ) {
        let plain = input(steps.iter().map(|(_, length)| length).sum(), seed);
        let mut stream = Vec::new();
        let (mut before, mut position) = (Bits::NONE, 0_usize);
        for (i, (kind, length)) in steps.iter().enumerate() {
            let history = &plain[position.saturating_sub(settings.window())..position];
            let last = i + 1 == steps.len();
            let chunk = Chunk { before, history, input: &plain[position..position + length], last };
            let kind = if serves(KINDS[*kind], &settings, &chunk) { KINDS[*kind] } else { EngineKind::ZlibRs };
            let (out, written) = check(kind, &settings, &chunk).unwrap();
            stream.extend(out);
            (before, position) = (written.after, position + length);
        }
        let end = 8 * stream.len();
        let inflated = inflate(&stream, 0, end, &[]);
        assert!(inflated.plain == plain && inflated.is_final);
        assert!(inflated.reach <= settings.window());
    }

    /// Whatever the room: the result or nothing, and never a byte behind it.
    #[test]
    fn room(kind in 0..KINDS.len(), settings in settings(), length in 0_usize..5_000, room in 0_usize..3_000, last: bool) {
        original::load();
        let plain = input(length, 7);
        let chunk = Chunk { before: Bits::NONE, history: &[], input: &plain, last };
        let mut out = vec![0xa5; room + 64];
        let written = process::compress(KINDS[kind], &settings, &chunk, &mut out[..room]);
        assert!(out[room..].iter().all(|byte| *byte == 0xa5));
        if let Some(written) = written {
            assert!(written.bytes <= room);
            assert!(verify::matches(&settings, &chunk, &out, &written));
        }
    }

    #[test]
    fn checksums(seed in any::<u64>(), length in 0_usize..3_000, cut in 0_usize..3_000) {
        let bytes = noise(length, seed);
        let (head, tail) = bytes.split_at(cut.min(length));
        assert_eq!(checksum::crc32(checksum::crc32(0, head), tail), slow_crc32(&bytes));
        assert_eq!(checksum::adler32(checksum::adler32(1, head), tail), slow_adler32(&bytes));
    }
}

fn slow_crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn slow_adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    b << 16 | a
}

/// `check` fails if more than `bound` is needed; here it is nearly reached.
#[test]
fn noise_stays_within_the_bound() {
    let bytes = noise(100_000, 3);
    for kind in KINDS {
        for level in 1..=9 {
            for mem_level in [1, 8, 9] {
                for (window_bits, strategy) in [
                    (15, Strategy::Default),
                    (9, Strategy::Default),
                    (15, Strategy::Fixed),
                    (15, Strategy::Rle),
                ] {
                    let settings =
                        Settings { level, window_bits, mem_level, strategy, ..Settings::default() };
                    for length in [0, 1, 20, 300, 2_000, 65_536] {
                        let before = Bits::new(0x55, 7);
                        for last in [true, false] {
                            let chunk = Chunk { before, history: &[], input: &bytes[..length], last };
                            check(kind, &settings, &chunk);
                        }
                    }
                }
            }
        }
    }
}

/// zlib-rs used to count such output as taken from its own buffer permanently, and ended the process once that
/// was used up.
#[test]
fn an_output_that_did_not_fit_is_forgotten() {
    let input = noise(100_000, 1);
    let chunk = Chunk { before: Bits::NONE, history: &[], input: &input, last: true };
    for kind in KINDS {
        for length in (100..12_000).step_by(700) {
            let mut out = vec![0; length];
            assert_eq!(process::compress(kind, &Settings::default(), &chunk, &mut out), None);
        }
        check(kind, &Settings::default(), &chunk);
    }
}

#[test]
fn verification_sees_every_flipped_bit() {
    let bytes = text(3_000, 5);
    for kind in KINDS {
        for (last, history, before) in [
            (true, 0, Bits::NONE),
            (true, 1000, Bits::new(5, 3)),
            (false, 0, Bits::NONE),
            (false, 1000, Bits::new(1, 1)),
        ] {
            let settings = Settings { level: 1, ..Settings::default() };
            let (history, input) = bytes.split_at(history);
            let chunk = Chunk { before, history, input: &input[..400], last };
            let (mut out, written) = check(kind, &settings, &chunk).unwrap();
            let (joined, end) = join(out.clone(), written.after);
            let significant =
                if last { inflate(&joined, before.count().into(), end, history).end } else { 8 * out.len() };
            for bit in 0..significant {
                out[bit / 8] ^= 1 << (bit % 8);
                // A different stream may mean the same; most flips do not.
                let same = std::panic::catch_unwind(|| {
                    let (joined, end) = join(out.clone(), written.after);
                    let start = usize::from(before.count());
                    let inflated = inflate(&joined, start, end, history);
                    inflated.plain == chunk.input
                        && inflated.is_final == last
                        && inflated.end.div_ceil(8) == end.div_ceil(8)
                });
                if bit < before.count().into() || !same.unwrap_or(false) {
                    assert!(
                        !verify::matches(&settings, &chunk, &out, &written),
                        "{kind}: bit {bit} of {significant}"
                    );
                }
                out[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn verification_sees_a_wrong_end() {
    let bytes = text(5_000, 6);
    let chunk = Chunk { before: Bits::NONE, history: &[], input: &bytes, last: true };
    let settings = Settings::default();
    let (out, written) = check(EngineKind::Libdeflate, &settings, &chunk).unwrap();
    let longer = [&out[..], &[0]].concat();
    assert!(!verify::matches(&settings, &chunk, &longer, &Written { bytes: written.bytes + 1, ..written }));
    assert!(!verify::matches(&settings, &chunk, &out, &Written { bytes: written.bytes - 1, ..written }));
    assert!(!verify::matches(&settings, &chunk, &out, &Written { bytes: written.bytes + 1, ..written }));
    assert!(!verify::matches(&settings, &Chunk { last: false, ..chunk }, &out, &written));
    assert!(!verify::matches(&settings, &Chunk { input: &bytes[1..], ..chunk }, &out, &written));
}
