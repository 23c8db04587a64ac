//! The kill switch: one variable for all accelerators, read once.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};

/// A list of accelerators to leave out, or `all`.
const DISABLE: &str = "HASTEN_DISABLE";

/// Whether the hooks of one accelerator do anything; off until [`Switch::init`].
#[derive(Debug)]
pub struct Switch {
    accelerator: &'static str,
    is_on: AtomicBool,
}

impl Switch {
    pub const fn new(accelerator: &'static str) -> Self {
        Self { accelerator, is_on: AtomicBool::new(false) }
    }

    /// Reads the environment. On if the library wants to be and nobody forbids it, which is returned.
    pub fn init(&self, wanted: bool) -> bool {
        let is_on = wanted && !names(&env::var(DISABLE).unwrap_or_default(), self.accelerator);
        self.is_on.store(is_on, Ordering::Relaxed);
        is_on
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
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
