//! What devices have counted since this exporter began, also if their counters went and came back meanwhile.

use std::collections::HashMap;
use std::io;

use hasten_device::counters::{Counters, Traffic};
use hasten_device::discovery::Unit;
use hasten_device::health::Health;
use hasten_device::{Device, Root};

/// By PCI address.
#[derive(Debug, Default)]
pub(crate) struct Tallies(HashMap<String, Tally>);

#[derive(Debug, Default)]
struct Tally {
    open: Option<Counters>,
    /// Counted by those that are open.
    now: Traffic,
    /// Counted by those before.
    before: Traffic,
}

impl Tallies {
    /// Reads the counters of a device, if it has any; whoever may not is told how to change that.
    pub(crate) fn read(&mut self, root: &Root, device: &Device, health: &mut Health) -> Option<Traffic> {
        let unit = device.unit.as_ref()?;
        let tally = self.0.entry(device.address.clone()).or_default();
        match tally.read(root, unit)? {
            Ok(traffic) => Some(traffic),
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    let name = &unit.name;
                    health.hint.get_or_insert_with(|| {
                        format!(
                            "{name} counts what it does, which takes CAP_PERFMON to read, or less caution: \
                             sysctl kernel.perf_event_paranoid=0"
                        )
                    });
                }
                None
            }
        }
    }
}

impl Tally {
    fn read(&mut self, root: &Root, unit: &Unit) -> Option<io::Result<Traffic>> {
        // A device that was disabled has taken its counters with it.
        if let Some(traffic) = self.open.as_ref().and_then(|counters| counters.read().ok()) {
            self.now = traffic;
            return Some(Ok(self.total()));
        }
        self.before = self.total();
        (self.open, self.now) = (None, Traffic::default());
        let opened = Counters::open(root, unit)?;
        Some(opened.and_then(|counters| {
            self.now = counters.read()?;
            self.open = Some(counters);
            Ok(self.total())
        }))
    }

    fn total(&self) -> Traffic {
        let sum = |of: fn(&Traffic) -> u64| of(&self.before).saturating_add(of(&self.now));
        Traffic {
            descriptors: sum(|traffic| traffic.descriptors),
            bytes_read: sum(|traffic| traffic.bytes_read),
            bytes_written: sum(|traffic| traffic.bytes_written),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hasten_device::discovery::Discovery;

    use super::*;

    fn put(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    /// The device is simulated: a clock of the kernel counts in place of it.
    #[test]
    fn what_was_counted_stays_so_when_the_counters_go_and_come_back() {
        let root = std::env::temp_dir().join(format!("hasten-tally-{}", std::process::id()));
        let pci = "sys/bus/pci/devices/0000:6a:00.0";
        put(
            &root,
            &[
                (&format!("{pci}/vendor"), "0x8086"),
                (&format!("{pci}/device"), "0x0b25"),
                (&format!("{pci}/dsa0/state"), "enabled"),
            ],
        );
        let source = "sys/bus/event_source/devices/dsa0";
        let files = [
            ("type", "1"),
            ("cpumask", "0"),
            ("format/event_category", "config1:0-3"),
            ("format/event", "config1:4-31"),
        ];
        let files = files.map(|(name, text)| (format!("{source}/{name}"), text));
        put(&root, &files.each_ref().map(|(name, text)| (name.as_str(), *text)));
        let tree = Root::new(&root);
        let device = Discovery::read(&tree).devices.remove(0);
        let (mut tallies, mut health) = (Tallies::default(), Health::default());
        let first = tallies.read(&tree, &device, &mut health);
        let Some(first) = first else {
            // Whoever may not read them is told how to, once the device has nothing graver to say.
            assert!(health.hint.unwrap().ends_with(": sysctl kernel.perf_event_paranoid=0"));
            std::fs::remove_dir_all(&root).unwrap();
            return;
        };
        // As if the device had been disabled, and enabled again.
        tallies.0.get_mut(&device.address).unwrap().open = None;
        std::fs::rename(root.join(source), root.join("away")).unwrap();
        assert_eq!(tallies.read(&tree, &device, &mut health), None);
        std::fs::rename(root.join("away"), root.join(source)).unwrap();
        let second = tallies.read(&tree, &device, &mut health).unwrap();
        assert!(second.descriptors >= first.descriptors && second.bytes_read >= first.bytes_read);
        assert_eq!(health.hint, None);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
