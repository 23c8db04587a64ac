//! The young generation of V8.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct SemiSpace;

impl Knob for SemiSpace {
    fn name(&self) -> &str {
        "semi-space"
    }

    fn about(&self) -> &str {
        "the largest semi-space of V8: fewer collections, fewer survivors"
    }

    fn scope(&self) -> &str {
        "Node.js"
    }

    fn cost(&self) -> &str {
        "three times its size in memory for each isolate"
    }

    fn risk(&self) -> Risk {
        Risk::low("A memory limit may be met that was not met before.")
    }

    fn ordered(&self) -> bool {
        true
    }

    /// Half of the default comes first among the levels and hardly ever helps; four times is usually enough.
    fn favourites(&self, levels: usize) -> Vec<usize> {
        let mut levels: Vec<usize> = (1..levels).collect();
        levels.sort_by_key(|level| match level {
            3 => 0,
            2 => 2,
            1 => 3,
            _ => 1,
        });
        levels
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let node = node::of(facts)?;
        node::undecided(facts, "--max-semi-space-size")?;
        let stock = node.semi_space_mib;
        // Half of the memory is for everything else.
        let fits = |size: u64| facts.machine.memory_mib.is_none_or(|memory| 3 * size <= memory / 2);
        let values = [stock / 2, stock * 2, stock * 4, stock * 8].into_iter();
        let values = values.filter(|size| (1..=512).contains(size) && fits(*size)).map(Value::Mib);
        Ok([Value::stock(format!("{stock}M (default)"))].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        node::option(launch, "--max-semi-space-size", Some(value.number()));
    }
}
