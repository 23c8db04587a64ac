//! Which engines are asked, and in which order.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use hasten_deflate::engine::bucket;
use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings, Strategy, Tuning};
use hasten_deflate::engines::Engines;

use EngineKind::{Bucket, Isal, Libdeflate, Original, ZlibRs};

fn kinds(settings: &Settings, history: usize, length: usize) -> Vec<EngineKind> {
    among(&Engines::new(), settings, history, length)
}

fn among(engines: &Engines, settings: &Settings, history: usize, length: usize) -> Vec<EngineKind> {
    let bytes: Vec<u8> = (0..history + length).map(|i| b'a' + (i % 26) as u8).collect();
    let (history, input) = bytes.split_at(history);
    let chunk = Chunk { before: Bits::NONE, history, input, last: true };
    engines.choose(settings, &chunk).map(|choice| choice.kind).collect()
}

/// What takes text at the middle levels.
fn ours() -> EngineKind {
    if bucket::Bucket::is_fast() { Bucket } else { Libdeflate }
}

fn level(level: u8) -> Settings {
    Settings { level, ..Settings::default() }
}

#[test]
fn order() {
    let engines = Engines::new();
    assert_eq!(kinds(&level(1), 0, 10_000), [Isal, Libdeflate, Bucket, ZlibRs, Original]);
    assert_eq!(kinds(&level(1), 0, 1000), [Libdeflate, Isal, Bucket, ZlibRs, Original]);
    for middle in 2..=6 {
        assert_eq!(kinds(&level(middle), 0, 10_000)[0], ours());
        assert_eq!(kinds(&level(middle), 0, 1000)[0], if middle < 4 { Libdeflate } else { ours() });
        let in_mid_stream = if middle < 6 { ours() } else { Libdeflate };
        assert_eq!(kinds(&level(middle), 32_768, 100_000)[0], in_mid_stream);
        let is_short = middle == 6 || ours() == Libdeflate;
        assert_eq!(kinds(&level(middle), 32_768, 8000)[0], if is_short { ZlibRs } else { Bucket });
    }
    assert_eq!(kinds(&level(6), 0, 20_000)[0], Libdeflate);
    for high in 7..=9 {
        assert_eq!(kinds(&level(high), 0, 10_000), [Libdeflate, Bucket, ZlibRs, Isal, Original]);
        assert_eq!(kinds(&level(high), 32_768, 100_000)[0], Libdeflate);
    }
    for any in 2..=9 {
        assert_eq!(kinds(&level(any), 32_768, 100)[0], ZlibRs);
    }

    // Where zlib is so fast, or so thorough, that there is little to gain.
    let first = |settings: &Settings, input: &[u8]| {
        let chunk = Chunk { before: Bits::NONE, history: &[], input, last: true };
        engines.choose(settings, &chunk).next().map(|choice| (choice.kind, choice.settings.level))
    };
    let holes = Chunk { before: Bits::NONE, history: &[], input: &[0; 10_000], last: true };
    assert_eq!(first(&level(1), holes.input), Some((Isal, 1)));
    assert_eq!(first(&level(6), holes.input), Some((Original, 6)));
    let counter: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
    let few = [(1, (Original, 1)), (6, (Libdeflate, 8)), (9, (Original, 9))];
    for (high, expected) in few {
        assert_eq!(first(&level(high), &counter), Some(expected));
    }
    let letters: Vec<u8> = (0..10_000_u32).map(|i| b'a' + (i * i % 31 % 3) as u8).collect();
    for (high, expected) in
        [(1, (Isal, 1)), (3, (Original, 3)), (6, (Libdeflate, 7)), (7, (ZlibRs, 7)), (9, (ZlibRs, 9))]
    {
        assert_eq!(first(&level(high), &letters), Some(expected));
    }

    // Where ISA-L is worse than zlib.
    let program: Vec<u8> = (0..10_000_u32).map(|i| (i * i % 127) as u8).collect();
    assert_eq!(first(&level(1), &program), Some((Libdeflate, 3)));
    let numbers: Vec<u8> = (0..10_000_u32).flat_map(|i| (i * 77_777).to_le_bytes()).collect();
    for (high, expected) in [(1, (Libdeflate, 4)), (3, (Libdeflate, 4)), (6, (Libdeflate, 6))] {
        assert_eq!(first(&level(high), &numbers), Some(expected));
    }

    // Ascending numbers: on trial if there is enough to try, else the original's.
    let numbers: Vec<u8> = (0..20_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    for high in 1..=9 {
        let chunk = Chunk { input: &numbers, ..holes };
        let choices: Vec<_> = engines.choose(&level(high), &chunk).collect();
        let counting = (choices[0].kind, choices[0].settings.level, choices[0].on_trial);
        assert_eq!(counting, (Libdeflate, 10, true));
        assert_eq!((choices[1].kind, choices[1].settings.level), (Libdeflate, high));
        assert!(choices[1..].iter().all(|choice| !choice.on_trial));
        assert_eq!(first(&level(high), &numbers[..10_000]), Some((Original, high)), "too few to try");
    }
    let mixed: Vec<u8> =
        (0..20_000_u32).flat_map(|i| format!("{}\n", i * 48_271 % 65_537).into_bytes()).collect();
    assert_eq!(first(&level(1), &mixed), Some((Isal, 1)), "in no order");
    assert_eq!(first(&level(6), &mixed), Some((Libdeflate, 6)), "in no order");
    let rows = |name: &str| -> Vec<u8> {
        (10_000..15_000).flat_map(|i| format!("{{\"{name}\":{i}}},\n").into_bytes()).collect()
    };
    assert_eq!(first(&level(1), &rows("id")), Some((Libdeflate, 1)), "rows with a number");
    assert_eq!(first(&level(6), &rows("id")), Some((Libdeflate, 6)), "rows with a number");
    assert_eq!(first(&level(1), &rows("number of the row")), Some((Isal, 1)), "a number here and there");

    // Noise is tried with ISA-L, whose output is taken only if it really does not compress.
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let noise: Vec<u8> = (0..10_000).map(|_| random()).collect();
    for level in [1, 6, 9].map(level) {
        let first = engines.choose(&level, &Chunk { input: &noise, ..holes }).next();
        assert_eq!(first.map(|choice| (choice.kind, choice.least)), Some((Isal, 9_800)));
    }

    // What only zlib can do.
    assert_eq!(kinds(&level(0), 0, 10_000), [ZlibRs, Original]);
    assert_eq!(kinds(&Settings { strategy: Strategy::Rle, ..level(6) }, 0, 10_000), [Original, ZlibRs]);
    assert_eq!(kinds(&Settings { strategy: Strategy::Filtered, ..level(6) }, 0, 10_000)[0], Original);
    let tuning = Some(Tuning { good_length: 4, max_lazy: 4, nice_length: 8, max_chain: 4 });
    assert_eq!(kinds(&Settings { tuning, ..level(6) }, 0, 10_000), [Original, ZlibRs]);
    // A window that is small for the input, in which zlib's own matcher is best.
    let small = Settings { window_bits: 12, ..level(6) };
    assert_eq!(kinds(&small, 0, 10_000), [Original, ZlibRs, Libdeflate, Bucket, Isal]);
    assert_eq!(kinds(&small, 0, 4_000)[0], ours());
}

/// Sequences: a level of libdeflate that takes many times as long as zlib's must not be chosen for them.
#[test]
fn letters_are_compressed_at_low_levels() {
    let mut state = 1_u32;
    let letters: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"ACGT"[(state >> 30) as usize]
        })
        .collect();
    let chunk = Chunk { before: Bits::NONE, history: &[], input: &letters, last: true };
    for (asked, expected) in [(5, 5), (6, 7)] {
        let engines = Engines::new();
        let first = engines.choose(&level(asked), &chunk).next().expect("the original, at least");
        assert_eq!((first.kind, first.settings.level), (Libdeflate, expected));
    }
}

/// Where there is no zlib to call.
#[test]
fn small_windows_are_served_on_request() {
    let engines = Engines::new();
    let small = |high| Settings { window_bits: 12, ..level(high) };
    assert_eq!(among(&engines, &small(6), 0, 20_000)[0], Original);
    engines.serve_small_windows();
    assert_eq!(among(&engines, &small(6), 0, 20_000)[0], Libdeflate);
    assert!(!among(&engines, &level(4), 0, 100_000).contains(&Bucket), "zlib-ng's output would be smaller");
    assert_eq!(among(&engines, &small(7), 0, 20_000)[0], Libdeflate);
    assert_eq!(among(&engines, &small(1), 0, 20_000)[0], Isal);
    let filtered = Settings { strategy: Strategy::Filtered, ..small(6) };
    assert_eq!(among(&engines, &filtered, 0, 20_000)[0], Original);
}

/// The window of 32 KiB in place of one of 4.
#[test]
fn a_larger_window_than_was_asked_for_takes_less_effort() {
    let engines = Engines::new();
    engines.serve_small_windows();
    let wide = |high| Settings { narrow: Some(12), ..level(high) };
    let narrow = |high| Settings { window_bits: 12, ..level(high) };
    assert_eq!(among(&engines, &wide(1), 0, 100_000)[0], Isal);
    for high in 2..=6 {
        let kinds = among(&engines, &wide(high), 0, 100_000);
        assert_eq!(kinds[..2], [Isal, ours()], "{high}");
        assert_eq!(kinds[2..], among(&engines, &narrow(high), 0, 100_000), "the others are as before");
    }
    // What fits the small window, and short pieces behind others, are as before.
    assert_eq!(among(&engines, &wide(6), 0, 4096), among(&engines, &narrow(6), 0, 4096));
    assert_eq!(among(&engines, &wide(6), 32_768, 3000)[0], among(&engines, &narrow(6), 4096, 3000)[0]);
    assert_eq!(among(&engines, &wide(6), 32_768, 8000)[0], Isal);
    // Between the small window and the full one only ISA-L was found to pay.
    let between = Settings { narrow: Some(14), ..level(6) };
    assert_eq!(among(&engines, &between, 0, 100_000)[..2], [Isal, Libdeflate]);
    let text = b"many words, some of them twice ".repeat(4000);
    let chunk = Chunk { before: Bits::NONE, history: &[], input: &text, last: true };
    let choices: Vec<_> = engines.choose(&wide(6), &chunk).collect();
    let rival = choices[0].against.expect("ISA-L has a rival");
    assert_eq!((rival.level, rival.window_bits), (6, 12));
    assert_eq!(choices[1].against, Some(rival));
    assert!(choices[2..].iter().all(|choice| choice.against.is_none()));
    assert!(engines.choose(&wide(1), &chunk).all(|choice| choice.against.is_none()));
}

#[test]
fn nobody_is_asked_who_is_switched_off() {
    static DISABLED: AtomicU8 = AtomicU8::new(0);
    let engines = Engines::new();
    engines.disable_if(|kind| DISABLED.load(Relaxed) & (1 << kind as u8) != 0);
    DISABLED.store(1 << Libdeflate as u8, Relaxed);
    assert_eq!(among(&engines, &level(9), 0, 10_000), [Bucket, ZlibRs, Isal, Original]);
    assert!(engines.has_any());
    DISABLED.store(u8::MAX, Relaxed);
    assert_eq!(among(&engines, &level(6), 0, 10_000), [Original], "there is nobody behind the original");
    assert!(!engines.has_any());
}

#[test]
fn nobody_is_asked_who_is_not_allowed() {
    let engines = Engines::new();
    engines.allow(&[Libdeflate]);
    assert_eq!(among(&engines, &level(1), 0, 10_000), [Libdeflate, Original]);
    assert!(engines.is_allowed(Libdeflate) && !engines.is_allowed(Isal) && engines.has_any());
    engines.allow(&[]);
    assert_eq!(among(&engines, &level(1), 0, 10_000), [Original]);
    assert!(!engines.has_any());
    engines.allow(&EngineKind::ALL);
    assert_eq!(among(&engines, &level(1), 0, 10_000).len(), 5);
}
