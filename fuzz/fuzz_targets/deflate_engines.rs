//! One stream by several engines in turn: each goes on where the last has stopped, to the bit.

#![no_main]

use flate2::{Decompress, FlushDecompress, Status};
use hasten_deflate::engine::{self, Bits, Chunk, EngineKind, Settings, Strategy};
use hasten_deflate::{pool, verify};
use libfuzzer_sys::fuzz_target;

/// The original is found by the preload library only.
const ENGINES: [EngineKind; 4] =
    [EngineKind::Isal, EngineKind::Libdeflate, EngineKind::Bucket, EngineKind::ZlibRs];

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, [u8; 4])| {
    let (parts, choices) = input;
    let settings = Settings {
        level: choices[0] % 9 + 1,
        window_bits: 9 + choices[1] % 7,
        mem_level: choices[2] % 9 + 1,
        strategy: Strategy::from_number(i32::from(choices[3] % 8)).unwrap_or(Strategy::Default),
        tuning: None,
        narrow: None,
    };
    let plain: Vec<u8> = parts.iter().flat_map(|(_, part)| part.iter().copied()).collect();
    let packed = pack(&settings, &parts, &plain);
    assert!(unpack(&packed, plain.len()) == plain);
});

fn pack(settings: &Settings, parts: &[(u8, Vec<u8>)], plain: &[u8]) -> Vec<u8> {
    let (mut packed, mut before, mut at) = (Vec::new(), Bits::NONE, 0_usize);
    for number in 0..=parts.len() {
        // The last part is empty: every stream has an end, also one without parts.
        let (choice, length) = parts.get(number).map_or((0, 0), |(choice, part)| (*choice, part.len()));
        let history = &plain[at.saturating_sub(settings.window())..at];
        let chunk = Chunk { before, history, input: &plain[at..at + length], last: number == parts.len() };
        let kind = ENGINES[usize::from(choice) % ENGINES.len()];
        let kind = if engine::serves(kind, settings, &chunk) { kind } else { EngineKind::ZlibRs };
        let mut out = vec![0; engine::bound(length)];
        let written = pool::compress(kind, settings, &chunk, &mut out).expect("the bound is enough");
        assert!(verify::matches(settings, &chunk, &out, &written), "{kind} is not verified");
        packed.extend_from_slice(&out[..written.bytes]);
        (before, at) = (written.after, at + length);
    }
    assert!(before.is_empty(), "the last chunk ends with a byte");
    packed
}

fn unpack(packed: &[u8], length: usize) -> Vec<u8> {
    let mut plain = Vec::with_capacity(length + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(packed, &mut plain, FlushDecompress::Finish).expect("a good stream");
    assert_eq!((status, inflate.total_in()), (Status::StreamEnd, packed.len() as u64));
    plain
}
