//! What a host offers, feature by feature: the state, why it matters, and how to change it.

mod cpu;
pub(crate) mod devices;
mod kernel;
mod memory;

use hasten_probe::Host;
use serde::Serialize;

use crate::accelerator::ACCELERATORS;

const CANNOT_TELL: &str = "cannot tell";

/// One row of `hasten check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, such as `cpu.avx512ifma`.
    pub id: String,
    pub group: Group,
    pub feature: String,
    pub state: State,
    /// What exactly was found.
    pub detail: String,
    /// Why it matters.
    pub why: &'static str,
    /// How to get it; `None` if nothing needs doing or can be done.
    pub fix: Option<String>,
    /// The accelerators that can make use of it.
    pub used_by: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Cpu,
    Memory,
    Devices,
    Kernel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Available,
    /// Present, but not (fully) usable at the moment.
    Limited,
    Absent,
    Unknown,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Limited => "limited",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

/// Every feature of the host, in groups.
pub fn findings(host: &Host) -> Vec<Finding> {
    [
        cpu::findings(&host.cpu),
        memory::findings(&host.memory),
        devices::findings(&host.devices, &host.caller),
        kernel::findings(&host.kernel),
    ]
    .concat()
}

impl Finding {
    fn new(group: Group, id: impl Into<String>, feature: impl Into<String>, why: &'static str) -> Self {
        let id = id.into();
        let used_by = ACCELERATORS.iter().filter(|known| known.uses().contains(&id.as_str()));
        Self {
            used_by: used_by.map(|known| known.name()).collect(),
            id,
            group,
            feature: feature.into(),
            state: State::Unknown,
            detail: CANNOT_TELL.into(),
            why,
            fix: None,
        }
    }

    fn state(mut self, state: State, detail: impl Into<String>) -> Self {
        self.state = state;
        self.detail = detail.into();
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// For a host that reports nothing.
    fn unknown(self) -> Self {
        Self { fix: None, ..self.state(State::Unknown, CANNOT_TELL) }
    }

    /// Available or absent, if known; the fix applies if it is absent.
    fn known(self, there: Option<bool>, fix: &str) -> Self {
        match there {
            None => self,
            Some(true) => self.state(State::Available, "yes"),
            Some(false) => self.state(State::Absent, "no").fix(fix),
        }
    }
}

/// Formats bytes for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(2048 * 1024), "2 MiB");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(1 << 50), "1024 TiB");
    }
}
