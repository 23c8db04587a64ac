//! How a device is doing: what changes from one look to the next.

use crate::Fault;
use crate::discovery::{Device, DeviceKind, Heartbeat, Qat, Unit, heartbeat, qat_debugfs};
use crate::root::Root;
use crate::watch::Watch;

/// One look at one device.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Health {
    pub up: bool,
    /// `None` where the driver does not tell, or not to this user.
    pub heartbeat: Option<Heartbeat>,
    pub utilization: Vec<Utilization>,
    /// Why there is no utilisation although the device could report it.
    pub hint: Option<String>,
}

/// A part of a device and how busy it is, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Utilization {
    /// `pke0`, a slice of a QAT device, or `wq1.0`, a work queue and how full it is.
    pub part: String,
    pub ratio: f64,
}

impl Health {
    /// Reads the attributes found at discovery anew, and whatever telemetry there is.
    pub fn read(root: &Root, device: &Device) -> Self {
        let mut health = Self { up: device.is_up(), ..Self::default() };
        if let Some(qat) = &device.qat {
            health.qat(root, device, qat);
        }
        if let Some(unit) = &device.unit {
            health.utilization = queues(root, device, unit);
        }
        health
    }

    fn qat(&mut self, root: &Root, device: &Device, qat: &Qat) {
        let debug = qat_debugfs(device.model, &device.address);
        self.heartbeat = heartbeat(root, &debug).or(qat.heartbeat);
        self.up &= self.heartbeat != Some(Heartbeat::Lost);
        match root.number::<u32>(format!("{debug}/telemetry/control")) {
            None => {}
            Some(0) => {
                self.hint = Some(format!(
                    "telemetry of {} is off: echo 1 > /{debug}/telemetry/control",
                    device.address
                ));
            }
            Some(_) => {
                let data = root.text(format!("{debug}/telemetry/device_data"));
                self.utilization = data.map(|data| slices(&data)).unwrap_or_default();
            }
        }
    }
}

/// Whether a device of this kind works, as far as its driver reports. Asked before a session is made: one with a dead
/// device would hang.
pub fn heartbeat_of(root: &Root, kind: DeviceKind) -> Result<(), Fault> {
    Watch::new(root, kind).look()
}

/// Lines such as `util_pke0  37`, in percent.
fn slices(data: &str) -> Vec<Utilization> {
    let slice = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let part = name.strip_prefix("util_")?;
        let is_plain = part.len() <= 16 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let percent: u32 = value.trim().parse().ok()?;
        (is_plain && !part.is_empty())
            .then(|| Utilization { part: part.to_owned(), ratio: f64::from(percent.min(100)) / 100.0 })
    };
    data.lines().filter_map(slice).take(256).collect()
}

/// How full the queues are, if the device counts that.
fn queues(root: &Root, device: &Device, unit: &Unit) -> Vec<Utilization> {
    let base = format!("sys/bus/pci/devices/{}/{}", device.address, unit.name);
    let queue = |queue: &crate::discovery::Queue| {
        let occupied: u32 = root.number(format!("{base}/{}/occupancy", queue.name))?;
        let size = queue.size.filter(|&size| size > 0)?;
        let ratio = f64::from(occupied.min(size)) / f64::from(size);
        queue.enabled.then(|| Utilization { part: queue.name.clone(), ratio })
    };
    unit.work_queues.iter().filter_map(queue).collect()
}
