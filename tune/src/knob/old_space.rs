//! The old generation of V8.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct OldSpace;

impl Knob for OldSpace {
    fn name(&self) -> &str {
        "old-space"
    }

    fn about(&self) -> &str {
        "the limit of V8's old generation"
    }

    fn scope(&self) -> &str {
        "Node.js"
    }

    fn cost(&self) -> &str {
        "memory: V8 collects later"
    }

    fn risk(&self) -> Risk {
        Risk::medium("A limit that is too small ends the process when its heap grows, perhaps after days.")
    }

    fn ordered(&self) -> bool {
        true
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let node = node::of(facts)?;
        node::undecided(facts, "--max-old-space-size")?;
        let memory = facts.machine.memory_mib.ok_or("no limit of its memory is known")?;
        let stock = node.old_space_mib;
        let differs = |size: &u64| size.abs_diff(stock) * 10 > stock && *size >= 64;
        let values = [memory / 4, memory / 2, memory * 3 / 4].into_iter().filter(differs).map(Value::Mib);
        Ok([Value::stock(format!("{stock}M (default)"))].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        node::option(launch, "--max-old-space-size", Some(value.number()));
    }
}
