//! What the accelerators' knobs have in common.

use hasten_plan::Side;

use super::{Facts, Value, facts};

/// The value without it, and `values`; or why the accelerator does not help this program.
pub(super) fn levels(facts: &Facts, name: &str, values: Vec<Value>) -> Result<Vec<Value>, String> {
    let verdict = facts.accelerator(name).ok_or_else(|| format!("there is no accelerator {name}"))?;
    if !facts::is_useful(verdict) {
        let reasons: Vec<_> = verdict.reasons(Side::Against).map(|reason| reason.text.as_str()).collect();
        return Err(reasons.join("; "));
    }
    Ok([Value::stock("off")].into_iter().chain(values).collect())
}

/// Why handshakes do not matter to a load that makes none.
pub(super) fn sees_tls(facts: &Facts) -> Result<(), String> {
    match facts.tls_load {
        Some(false) => Err("the load opens no TLS connection, so it cannot show what handshakes cost".into()),
        Some(true) | None => Ok(()),
    }
}
