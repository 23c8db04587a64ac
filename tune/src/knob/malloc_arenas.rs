//! How many arenas malloc has.

use super::{Facts, Knob, Risk, Value, malloc};
use crate::service::Launch;

pub(super) struct MallocArenas;

impl Knob for MallocArenas {
    fn name(&self) -> &str {
        "malloc-arenas"
    }

    fn about(&self) -> &str {
        "the number of heaps that threads share (MALLOC_ARENA_MAX)"
    }

    fn scope(&self) -> &str {
        "programs that are linked with glibc"
    }

    fn cost(&self) -> &str {
        "threads may wait for each other"
    }

    fn risk(&self) -> Risk {
        Risk::low("With many threads, locks of malloc may be contended.")
    }

    fn ordered(&self) -> bool {
        true
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        facts.takes_preload()?;
        malloc::is_of_glibc(facts)?;
        facts.unset(&["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])?;
        let values = [1, 2, 4].map(Value::Count);
        Ok([Value::stock("8 for each CPU")].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("process", "malloc_arenas", i64::try_from(value.number()).unwrap_or(1));
    }
}
