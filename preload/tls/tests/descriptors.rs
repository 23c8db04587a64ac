//! What is known of descriptors, whatever a program does with them.

#![allow(dead_code, reason = "a module of the library, of which a part is used here")]

#[path = "../src/event_loop/fds.rs"]
mod fds;
#[path = "../src/event_loop/kernel.rs"]
mod kernel;
#[path = "model/descriptors.rs"]
mod model;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_any_order(data in vec(any::<u8>(), 0..300)) {
        let _table = fds::tests::TABLE.lock();
        fds::note_process();
        model::check(&data);
    }
}
