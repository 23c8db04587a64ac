//! The threads of libuv.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct Threadpool;

impl Knob for Threadpool {
    fn name(&self) -> &str {
        "threadpool"
    }

    fn about(&self) -> &str {
        "threads of libuv for files, DNS, zlib and crypto (UV_THREADPOOL_SIZE)"
    }

    fn scope(&self) -> &str {
        "Node.js, and other users of libuv"
    }

    fn cost(&self) -> &str {
        "a stack for each thread"
    }

    fn risk(&self) -> Risk {
        Risk::low("More threads may compete with the main one.")
    }

    fn ordered(&self) -> bool {
        true
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        node::may_run(facts)?;
        facts.unset(&["UV_THREADPOOL_SIZE"])?;
        let values = [2, 8, 16].map(Value::Count);
        Ok([Value::stock("4 (default)")].into_iter().chain(values).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.set("node", "threadpool", i64::try_from(value.number()).unwrap_or(4));
    }
}
