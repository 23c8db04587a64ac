//! Garbage collection by one thread.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct SingleThreadedGc;

impl Knob for SingleThreadedGc {
    fn name(&self) -> &str {
        "single-threaded-gc"
    }

    fn about(&self) -> &str {
        "garbage collection by the main thread alone"
    }

    fn scope(&self) -> &str {
        "Node.js whose command line is given"
    }

    fn cost(&self) -> &str {
        "longer pauses"
    }

    fn risk(&self) -> Risk {
        Risk::medium("Pauses become longer, which a mean does not show; look at p99.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        node::takes_argument(facts, "--single-threaded-gc")?;
        Ok(vec![Value::stock("off"), Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("node", "options", "--single-threaded-gc");
    }
}
