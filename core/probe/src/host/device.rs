//! Intel's accelerators, as `hasten-device` finds them.

pub use hasten_device::discovery::{
    Access, Caller, Device, DeviceFile, DeviceKind, Discovery, Heartbeat, Qat, Queue, QueueMode, QueueType,
    Service, Unit,
};
pub use hasten_device::engines::{ENGINES, Entry};
