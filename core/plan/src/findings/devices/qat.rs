//! Possible problems with QAT: the physical function, its configuration, its virtual functions, and their user.

use hasten_probe::host::device::{Caller, Device, Heartbeat, Service};

use super::{Hindrance, permission};

/// What qatlib's documentation asks for: 16 MB for each virtual function, and what the process needs.
const LOCKABLE: u64 = 500_000 * 1024;

pub(super) fn hindrance(device: &Device, devices: &[Device], caller: &Caller) -> Option<Hindrance> {
    if device.virtual_function {
        return virtual_function(device, caller).or_else(|| memory(caller));
    }
    physical_function(device).or_else(|| virtual_functions(device, devices, caller))
}

fn physical_function(device: &Device) -> Option<Hindrance> {
    let address = &device.address;
    let sysfs = format!("/sys/bus/pci/devices/{address}");
    match device.driver.as_deref() {
        None => return Some(Hindrance::new("no driver", format!("modprobe {}", device.module()))),
        Some("vfio-pci") => {
            return Some(Hindrance::new(
                "the whole device is given to one user of vfio-pci",
                format!("driverctl unset-override {address} && modprobe {}", device.module()),
            ));
        }
        Some(_) => {}
    }
    let qat = device.qat.as_ref()?;
    let restart = format!("echo down > {sysfs}/qat/state && echo up > {sysfs}/qat/state");
    if device.state.as_deref() == Some("down") {
        return Some(Hindrance::new("the device is down", format!("echo up > {sysfs}/qat/state")));
    }
    if qat.heartbeat == Some(Heartbeat::Lost) {
        let by_itself = match qat.auto_reset {
            Some(false) => format!("; `echo on > {sysfs}/qat/auto_reset` lets the driver do it"),
            _ => String::new(),
        };
        return Some(Hindrance::new("its firmware does not answer", format!("{restart}{by_itself}")));
    }
    let wrong = [Service::Asymmetric, Service::Compression].map(|service| qat.offers(service) == Some(false));
    (wrong == [true, true]).then(|| {
        Hindrance::new(
            "it is configured for neither public keys (asym) nor compression (dc)",
            format!(
                "echo down > {sysfs}/qat/state && echo 'asym;dc' > {sysfs}/qat/cfg_services && \
                 echo up > {sysfs}/qat/state"
            ),
        )
    })
}

/// A process uses virtual functions; one working function is enough.
fn virtual_functions(device: &Device, devices: &[Device], caller: &Caller) -> Option<Hindrance> {
    let sysfs = format!("/sys/bus/pci/devices/{}", device.address);
    match device.virtual_functions? {
        (_, 0) => {
            return Some(Hindrance::new(
                "no virtual functions are possible",
                "switch on SR-IOV and VT-d in the firmware, and boot with intel_iommu=on",
            ));
        }
        (0, possible) => {
            return Some(Hindrance::new(
                "no virtual functions are switched on",
                format!("echo {possible} > {sysfs}/sriov_numvfs"),
            ));
        }
        _ => {}
    }
    let belongs = |other: &&Device| {
        let physical = other.qat.as_ref().and_then(|qat| qat.physical_function.as_ref());
        other.virtual_function && physical == Some(&device.address)
    };
    let mut hindrances = devices.iter().filter(belongs).map(|function| virtual_function(function, caller));
    // Invisible, as in a container: nothing is known against them.
    let Some(first) = hindrances.next() else { return memory(caller) };
    match first {
        Some(first) if hindrances.all(|hindrance| hindrance.is_some()) => Some(first),
        _ => memory(caller),
    }
}

fn virtual_function(function: &Device, caller: &Caller) -> Option<Hindrance> {
    let address = &function.address;
    let bind = format!("driverctl set-override {address} vfio-pci");
    match function.driver.as_deref() {
        Some("vfio-pci") => {
            let file = function.file.as_ref()?;
            permission::hindrance(file, caller, &format!("modprobe vfio-pci && {bind}"))
        }
        None => Some(Hindrance::new(
            format!("{address} has no driver"),
            format!("{bind} (or `systemctl enable --now qat`, which does it for all)"),
        )),
        Some(driver) => {
            Some(Hindrance::new(format!("{address} belongs to the kernel's driver {driver}"), bind))
        }
    }
}

/// VFIO pins the memory that a device may reach.
fn memory(caller: &Caller) -> Option<Hindrance> {
    let lockable = caller.lockable_bytes.filter(|bytes| *bytes < LOCKABLE)?;
    Some(Hindrance::new(
        format!("this user may lock only {} of memory", super::super::size(lockable)),
        "LimitMEMLOCK=512M in the service's unit; for a login: \
         echo \"$USER - memlock 500000\" | sudo tee /etc/security/limits.d/qat.conf",
    ))
}
