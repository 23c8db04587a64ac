//! The kill switch: one variable for all accelerators.

use std::env;

/// A list of accelerators to leave out, or `all`.
const DISABLE: &str = "HASTEN_DISABLE";

/// Whether the environment forbids an accelerator.
#[must_use]
pub fn is_disabled(accelerator: &str) -> bool {
    names(&env::var(DISABLE).unwrap_or_default(), accelerator)
}

fn names(list: &str, accelerator: &str) -> bool {
    list.split(',').map(str::trim).any(|name| name == accelerator || matches!(name, "all" | "1"))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn the_kill_switch_is_a_list() {
        for (accelerator, other) in [("tls", "gzip"), ("gzip", "tls")] {
            for list in [accelerator, &format!("{other}, {accelerator}"), "all", "1"] {
                assert!(names(list, accelerator), "{list}");
            }
            for list in ["", other, &format!("{accelerator}x"), "0"] {
                assert!(!names(list, accelerator), "{list}");
            }
        }
    }
}
