//! Code of Node.js on huge pages.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

pub(super) struct LargePages;

impl Knob for LargePages {
    fn name(&self) -> &str {
        "large-pages"
    }

    fn about(&self) -> &str {
        "the code of Node.js on transparent huge pages"
    }

    fn scope(&self) -> &str {
        "Node.js 18 to 25"
    }

    fn cost(&self) -> &str {
        "about 15 MB of memory"
    }

    fn risk(&self) -> Risk {
        Risk::low("Debuggers and profilers see code at an anonymous place.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let node = node::of(facts)?;
        node::undecided(facts, "--use-largepages")?;
        if node.major >= 26 {
            return Err(format!("Node.js {} no longer supports --use-largepages", node.release));
        }
        match facts.machine.thp.as_deref() {
            Some("always" | "madvise") => Ok(vec![Value::stock("off"), Value::On]),
            _ => Err("this kernel gives no transparent huge pages".into()),
        }
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("node", "options", "--use-largepages=on");
    }
}
