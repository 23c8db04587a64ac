//! What the libraries leave open in a process, and what its children can see of it.

use std::path::Path;

use hasten_tests::program::{Library, Program};

fn programs() -> [Program; 2] {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/descriptors.c");
    let compiled = |library, flags: &[&str]| Program::of(library, &source, flags);
    [compiled(Library::Tls, &["-O1"]), compiled(Library::Gzip, &["-O1", "-DWITH_ZLIB"])]
}

#[test]
fn a_process_with_nothing_to_do_has_open_what_it_has_without_them() {
    for program in programs() {
        for limit in ["1024", "256", "64"] {
            let _ = program.same_as_stock(&[limit], &[]);
        }
    }
}

/// The counter page and the control page: out of the way, and gone when another program is executed.
#[test]
fn a_process_that_has_worked_has_two_more_at_the_end_and_passes_none_on() {
    for program in programs() {
        for (limit, first) in [("1024", 512), ("512", 508), ("256", 252), ("64", 60)] {
            let mut output = program.preloaded(&[limit, "work"], &[]).succeeded().output;
            // The descriptors that the test itself inherited are there, too.
            let stock = program.stock(&[limit, "work"]).succeeded().output;
            output.retain(|line| !stock.contains(line));
            let expected = ["self", "fork"].map(|who| {
                let line = |fd, name| format!("{who} {fd} /memfd:hasten-{name} (deleted)");
                [line(first, "telemetry"), line(first + 1, "control")]
            });
            assert_eq!(output, expected.concat(), "limit {limit}");
        }
    }
}
