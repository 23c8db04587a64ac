//! The direct derivation gives the same results as OpenSSL's.

#![allow(dead_code, unused_imports, reason = "modules of the library, of which a part is used here")]

#[path = "../src/openssl/abi.rs"]
mod abi;
#[path = "../src/openssl/digest.rs"]
mod digest;
#[path = "../src/openssl/key_schedule.rs"]
mod key_schedule;
#[path = "model/key_schedule.rs"]
mod model;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parameters_of_every_kind(data in vec(any::<u8>(), 0..300)) {
        model::init();
        model::check(&data);
    }
}

/// Otherwise the comparison would compare nothing.
#[test]
fn what_libssl_asks_for_is_answered_directly() {
    model::init();
    for which in 0..3 {
        assert_eq!(model::check(&[which]), model::Outcome { is_ours: true, succeeded: true }, "{which}");
    }
}
