//! What is shown of an engine.

use hasten_telemetry::EngineCondition;

/// The state in words, with how many processes where they do not agree.
pub(in crate::cmd::top) fn in_words(engine: &EngineCondition) -> String {
    match (engine.state(), engine.processes) {
        (None, _) => "unused".to_owned(),
        (Some(state), (some, all)) if some < all => format!("{state} {some}/{all}"),
        (Some(state), _) => state.to_string(),
    }
}
