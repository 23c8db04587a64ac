//! Parameters for EVP_KDF come from libssl, but what is answered in its place must be right for all.

#![no_main]
#![allow(dead_code, unused_imports, reason = "modules of the library, of which a part is used here")]

#[path = "../../preload/tls/src/openssl/abi.rs"]
mod abi;
#[path = "../../preload/tls/src/openssl/digest.rs"]
mod digest;
#[path = "../../preload/tls/src/openssl/key_schedule.rs"]
mod key_schedule;
#[path = "../../preload/tls/tests/model/key_schedule.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: model::init(), |data: &[u8]| {
    model::check(data);
});
