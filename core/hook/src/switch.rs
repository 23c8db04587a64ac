//! The kill switch: one variable for all accelerators.

use std::env;
use std::os::unix::ffi::OsStrExt;

/// A list of accelerators to leave out, or `all`.
const DISABLE: &str = "HASTEN_DISABLE";

/// Whether the environment forbids an accelerator.
#[must_use]
pub fn is_disabled(accelerator: &str) -> bool {
    env::var_os(DISABLE).is_some_and(|list| names(list.as_bytes(), accelerator))
}

/// Someone reaching for a kill switch is in a hurry: any case is accepted, and white space as well as commas.
fn names(list: &[u8], accelerator: &str) -> bool {
    let names = [accelerator, "all", "1"];
    let mut words = list.split(|byte| *byte == b',' || is_space(*byte));
    words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())))
}

/// As C's `isspace`, which the shim follows: includes the vertical tab.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn the_kill_switch_is_a_list() {
        for (accelerator, other) in [("tls", "gzip"), ("gzip", "tls")] {
            for list in [accelerator, &format!("{other}, {accelerator}"), "all", "1"] {
                assert!(names(list.as_bytes(), accelerator), "{list}");
            }
            for list in ["", other, &format!("{accelerator}x"), "0", "10", " , ,", "all-but-one"] {
                assert!(!names(list.as_bytes(), accelerator), "{list}");
            }
        }
    }

    #[test]
    fn the_kill_switch_heeds_neither_case_nor_separators() {
        for list in
            ["ALL", "All", "\tall\n", "TLS,GZIP", "tls gzip", "Gzip\tTls", "nothing gzip\ntls", ",,tls,,gzip"]
        {
            for accelerator in ["tls", "gzip"] {
                assert!(names(list.as_bytes(), accelerator), "{list}");
            }
        }
        assert!(names(b"tls \xff", "tls"), "what is no text hides nothing");
        for list in ["allgzip", "tls.gzip", "tls;gzip"] {
            assert!(!names(list.as_bytes(), "gzip"), "{list}");
        }
    }
}
