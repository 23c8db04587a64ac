//! Hostile bytes, and calls in any order: our inflate says what the system's zlib says.

#![no_main]

#[path = "../../core/deflate/tests/model/inflate.rs"]
mod model;
#[path = "../../core/deflate/tests/model/streams.rs"]
mod streams;
#[path = "../../core/deflate/tests/model/zlib.rs"]
mod zlib;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    model::check(data);
});
