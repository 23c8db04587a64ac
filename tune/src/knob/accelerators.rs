//! What the knobs of accelerators have in common.

use hasten_plan::Side;

use super::{Facts, Value, facts};

/// Without it, or one of `values`; or why the accelerator is of no use for this program.
pub(super) fn levels(facts: &Facts, name: &str, values: Vec<Value>) -> Result<Vec<Value>, String> {
    let verdict = facts.accelerator(name).ok_or_else(|| format!("there is no accelerator {name}"))?;
    if !facts::is_useful(verdict) {
        let reasons: Vec<_> = verdict.reasons(Side::Against).map(|reason| reason.text.as_str()).collect();
        return Err(reasons.join("; "));
    }
    Ok([Value::stock("off")].into_iter().chain(values).collect())
}
