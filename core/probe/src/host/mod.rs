//! What this machine and its kernel offer.

pub mod cpu;

use serde::Serialize;

use self::cpu::Cpu;
use crate::root::Root;

/// Everything that the kernel tells about this host.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Host {
    pub cpu: Cpu,
}

/// Where host facts are read from.
#[derive(Debug, Clone)]
pub struct Probe {
    root: Root,
}

impl Probe {
    /// This host.
    pub fn new() -> Self {
        Self::with_root("/")
    }

    /// A tree with `sys/` and `proc/` below `root`, for tests and for looking at another machine's files.
    /// `cpuid` is still the running CPU's.
    pub fn with_root(root: impl Into<std::path::PathBuf>) -> Self {
        Self { root: Root::new(root) }
    }

    /// Only the CPU, for callers that are about to start a program and have no time to look at every device.
    pub fn cpu(&self) -> Cpu {
        Cpu::read(&self.root)
    }

    pub fn host(&self) -> Host {
        Host { cpu: self.cpu() }
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}
