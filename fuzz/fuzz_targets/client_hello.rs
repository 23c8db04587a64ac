//! What a client says first, of which `preload/envoy` reads the keys

#![no_main]

#[path = "../../preload/envoy/src/tls/hello.rs"]
mod hello;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|record: &[u8]| {
    let Some(offers) = hello::offers(record) else { return };
    let length = 5 + usize::from(u16::from_be_bytes([record[3], record[4]]));
    let record = &record[..length];
    for key in [offers.x25519, offers.hybrid].into_iter().flatten() {
        assert!(record.as_ptr_range().contains(&key.as_ptr()), "a key is in the record");
    }
    assert_eq!(hello::offers(record), Some(offers), "what comes behind the record is no part of it");
    assert_eq!(hello::offers(&record[..length - 1]), None, "a record that is not whole has no keys");
});
