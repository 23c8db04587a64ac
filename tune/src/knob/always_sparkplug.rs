//! V8's baseline compiler, at once.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct AlwaysSparkplug;

impl Knob for AlwaysSparkplug {
    fn name(&self) -> &str {
        "always-sparkplug"
    }

    fn about(&self) -> &str {
        "code from V8's baseline compiler at the first call"
    }

    fn scope(&self) -> &str {
        "Node.js whose command line is given"
    }

    fn cost(&self) -> &str {
        "memory and start-up time: everything is compiled"
    }

    fn risk(&self) -> Risk {
        Risk::low("Start-up takes longer.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        node::takes_argument(facts, "--always-sparkplug")?;
        Ok(vec![Value::stock("off"), Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("node", "options", "--always-sparkplug");
    }
}
