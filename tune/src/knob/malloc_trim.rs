//! When malloc returns memory.

use super::{Facts, Knob, Risk, Value, malloc};
use crate::service::Launch;

pub(super) struct MallocTrim;

impl Knob for MallocTrim {
    fn name(&self) -> &str {
        "malloc-trim"
    }

    fn about(&self) -> &str {
        "how much free memory malloc keeps, and maps apart (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_)"
    }

    fn scope(&self) -> &str {
        "programs that are linked with glibc"
    }

    fn cost(&self) -> &str {
        "memory: up to this much stays with the service"
    }

    fn risk(&self) -> Risk {
        Risk::low("Memory that is free stays with the process.")
    }

    fn ordered(&self) -> bool {
        true
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        facts.takes_preload()?;
        malloc::is_of_glibc(facts)?;
        facts.unset(&[
            "MALLOC_TRIM_THRESHOLD_",
            "MALLOC_MMAP_THRESHOLD_",
            "MALLOC_TOP_PAD_",
            "GLIBC_TUNABLES",
        ])?;
        let values = [16, 128].map(Value::Mib);
        Ok([Value::stock("dynamic")].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("process", "malloc_keep", i64::try_from(value.number()).unwrap_or(16));
    }
}
