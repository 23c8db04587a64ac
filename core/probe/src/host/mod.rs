//! What this machine and its kernel offer.

pub mod cgroup;
pub mod cpu;
pub mod device;
pub mod kernel;
pub mod memory;

use serde::Serialize;

use self::cgroup::Cgroup;
use self::cpu::Cpu;
use self::device::{Caller, Device, Discovery};
use self::kernel::Kernel;
use self::memory::Memory;
use crate::root::Root;

/// Everything the kernel says about this host.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Host {
    pub cpu: Cpu,
    pub memory: Memory,
    pub devices: Vec<Device>,
    /// The calling user, as far as devices care.
    pub caller: Caller,
    pub kernel: Kernel,
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

    /// How much memory a process started here may use: the control group's limit, or all there is.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let installed = Memory::read(&self.root).total_kib.map(|kib| kib * 1024);
        Cgroup::read(&self.root).memory_limit_bytes.into_iter().chain(installed).min()
    }

    /// How many CPUs this process, and thus what it starts, may run on.
    pub fn cpus_allowed(&self) -> Option<usize> {
        let status = self.root.text("proc/self/status")?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
        let words = mask.trim().split(',').map(|word| u32::from_str_radix(word, 16));
        words.map(|word| word.ok().map(|word| word.count_ones() as usize)).sum()
    }

    /// The same CPUs by their numbers, as the kernel writes them: `0,2-3`.
    pub fn cpus_allowed_list(&self) -> Option<String> {
        let status = self.root.text("proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(list.trim().to_owned())
    }

    /// Only the NUMA nodes, in order; none if the kernel does not tell.
    pub fn nodes(&self) -> Vec<memory::NumaNode> {
        memory::nodes(&self.root)
    }

    /// Only accelerator devices, and the calling user.
    pub fn devices(&self) -> Discovery {
        Discovery::read(&self.root)
    }

    pub fn host(&self) -> Host {
        let Discovery { devices, caller } = self.devices();
        Host {
            cpu: self.cpu(),
            memory: Memory::read(&self.root),
            devices,
            caller,
            kernel: Kernel::read(&self.root),
        }
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}
