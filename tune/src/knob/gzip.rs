//! zlib by faster engines.

use super::{Facts, Knob, Risk, Value, accelerators};
use crate::service::Launch;

pub(super) struct Gzip;

impl Knob for Gzip {
    fn name(&self) -> &str {
        "gzip"
    }

    fn about(&self) -> &str {
        "zlib's compression and decompression by faster engines"
    }

    fn scope(&self) -> &str {
        "programs that link zlib"
    }

    fn cost(&self) -> &str {
        "the bytes differ from zlib's, their content does not"
    }

    fn risk(&self) -> Risk {
        Risk::low("Whoever compares compressed bytes, or has ETags made of them, sees others.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        accelerators::levels(facts, "gzip", vec![Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("run", "only", "gzip");
    }
}
