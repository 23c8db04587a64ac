//! Our own engine: what it writes does not depend on the CPU, and positions wrap.

use hasten_deflate::engine::bucket::Bucket;
use hasten_deflate::engine::{Bits, Chunk, Settings, Written, bound};
use hasten_deflate::verify;
use proptest::prelude::{Strategy as _, any, prop_oneof};
use proptest::proptest;

use crate::inflate::{inflate, join};
use crate::input;
use crate::text::{noise, text};

fn compress(engine: &mut Bucket, level: u8, settings: &Settings, chunk: &Chunk) -> (Vec<u8>, Written) {
    let mut out = vec![0x5a; bound(chunk.input.len())];
    let written = engine.compress_at(level, settings, chunk, &mut out).expect("the bound is enough");
    out.truncate(written.bytes);
    (out, written)
}

/// Both kinds of CPU write the same, and an inflater that shares nothing with them reads it.
fn check(engines: &mut [Bucket; 2], level: u8, settings: &Settings, chunk: &Chunk) {
    let [(out, written), other] = engines.each_mut().map(|engine| compress(engine, level, settings, chunk));
    assert!((&out, &written) == (&other.0, &other.1), "level {level}: it depends on the CPU");
    let (bytes, end) = join(out.clone(), written.after);
    let inflated = inflate(&bytes, chunk.before.count().into(), end, chunk.history);
    assert!(inflated.plain == chunk.input, "level {level} wrote something else");
    assert!(inflated.is_final == chunk.last && inflated.reach <= settings.window());
    assert!(verify::matches(settings, chunk, &out, &written));
}

fn engines() -> [Bucket; 2] {
    [Bucket::new().expect("memory"), Bucket::portable().expect("memory")]
}

#[test]
fn positions_wrap() {
    let mut engines = engines();
    // More than four times as long as a position can count, with repetitions just within and beyond the window.
    let stretch = noise(32_768, 1);
    let mut plain = text(70_000, 2);
    for cut in [32_768, 32_767, 32_700, 100] {
        plain.extend(&stretch[..cut]);
        plain.extend(text(33_000, cut as u64));
        plain.extend(std::iter::repeat_n(b'-', 70_000));
    }
    for level in 0..Bucket::LEVELS {
        for (window_bits, history) in [(15, 0), (15, 32_768), (9, 512), (12, 4095)] {
            let settings = Settings { window_bits, ..Settings::default() };
            let (history, input) = plain.split_at(history);
            let chunk = Chunk { before: Bits::new(5, 3), history, input, last: false };
            check(&mut engines, level, &settings, &chunk);
        }
    }
}

#[test]
fn a_match_may_reach_back_a_whole_window_and_no_further() {
    let mut engines = engines();
    let settings = Settings::default();
    // Behind a history that must not be forgotten, and in one piece.
    for (level, history) in (0..Bucket::LEVELS).flat_map(|level| [(level, 0), (level, 32_768)]) {
        let lengths = [32_768, 32_769].map(|distance| {
            let mut plain = noise(100, 3);
            plain.resize(distance, 0);
            plain.extend_from_within(..100);
            let (history, input) = plain.split_at(history);
            let chunk = Chunk { before: Bits::NONE, history, input, last: true };
            check(&mut engines, level, &settings, &chunk);
            compress(&mut engines[0], level, &settings, &chunk).0.len()
        });
        assert!(lengths[0] + 60 < lengths[1], "level {level}, history {history}: {lengths:?}");
    }
}

/// What a table holds from an earlier text has no influence: the same input has the same output.
#[test]
fn output_does_not_depend_on_what_came_before() {
    let settings = Settings::default();
    let input = text(90_000, 4);
    let chunk = Chunk { before: Bits::NONE, history: &[], input: &input, last: true };
    for level in 0..Bucket::LEVELS {
        let [mut used, _] = engines();
        for other in [text(200_000, 5), noise(70_000, 6), vec![0; 3000]] {
            compress(&mut used, level, &settings, &Chunk { input: &other, ..chunk });
        }
        let [mut fresh, _] = engines();
        assert!(
            compress(&mut used, level, &settings, &chunk) == compress(&mut fresh, level, &settings, &chunk)
        );
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    #[test]
    fn any_chunk_on_any_cpu(
        seed in any::<u64>(),
        level in 0..Bucket::LEVELS,
        window_bits in prop_oneof![proptest::prelude::Just(15_u8), 9_u8..=15],
        history in 0_usize..40_000,
        length in prop_oneof![1_usize..300, 1_usize..150_000],
        before in (0_u8..=255, 0_u8..8).prop_map(|(value, count)| Bits::new(value, count)),
        last: bool,
    ) {
        let settings = Settings { window_bits, ..Settings::default() };
        let plain = input(history + length, seed);
        let (history, input) = plain.split_at(history);
        let history = &history[history.len().saturating_sub(settings.window())..];
        check(&mut engines(), level, &settings, &Chunk { before, history, input, last });
    }
}
