//! What a server answers to load drivers: any bytes, cut anywhere, mean the same

#![no_main]

use hasten_bench::http::{Limits, Response};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { head: 4 << 10, body: 64 << 10 };

fuzz_target!(|data: (u8, &[u8])| {
    let (size, bytes) = data;
    let mut whole = Response::new(LIMITS);
    let taken = whole.push(bytes);
    let mut cut = Response::new(LIMITS);
    let of_cut = bytes.chunks(usize::from(size).max(1)).try_fold(0, |sum, piece| Ok(sum + cut.push(piece)?));
    assert_eq!(taken.is_ok(), of_cut.is_ok(), "{taken:?}, {of_cut:?}");
    if taken.is_err() {
        return;
    }
    assert_eq!(taken, of_cut);
    let told = |response: &Response| (response.is_complete(), response.status(), response.keeps_alive());
    assert_eq!(told(&whole), told(&cut));
    assert_eq!((whole.body(), whole.received()), (cut.body(), cut.received()));
    for name in ["content-length", "connection"] {
        assert_eq!(whole.field(name), cut.field(name));
    }
});
