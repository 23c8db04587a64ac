//! No transparent huge pages for the service.

use super::{Facts, Knob, Risk, Value};
use crate::service::Launch;

pub(super) struct Thp;

impl Knob for Thp {
    fn name(&self) -> &str {
        "thp"
    }

    fn about(&self) -> &str {
        "whether the kernel may give the service huge pages (prctl)"
    }

    fn scope(&self) -> &str {
        "any program"
    }

    fn cost(&self) -> &str {
        "faults and TLB misses, if they helped"
    }

    fn risk(&self) -> Risk {
        Risk::low("None for correctness.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        match facts.machine.thp.as_deref() {
            Some("always" | "madvise") => Ok(vec![Value::stock("as the system"), Value::word("never")]),
            _ => Err("this kernel gives no transparent huge pages".into()),
        }
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("process", "thp", value.to_string());
    }
}
