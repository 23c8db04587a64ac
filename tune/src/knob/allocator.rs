//! Another malloc.

use super::{Facts, Knob, Risk, Value, malloc};
use crate::service::Launch;

pub(super) struct Allocator;

impl Knob for Allocator {
    fn name(&self) -> &str {
        "allocator"
    }

    fn about(&self) -> &str {
        "another allocator, preloaded"
    }

    fn scope(&self) -> &str {
        "programs that are linked with glibc"
    }

    fn cost(&self) -> &str {
        "depends on the allocator: memory is returned later"
    }

    fn risk(&self) -> Risk {
        Risk::medium("A library that knows the insides of malloc may fail; memory may grow over days.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        facts.takes_preload()?;
        malloc::is_of_glibc(facts)?;
        let installed = &facts.machine.allocators;
        if installed.is_empty() {
            return Err(
                "none is installed (Debian: libjemalloc2, libmimalloc2.0, libtcmalloc-minimal4)".into()
            );
        }
        let values = installed.iter().map(|allocator| Value::word(allocator.name()));
        Ok([Value::stock("glibc")].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("process", "allocator", value.to_string());
    }
}
