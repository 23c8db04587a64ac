//! The available settings: one small file for each knob, and the list of knobs.
//!
//! To add a knob, write its file and name it in [`registry`]. Its settings go into the profile, so a candidate is
//! measured exactly as `hasten run --config` will start it; only system-wide settings are made outside the profile.

mod accelerators;
mod allocator;
mod always_sparkplug;
mod choices;
mod compile_cache;
mod cpus;
mod custom;
mod facts;
mod gzip;
mod gzip_engines;
mod large_pages;
mod maglev;
mod malloc;
mod malloc_arenas;
mod malloc_hugepages;
mod malloc_trim;
mod node;
mod node_cache;
mod old_space;
mod semi_space;
mod single_threaded_gc;
mod suggest;
mod system_thp;
mod thp;
mod threadpool;
mod tls;
mod tls_break_even;
mod value;

use std::fmt;

use serde::Serialize;

use crate::service::Launch;

pub use self::choices::{Choice, Choices, LeftOut};
pub use self::custom::{Custom, CustomError};
pub use self::facts::{Facts, Machine, NodeFacts};
pub use self::suggest::{Suggestion, suggest, suggest_for_envoy};
pub use self::value::Value;

/// A setting with a few possible values.
pub trait Knob: Send + Sync {
    /// The name on the command line and in reports.
    fn name(&self) -> &str;

    /// What it does, in one line.
    fn about(&self) -> &str;

    /// Which services it is for.
    fn scope(&self) -> &str;

    /// Its cost beyond what is measured.
    fn cost(&self) -> &str;

    fn risk(&self) -> Risk;

    /// Whether neighbouring values are similar, as sizes are and names are not.
    fn ordered(&self) -> bool {
        false
    }

    /// The levels other than the first, the most promising first.
    fn favourites(&self, levels: usize) -> Vec<usize> {
        (1..levels).collect()
    }

    /// The possible values here, the one without the knob first; or why it does not help here.
    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String>;

    /// Applies a value. The first level is never applied: it is the absence of the setting.
    fn apply(&self, value: &Value, launch: &mut Launch);
}

/// The risk of harm that a session does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Risk {
    pub level: RiskLevel,
    /// The harm, in a sentence.
    pub why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    Low,
    Medium,
    High,
}

/// Every knob, in the order in which reports show them.
#[must_use]
pub fn registry() -> &'static [&'static dyn Knob] {
    &[
        &tls::Tls,
        &tls_break_even::TlsBreakEven,
        &gzip::Gzip,
        &gzip_engines::GzipEngines,
        &node_cache::NodeCache,
        &semi_space::SemiSpace,
        &old_space::OldSpace,
        &large_pages::LargePages,
        &compile_cache::CompileCache,
        &always_sparkplug::AlwaysSparkplug,
        &maglev::Maglev,
        &single_threaded_gc::SingleThreadedGc,
        &threadpool::Threadpool,
        &cpus::Cpus,
        &allocator::Allocator,
        &malloc_arenas::MallocArenas,
        &malloc_hugepages::MallocHugepages,
        &malloc_trim::MallocTrim,
        &thp::Thp,
        &system_thp::SystemThp,
    ]
}

impl Risk {
    pub(crate) const fn low(why: &'static str) -> Self {
        Self { level: RiskLevel::Low, why }
    }

    pub(crate) const fn medium(why: &'static str) -> Self {
        Self { level: RiskLevel::Medium, why }
    }

    pub(crate) const fn high(why: &'static str) -> Self {
        Self { level: RiskLevel::High, why }
    }
}

impl RiskLevel {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<K: Knob + ?Sized> Knob for &K {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn about(&self) -> &str {
        (**self).about()
    }

    fn scope(&self) -> &str {
        (**self).scope()
    }

    fn cost(&self) -> &str {
        (**self).cost()
    }

    fn risk(&self) -> Risk {
        (**self).risk()
    }

    fn ordered(&self) -> bool {
        (**self).ordered()
    }

    fn favourites(&self, levels: usize) -> Vec<usize> {
        (**self).favourites(levels)
    }

    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        (**self).levels(facts)
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        (**self).apply(value, launch);
    }
}

impl fmt::Debug for dyn Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
