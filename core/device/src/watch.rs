//! Repeated checks of whether the devices of a kind still work: a few small files, found once.
//!
//! An unknown state counts against nothing: a container may see a device and nothing of its driver.

use std::sync::OnceLock;
use std::time::Duration;

use crate::Fault;
use crate::discovery::{Device, DeviceKind, Discovery, Heartbeat, heartbeat, qat_debugfs};
use crate::root::Root;

/// How often drivers are asked about their devices. They do not ask the devices much more often themselves.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

static TOLD: OnceLock<fn()> = OnceLock::new();

/// Sets the function that watch threads call when they have opened a breaker, so that the process knows before the next
/// operation. It stays set for the life of the process.
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

/// Where a device's driver reports its state.
#[derive(Debug, Clone)]
struct Files {
    /// Disappears with the driver, or with the device.
    driver: String,
    state: Option<String>,
    /// The device's folder in debugfs, if its driver monitors the firmware.
    debug: Option<String>,
}

impl Watch {
    /// A virtual function is as healthy as its physical one, if this machine sees that.
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

    /// One working device is enough: nobody knows which of them a session uses.
    pub fn look(&self) -> Result<(), Fault> {
        let mut faults = Vec::with_capacity(self.devices.len());
        for device in &self.devices {
            match device.fault(&self.root) {
                Some(fault) => faults.push(fault),
                None => return Ok(()),
            }
        }
        // A lost heartbeat is the more telling of two reasons.
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
