//! Which engines compress.

use hasten_names::ORIGINAL;
use hasten_plan::accelerator::gzip::ENGINES;

use super::{Facts, Knob, Risk, Value, accelerators};
use crate::service::Launch;

pub(super) struct GzipEngines;

impl Knob for GzipEngines {
    fn name(&self) -> &str {
        "gzip-engines"
    }

    fn about(&self) -> &str {
        "one engine for all that zlib is asked for, instead of a table"
    }

    fn scope(&self) -> &str {
        "programs that link zlib"
    }

    fn cost(&self) -> &str {
        "responses may become larger"
    }

    fn risk(&self) -> Risk {
        Risk::low("Sizes of responses change with the engine.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let values =
            ENGINES.iter().filter(|engine| **engine != ORIGINAL).map(|engine| Value::word(*engine)).collect();
        accelerators::levels(facts, "gzip", values).map(|mut levels| {
            levels[0] = Value::stock("auto");
            levels
        })
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.add("run", "only", "gzip");
        launch.profile.add("gzip", "engines", &value.to_string());
    }
}
