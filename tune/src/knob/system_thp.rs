//! Transparent huge pages of the whole system.

use super::facts::THP;
use super::{Facts, Knob, Risk, Value};
use crate::service::Launch;

pub(super) struct SystemThp;

impl Knob for SystemThp {
    fn name(&self) -> &str {
        "system-thp"
    }

    fn about(&self) -> &str {
        "transparent huge pages for all programs; written while a candidate runs, and put back"
    }

    fn scope(&self) -> &str {
        "any program, with --allow-system"
    }

    fn cost(&self) -> &str {
        "every program of the machine gets them"
    }

    fn risk(&self) -> Risk {
        Risk::high("All other programs are affected; hasten run does not set it.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        if !facts.allow_system {
            return Err("it concerns the whole machine: allow it with --allow-system".into());
        }
        if !facts.machine.is_root {
            return Err("only root may set it".into());
        }
        let now = facts.machine.thp.clone().ok_or("this kernel has no transparent huge pages")?;
        let others =
            ["always", "madvise", "never"].into_iter().filter(|value| *value != now).map(Value::word);
        Ok([Value::stock(now.clone())].into_iter().chain(others).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.system.insert(THP.to_owned(), value.to_string());
    }
}
