//! Node's own cache of compiled code.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct CompileCache;

impl Knob for CompileCache {
    fn name(&self) -> &str {
        "compile-cache"
    }

    fn about(&self) -> &str {
        "Node's own cache of compiled code (NODE_COMPILE_CACHE)"
    }

    fn scope(&self) -> &str {
        "Node.js 22.1 and later"
    }

    fn cost(&self) -> &str {
        "files in the cache folder of its user"
    }

    fn risk(&self) -> Risk {
        Risk::low("Coverage of code from the cache is less exact.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let node = node::of(facts)?;
        facts.unset(&["NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"])?;
        if node.major < 22 {
            return Err(format!("Node.js {} has none; it came with 22.1", node.release));
        }
        Ok(vec![Value::stock("off"), Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.set("node", "compile_cache", true);
    }
}
