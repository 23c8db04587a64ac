//! Resources that are scarce in a process, or counted.

use hasten_tests::program::{EAGER, EVERY_BATCH, Program};

#[test]
fn addresses() {
    let _ = Program::with_flags("limits", &["-O1", "-Wno-deprecated-declarations"])
        .same_as_stock(&["addresses"], &[EAGER, EVERY_BATCH]);
}

/// A program with its own generator gets the same handshakes as without us.
#[test]
fn random_numbers() {
    let _ = Program::with_flags("limits", &["-O1", "-Wno-deprecated-declarations"])
        .same_as_stock(&["random"], &[EAGER, EVERY_BATCH]);
}
