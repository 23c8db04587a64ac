//! The number of operations from which a batch of TLS handshakes is worthwhile.

use hasten_names::Algorithm;

use super::{Facts, Knob, Risk, Value, accelerators};
use crate::service::Launch;

pub(super) struct TlsBreakEven;

impl Knob for TlsBreakEven {
    fn name(&self) -> &str {
        "tls-break-even"
    }

    fn about(&self) -> &str {
        "the smallest group of operations that is computed as a batch"
    }

    fn scope(&self) -> &str {
        "programs that link OpenSSL 3 or 4"
    }

    fn cost(&self) -> &str {
        "none"
    }

    fn risk(&self) -> Risk {
        Risk::low("It decides when to use the same code, not what is computed.")
    }

    fn ordered(&self) -> bool {
        true
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        accelerators::sees_tls(facts)?;
        // Its own adjustment, batches always, and hardly ever.
        let values = [1, 2, 4, 6].map(Value::Count).to_vec();
        accelerators::levels(facts, "tls", values).map(|mut levels| {
            levels[0] = Value::stock("auto");
            levels
        })
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        launch.profile.add("run", "only", "tls");
        for operation in Algorithm::NAMES {
            launch.profile.set("tls.break_even", operation, i64::try_from(value.number()).unwrap_or(1));
        }
    }
}
