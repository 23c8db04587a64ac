//! Our inflate streams against zlib's: every result and every field, call by call.

#[path = "model/inflate.rs"]
mod model;
#[path = "model/streams.rs"]
mod streams;
#[path = "model/zlib.rs"]
mod zlib;

use proptest::collection::vec;
use proptest::prelude::*;

/// Fewer in `make test` than in `make thorough`.
fn cases() -> u32 {
    if std::env::var_os("HASTEN_TEST_THOROUGH").is_some() { 3000 } else { 600 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Calls of every kind, on streams of every kind, whole and damaged.
    #[test]
    fn calls_in_any_order(data in vec(any::<u8>(), 0..600)) {
        model::check(&data);
    }
}

/// Otherwise the comparison would compare nothing.
#[test]
fn the_model_meets_every_result() {
    let mut seen = std::collections::BTreeSet::new();
    let mut state = 1u64;
    for _ in 0..1500 {
        let data: Vec<u8> = (0..400).map(|_| streams::next(&mut state) as u8).collect();
        seen.extend(model::check(&data));
    }
    for result in [0, 1, 2, -2, -3, -4, -5] {
        assert!(seen.contains(&result), "{result} is not in {seen:?}");
    }
}
