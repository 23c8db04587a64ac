//! The tunings of the reference white paper that work on an unmodified binary, one by one.

use std::fmt;

use super::case::Workload;
use super::runtime::Version;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tuning {
    /// The start-up cache of the plugin, and nothing else.
    BytecodeCache,
    /// The advice for a trace of this load.
    SemiSpace,
    /// The white paper's fixed 64 MB.
    SemiSpace64,
    /// Code on huge pages.
    HugePages,
    /// Built-in code next to compiled code. On by default: the stock side has it off.
    ShortBuiltinCalls,
    /// The whole process on one CPU.
    Cpuset,
    /// The main thread on one CPU, V8's threads on any CPU.
    MainThreadAffinity,
}

impl Tuning {
    pub const ALL: [Self; 7] = [
        Self::BytecodeCache,
        Self::SemiSpace,
        Self::SemiSpace64,
        Self::HugePages,
        Self::ShortBuiltinCalls,
        Self::Cpuset,
        Self::MainThreadAffinity,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BytecodeCache => "bytecode-cache",
            Self::SemiSpace => "semi-space",
            Self::SemiSpace64 => "semi-space-64",
            Self::HugePages => "huge-pages",
            Self::ShortBuiltinCalls => "short-builtin-calls",
            Self::Cpuset => "cpuset",
            Self::MainThreadAffinity => "main-thread-affinity",
        }
    }

    /// Why it cannot be measured there, if so.
    pub(super) fn obstacle(self, version: Version, cpus: usize) -> Option<&'static str> {
        match self {
            Self::HugePages if version.major >= 26 => {
                Some("Node.js 26 no longer supports --use-largepages: the option does nothing")
            }
            Self::Cpuset | Self::MainThreadAffinity if cpus < 2 => {
                Some("this machine has one CPU, so every process stays on it anyway")
            }
            _ => None,
        }
    }

    /// Whether it may matter to `workload` at all.
    pub(super) fn concerns(self, workload: Workload) -> bool {
        match self {
            // Its threads are gone before they could be told apart, and it collects next to nothing.
            Self::MainThreadAffinity | Self::SemiSpace => workload != Workload::FaasStartup,
            _ => true,
        }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_version_ignores_is_not_measured() {
        let version = |major| Version { major, minor: 0, patch: 0 };
        assert!(Tuning::HugePages.obstacle(version(24), 2).is_none());
        assert!(Tuning::HugePages.obstacle(version(26), 2).is_some());
        assert!(Tuning::Cpuset.obstacle(version(24), 1).is_some());
        assert!(Tuning::SemiSpace64.obstacle(version(26), 1).is_none());
    }
}
