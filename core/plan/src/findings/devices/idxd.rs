//! Possible problems with DSA and IAA: the device, its work queues, and their user.

use hasten_probe::host::device::{Caller, Device, Queue, QueueMode, QueueType, Unit};

use super::{Hindrance, permission};

pub(super) fn hindrance(device: &Device, caller: &Caller) -> Option<Hindrance> {
    let address = &device.address;
    match device.driver.as_deref() {
        None => return Some(Hindrance::new("no driver", "modprobe idxd")),
        Some("vfio-pci") => {
            return Some(Hindrance::new(
                "the device is given to one user of vfio-pci",
                format!("driverctl unset-override {address} && modprobe idxd"),
            ));
        }
        Some(_) => {}
    }
    let Some(unit) = &device.unit else {
        return Some(Hindrance::new(
            "its driver has made no device",
            "boot with intel_iommu=on,sm_on, and look at `dmesg | grep idxd`",
        ));
    };
    if unit.pasid == Some(false) {
        return Some(Hindrance::new(
            "it cannot use a process's addresses (PASID is off)",
            "switch on VT-d in the firmware, and boot with intel_iommu=on,sm_on",
        ));
    }
    queues(unit, device.state.as_deref(), caller)
}

/// One working queue is enough; otherwise, what is wrong with the most promising one.
fn queues(unit: &Unit, state: Option<&str>, caller: &Caller) -> Option<Hindrance> {
    let user: Vec<_> = unit.work_queues.iter().filter(|queue| is_for_users(queue)).collect();
    let enabled: Vec<_> = user.iter().filter(|queue| queue.enabled).collect();
    if state == Some("disabled") {
        return Some(Hindrance::new(
            "the device is disabled",
            match user.first() {
                Some(queue) => enable(unit, queue),
                None => configure(unit, None),
            },
        ));
    }
    if enabled.is_empty() {
        return Some(no_queue(unit, &user));
    }
    let mut hindrances = enabled.iter().map(|queue| queue_hindrance(unit, queue, caller));
    let first = hindrances.next().flatten()?;
    if hindrances.any(|hindrance| hindrance.is_none()) { None } else { Some(first) }
}

/// A queue without a type may be one.
fn is_for_users(queue: &Queue) -> bool {
    matches!(queue.queue_type, QueueType::User | QueueType::Unknown)
        && queue.driver.as_deref().is_none_or(|driver| driver == "user")
}

fn no_queue(unit: &Unit, user: &[&Queue]) -> Hindrance {
    if let Some(queue) = user.first() {
        return Hindrance::new(format!("queue {} is disabled", queue.name), enable(unit, queue));
    }
    let kernel = unit.work_queues.iter().find(|queue| queue.enabled);
    let why = match kernel {
        Some(queue) => format!(
            "its queues are the kernel's ({} has the driver {})",
            queue.name,
            queue.driver.as_deref().unwrap_or("kernel")
        ),
        None => "no work queue is configured".to_owned(),
    };
    Hindrance::new(why, configure(unit, kernel))
}

fn queue_hindrance(unit: &Unit, queue: &Queue, caller: &Caller) -> Option<Hindrance> {
    let (name, full) = (&queue.name, format!("{}/{}", unit.name, queue.name));
    if queue.mode == Some(QueueMode::Dedicated) {
        return Some(Hindrance::new(
            format!("queue {name} is dedicated, and the library takes shared ones"),
            configure(unit, Some(queue)),
        ));
    }
    if unit.is_served(queue) == Some(false) {
        let Some(engine) = unit.idle_engines.first() else {
            return Some(Hindrance::new(
                format!("no engine serves queue {name}"),
                configure(unit, Some(queue)),
            ));
        };
        let group = queue.group.unwrap_or(0);
        return Some(Hindrance::new(
            format!("no engine serves queue {name}"),
            format!(
                "accel-config disable-device {unit} && accel-config config-engine {unit}/{engine} \
                 --group-id={group} && accel-config enable-device {unit} && accel-config enable-wq {full}",
                unit = unit.name
            ),
        ));
    }
    permission::hindrance(&queue.file, caller, "udevadm trigger --subsystem-match=dsa")
}

fn enable(unit: &Unit, queue: &Queue) -> String {
    format!("accel-config enable-device {0}; accel-config enable-wq {0}/{1}", unit.name, queue.name)
}

/// Configures one shared queue for user space with one engine, starting from the present state.
fn configure(unit: &Unit, queue: Option<&Queue>) -> String {
    let name = &unit.name;
    let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let wq = queue.map_or_else(|| format!("wq{number}.0"), |queue| queue.name.clone());
    let size = queue.and_then(|queue| queue.size).or(unit.total_size).filter(|size| *size > 1).unwrap_or(16);
    let disable = match queue {
        Some(_) => format!("accel-config disable-device {name}; "),
        None => String::new(),
    };
    format!(
        "{disable}accel-config config-engine {name}/engine{number}.0 --group-id=0 && \
         accel-config config-wq {name}/{wq} --group-id=0 --mode=shared --type=user --driver-name=user --name=hasten \
         --priority=10 --wq-size={size} --threshold={threshold} --block-on-fault=1 && \
         accel-config enable-device {name} && accel-config enable-wq {name}/{wq}",
        threshold = size - 1,
    )
}
