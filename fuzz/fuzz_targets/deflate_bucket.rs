//! Our own engine on texts longer than its positions can count: what it writes is right, and the same on every CPU.

#![no_main]

use hasten_deflate::engine::bucket::Bucket;
use hasten_deflate::engine::{self, Bits, Chunk, Settings, Written};
use hasten_deflate::verify;
use libfuzzer_sys::fuzz_target;

/// Longer texts take too long, and find nothing that shorter ones do not.
const LONGEST: usize = 150_000;

/// A piece of text: how often it is repeated, how many of the bytes before follow, and itself.
type Part = (u8, u16, Vec<u8>);

fuzz_target!(|input: (Vec<Part>, [u8; 5], u16)| {
    let (parts, choices, history) = input;
    let plain = spread(&parts);
    let settings = Settings { window_bits: 9 + choices[0] % 7, ..Settings::default() };
    let (history, input) = plain.split_at(usize::from(history).min(settings.window()).min(plain.len()));
    let before = Bits::new(choices[1], choices[2] % 8);
    let chunk = Chunk { before, history, input, last: choices[3] % 2 == 0 };
    let level = choices[4] % Bucket::LEVELS;
    let packed = pack(Bucket::new(), level, &settings, &chunk);
    assert!(packed == pack(Bucket::portable(), level, &settings, &chunk), "it depends on the CPU");
    assert!(verify::matches(&settings, &chunk, &packed.0, &packed.1), "it is not verified");
});

/// Repeats pieces, so that a few bytes from the fuzzer make a text with matches near and far.
fn spread(parts: &[Part]) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::new();
    for (times, back, part) in parts {
        for _ in 0..=*times {
            plain.extend(part);
        }
        let start = plain.len().saturating_sub(usize::from(*back));
        plain.extend_from_within(start..);
        if plain.len() > LONGEST {
            break;
        }
    }
    plain.truncate(LONGEST);
    plain
}

fn pack(engine: Option<Bucket>, level: u8, settings: &Settings, chunk: &Chunk) -> (Vec<u8>, Written) {
    let mut out = vec![0; engine::bound(chunk.input.len())];
    let mut engine = engine.expect("memory");
    let written = engine.compress_at(level, settings, chunk, &mut out).expect("the bound is enough");
    out.truncate(written.bytes);
    (out, written)
}
