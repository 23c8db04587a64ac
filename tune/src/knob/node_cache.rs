//! Start-up of Node.js from a cache.

use super::{Facts, Knob, Risk, Value, accelerators};
use crate::service::Launch;

pub(super) struct NodeCache;

impl Knob for NodeCache {
    fn name(&self) -> &str {
        "node"
    }

    fn about(&self) -> &str {
        "start-up from a cache of resolved and compiled modules"
    }

    fn scope(&self) -> &str {
        "Node.js, by whatever it is started"
    }

    fn cost(&self) -> &str {
        "files in the cache folder of its user"
    }

    fn risk(&self) -> Risk {
        Risk::low("A module that is loaded in an unusual way goes its own way.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        accelerators::levels(facts, "node", vec![Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("run", "only", "node");
    }
}
