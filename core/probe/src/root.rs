//! Files of `/sys` and `/proc`, read as `hasten-device` reads them.

pub(crate) use hasten_device::Root;
