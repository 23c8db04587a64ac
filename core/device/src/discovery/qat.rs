//! What the QAT driver reveals in sysfs and debugfs.

use crate::root::Root;

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Qat {
    /// What the device is configured for, in the driver's notation: `sym;asym`, `dc`. Unknown on devices before Gen 4.
    pub services: Option<String>,
    /// `None` where debugfs cannot be read, which takes root.
    pub heartbeat: Option<Heartbeat>,
    /// Whether the driver resets the device by itself when it fails.
    pub auto_reset: Option<bool>,
    /// For a virtual function, the address of the physical one if this machine sees it.
    pub physical_function: Option<String>,
    /// The version of its firmware, where the driver tells: Intel's own does to root, Linux's does not.
    pub firmware: Option<String>,
    /// Errors that the device could not correct, since its start or the last reset of the counter.
    pub fatal_errors: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Heartbeat {
    Alive,
    /// The firmware did not answer the driver.
    Lost,
}

/// The services that hasten uses a QAT device for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Public-key operations.
    Asymmetric,
    /// Deflate.
    Compression,
}

impl Service {
    /// The driver's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asymmetric => "asym",
            Self::Compression => "dc",
        }
    }
}

impl Qat {
    pub(super) fn read(root: &Root, path: &str, address: &str, model: &str) -> Self {
        let debug = debugfs(model, address);
        Self {
            services: root.word(format!("{path}/qat/cfg_services")),
            heartbeat: heartbeat(root, &debug),
            auto_reset: root.word(format!("{path}/qat/auto_reset")).and_then(|word| match &*word {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            }),
            physical_function: root.link(format!("{path}/physfn")).filter(|name| super::is_address(name)),
            firmware: root.word(format!("{debug}/version/fw")),
            fatal_errors: root.number(format!("{path}/qat_ras/errors_fatal")),
        }
    }

    /// Whether the device is configured for `service`; `None` if it does not say.
    pub fn offers(&self, service: Service) -> Option<bool> {
        let services = self.services.as_ref()?;
        Some(services.split([';', ',']).any(|word| word.trim() == service.word()))
    }
}

/// The device's folder in debugfs.
pub(crate) fn debugfs(model: &str, address: &str) -> String {
    // 401xx and 402xx are served by the driver of 4xxx, but keep their names.
    format!("sys/kernel/debug/qat_{model}_{address}")
}

pub(crate) fn heartbeat(root: &Root, debug: &str) -> Option<Heartbeat> {
    match root.number::<i32>(format!("{debug}/heartbeat/status"))? {
        0 => Some(Heartbeat::Alive),
        _ => Some(Heartbeat::Lost),
    }
}
