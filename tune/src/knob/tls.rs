//! TLS handshakes in batches.

use super::{Facts, Knob, Risk, Value, accelerators};
use crate::service::Launch;

pub(super) struct Tls;

impl Knob for Tls {
    fn name(&self) -> &str {
        "tls"
    }

    fn about(&self) -> &str {
        "TLS handshakes in batches of eight"
    }

    fn scope(&self) -> &str {
        "programs that link OpenSSL 3 or 4"
    }

    fn cost(&self) -> &str {
        "256 KiB of stack for each handshake in progress"
    }

    fn risk(&self) -> Risk {
        Risk::low("Any doubt hands the connection to the original functions.")
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        accelerators::sees_tls(facts)?;
        accelerators::levels(facts, "tls", vec![Value::On])
    }

    fn apply(&self, _: &Value, launch: &mut Launch) {
        launch.profile.add("run", "only", "tls");
    }
}
