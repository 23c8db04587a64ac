//! The breaker in front of the engine that servers have. A key with a composite prime stands in for an engine that is
//! wrong: what it signs fails its verification.

mod support;

use hasten_crypto::{Ifma, LaneEngine};

use support::rsa_keys;
use support::trial::{lanes_that_are_wrong_are_left_alone_and_come_back, sign};

#[test]
fn ifma_lanes_that_are_wrong_are_left_alone_and_come_back() {
    let Some(ifma) = Ifma::detect() else {
        return eprintln!("skipped: this CPU has no AVX-512 IFMA, or {} is set", Ifma::DISABLE);
    };
    let keys = rsa_keys();
    lanes_that_are_wrong_are_left_alone_and_come_back(
        ifma,
        |batch| sign(batch, &keys.good),
        |batch| sign(batch, &keys.spoiled),
    );
}
