//! The breaker in front of any engine, on any CPU.

mod support;

use hasten_crypto::LANES;

use support::rsa_keys;
use support::scripted::Scripted;
use support::trial::{lanes_that_are_wrong_are_left_alone_and_come_back, sign};

#[test]
fn scripted_lanes_that_are_wrong_are_left_alone_and_come_back() {
    let key = rsa_keys().good;
    let sign = |spoiled, batch: &_| {
        Scripted::spoil([spoiled; LANES]);
        let verdicts = sign(batch, &key);
        Scripted::spoil([false; LANES]);
        verdicts
    };
    lanes_that_are_wrong_are_left_alone_and_come_back(
        Scripted,
        |batch| sign(false, batch),
        |batch| sign(true, batch),
    );
}
