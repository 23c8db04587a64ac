//! What `hasten check` adds for Envoy: what its configuration could do better.

use std::ffi::OsString;
use std::thread;

use hasten_probe::Program;
use hasten_probe::program::kind::Kind;
use hasten_tune::knob::{self, Suggestion};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct EnvoyReport {
    suggestions: Vec<Suggestion>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<String>,
}

impl EnvoyReport {
    /// Reads the configuration that the arguments name, if the program is Envoy.
    pub(super) fn new(program: &Program, arguments: &[OsString], has_chosen_window: bool) -> Option<Self> {
        if program.kind != Kind::Envoy || arguments.is_empty() {
            return None;
        }
        let arguments: Vec<_> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Some(match knob::suggest_for_envoy(&arguments, cpus) {
            Ok(mut suggestions) => {
                // Whoever has chosen need not be asked.
                suggestions.retain(|suggestion| !has_chosen_window || suggestion.file != "hasten.toml");
                Self { suggestions, unread: None }
            }
            Err(why) => Self { suggestions: Vec::new(), unread: Some(why) },
        })
    }

    pub(super) fn text(&self) -> String {
        if let Some(why) = &self.unread {
            return format!("\nIts configuration: {why}\n");
        }
        let one = |Suggestion { text, why, file, line }: &Suggestion| {
            format!("\n{file}: {text}\n    {line}\n  because {why}.\n")
        };
        match self.suggestions.is_empty() {
            true => "\nIts configuration: nothing to suggest\n".to_owned(),
            false => format!("\nSuggestions\n{}", self.suggestions.iter().map(one).collect::<String>()),
        }
    }
}
