//! V8's middle compiler.

use super::{Facts, Knob, Risk, Value, node};
use crate::service::Launch;

const OPTION: &str = "--maglev";

pub(super) struct Maglev;

impl Knob for Maglev {
    fn name(&self) -> &str {
        "maglev"
    }

    fn about(&self) -> &str {
        "V8's middle compiler, between the baseline and the optimising one"
    }

    fn scope(&self) -> &str {
        "Node.js 20 to 26 whose command line is given"
    }

    fn cost(&self) -> &str {
        "none"
    }

    fn risk(&self) -> Risk {
        Risk::medium("Before Node.js 22 V8 calls it experimental.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let node = node::takes_argument(facts, OPTION)?;
        match node.major {
            // V8 12.4 and later have it on by default.
            22.. => Ok(vec![Value::stock("on (default)"), Value::Off]),
            20..22 => Ok(vec![Value::stock("off (default)"), Value::On]),
            _ => Err(format!("the V8 of Node.js {} has none", node.release)),
        }
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        let option = if *value == Value::On { OPTION } else { "--no-maglev" };
        launch.profile.add("node", "options", option);
    }
}
