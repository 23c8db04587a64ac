//! Whether the devices of a kind still work, looked at again and again: a few small files, found once.
//!
//! What is unknown speaks against nothing: a container may see a device and nothing of its driver.

use std::sync::OnceLock;
use std::time::Duration;

use crate::Fault;
use crate::discovery::{Device, DeviceKind, Discovery, Heartbeat, heartbeat, qat_debugfs};
use crate::root::Root;

/// How often drivers are asked how their devices are. They ask the devices not much more often themselves.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

static TOLD: OnceLock<fn()> = OnceLock::new();

/// Has this called, by threads of the watches, when one has opened a breaker, so that it is known before the next operation.
/// It holds for the life of the process.
pub fn when_opened(tell: fn()) {
    TOLD.get_or_init(|| tell);
}

pub(crate) fn tell() {
    if let Some(tell) = TOLD.get() {
        tell();
    }
}

/// The devices of one kind that have a driver.
#[derive(Debug, Clone)]
pub struct Watch {
    root: Root,
    devices: Vec<Files>,
}

/// Where a device's driver says how it is.
#[derive(Debug, Clone)]
struct Files {
    /// Goes away with the driver, or with the device.
    driver: String,
    state: Option<String>,
    /// The device's folder in debugfs, if its driver listens to its firmware.
    debug: Option<String>,
}

impl Watch {
    /// Virtual functions are as their physical ones, where this machine sees those.
    pub fn new(root: &Root, kind: DeviceKind) -> Self {
        let found = Discovery::read(root).devices;
        let bound = || found.iter().filter(|device| device.kind == kind && device.driver.is_some());
        let has_physical = bound().any(|device| !device.virtual_function);
        let watched = bound().filter(|device| !has_physical || !device.virtual_function);
        Self { root: root.clone(), devices: watched.map(Files::of).collect() }
    }

    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// One that works is enough: which of them a session uses, nobody knows.
    pub fn look(&self) -> Result<(), Fault> {
        let mut faults = Vec::with_capacity(self.devices.len());
        for device in &self.devices {
            match device.fault(&self.root) {
                Some(fault) => faults.push(fault),
                None => return Ok(()),
            }
        }
        // A heartbeat that is lost is the more telling of two reasons.
        let is_lost = faults.contains(&Fault::HeartbeatLost);
        let fault = if is_lost { Some(Fault::HeartbeatLost) } else { faults.pop() };
        fault.map_or(Ok(()), Err)
    }
}

impl Files {
    fn of(device: &Device) -> Self {
        let base = format!("sys/bus/pci/devices/{}", device.address);
        let state = match device.kind {
            DeviceKind::Qat => Some(format!("{base}/qat/state")),
            DeviceKind::Dsa | DeviceKind::Iaa => {
                device.unit.as_ref().map(|unit| format!("{base}/{}/state", unit.name))
            }
            DeviceKind::Dlb => None,
        };
        let is_qat = device.kind == DeviceKind::Qat;
        let debug = is_qat.then(|| qat_debugfs(device.model, &device.address));
        Self { driver: format!("{base}/driver"), state, debug }
    }

    fn fault(&self, root: &Root) -> Option<Fault> {
        let state = self.state.as_ref().and_then(|state| root.word(state));
        if root.link(&self.driver).is_none() || matches!(state.as_deref(), Some("down" | "disabled")) {
            return Some(Fault::Gone);
        }
        let beat = self.debug.as_ref().and_then(|debug| heartbeat(root, debug));
        (beat == Some(Heartbeat::Lost)).then_some(Fault::HeartbeatLost)
    }
}
