//! malloc on huge pages.

use super::{Facts, Knob, Risk, Value, malloc};
use crate::service::Launch;

pub(super) struct MallocHugepages;

impl Knob for MallocHugepages {
    fn name(&self) -> &str {
        "malloc-hugepages"
    }

    fn about(&self) -> &str {
        "malloc asks for transparent huge pages (glibc.malloc.hugetlb)"
    }

    fn scope(&self) -> &str {
        "programs that are linked with glibc 2.35 or later"
    }

    fn cost(&self) -> &str {
        "memory: whole pages of 2 MB"
    }

    fn risk(&self) -> Risk {
        Risk::low("Memory may grow, after a fork most of all.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        facts.takes_preload()?;
        malloc::is_of_glibc(facts)?;
        facts.unset(&["GLIBC_TUNABLES"])?;
        match facts.machine.thp.as_deref() {
            Some("madvise") => Ok(vec![Value::stock("off"), Value::On]),
            Some("always") => Err("the kernel gives huge pages to everything already".into()),
            _ => Err("this kernel gives no transparent huge pages".into()),
        }
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.set("process", "malloc_hugepages", true);
    }
}
