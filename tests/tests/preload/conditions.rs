//! The plan and the library have one table of what they need in a program.

use std::collections::BTreeSet;

use hasten_crypto::Ifma;
use hasten_openssl::{HANDSHAKES, LIBSSL, LOOPS};
use hasten_plan::accelerator::tls;
use hasten_plan::hooks;
use hasten_tests::product;

#[test]
fn what_the_plan_looks_for_is_what_the_library_cannot_do_without() {
    let table = hooks::read(&product::library()).expect("the library has a table");
    let needs = |library: &str, symbol: &&str| {
        table.iter().any(|hook| hook.required && hook.library == library && hook.symbol == **symbol)
    };
    for symbol in HANDSHAKES {
        assert!(needs(LIBSSL, &symbol), "{symbol}");
    }
    for symbol in LOOPS {
        assert!(needs("libc.so.6", &symbol), "{symbol}");
    }
}

/// The names differ: `avx512_vbmi2` is the kernel's, `avx512vbmi2` the standard library's.
#[test]
fn what_the_plan_asks_of_the_cpu_is_what_the_engine_asks() {
    let plan: BTreeSet<String> =
        tls::REQUIRED.iter().map(|feature| feature.flag().replace('_', "")).collect();
    let engine: BTreeSet<String> = Ifma::FEATURES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(plan, engine);
}
