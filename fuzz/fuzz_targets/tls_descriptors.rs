//! A program may do anything with its descriptors, in any order.

#![no_main]
#![allow(dead_code, reason = "a module of the library, of which a part is used here")]

#[path = "../../preload/tls/src/event_loop/fds.rs"]
mod fds;
#[path = "../../preload/tls/src/event_loop/kernel.rs"]
mod kernel;
#[path = "../../preload/tls/tests/model/descriptors.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: fds::note_process(), |data: &[u8]| {
    model::check(data);
});
