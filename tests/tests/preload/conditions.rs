//! The plan and the library share one table of their requirements on a program.

use hasten_openssl::{HANDSHAKES, LIBSSL, LOOPS};
use hasten_plan::hooks;
use hasten_tests::product;

#[test]
fn what_the_plan_looks_for_is_what_the_library_cannot_do_without() {
    let table = hooks::read(&product::library()).expect("the library has a table");
    let needs = |library: &str, symbol: &&str| {
        table.iter().any(|hook| hook.required && hook.library == library && hook.symbol == **symbol)
    };
    for symbol in HANDSHAKES {
        assert!(needs(LIBSSL[0], &symbol), "{symbol}");
    }
    for symbol in LOOPS {
        assert!(needs("libc.so.6", &symbol), "{symbol}");
    }
}
