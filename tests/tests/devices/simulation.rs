//! A host with simulated devices: a `sys` of files, the simulated libraries, and the file that controls the faults.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_tests::site::Site;

#[path = "../../devices/injected.rs"]
mod injected;

pub(crate) use self::injected::Injected;

const MAGIC: u32 = 0x6d69_7368;
const BLOCK: u64 = 40;
const ENGINES: u64 = 5;

/// An engine's index in `tests/devices/layout.h`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Simulated {
    QatZip,
    Qpl,
    Qat = 3,
}

impl Injected {
    pub(crate) const FAULTS: [Self; 12] = [
        Self::InitFailure,
        Self::NoInstance,
        Self::Slow,
        Self::Hang,
        Self::WrongBytes,
        Self::Abort,
        Self::Gone,
        Self::Partial,
        Self::QueueFull,
        Self::Restarting,
        Self::HangInit,
        Self::TooLong,
    ];
}

pub(crate) struct Simulation {
    folder: tempfile::TempDir,
    control: File,
}

impl Simulation {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("hasten-devices-").tempdir().unwrap();
        // The workers of a server started by root run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for library in fs::read_dir(libraries()).unwrap().map(Result::unwrap) {
            if library.file_name().to_string_lossy().contains(".so.") {
                fs::copy(library.path(), folder.path().join(library.file_name())).unwrap();
            }
        }
        let path = folder.path().join("control");
        let mut bytes = vec![0; (8 + BLOCK * ENGINES) as usize];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        sysfs(&folder.path().join("host"));
        let control = File::options().read(true).write(true).open(path).unwrap();
        Self { folder, control }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The machine that has the devices, according to its files.
    pub(crate) fn host(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    /// A server that uses these devices.
    pub(crate) fn site(&self, devices: &'static str) -> Site {
        self.environment(devices).into_iter().fold(Site::new(), |site, (name, value)| site.env(name, value))
    }

    /// Such a server's environment.
    pub(crate) fn environment(&self, devices: &'static str) -> [(&'static str, &'static str); 3] {
        let leaked = |path: PathBuf| &*path.into_os_string().into_string().unwrap().leak();
        [
            ("HASTEN_DEVICES", devices),
            ("HASTEN_DEVICE_LIBRARIES", leaked(self.folder.path().to_owned())),
            ("HASTEN_SYSFS_ROOT", leaked(self.host())),
        ]
    }

    pub(crate) fn inject(&self, engine: Simulated, fault: Injected) {
        if fault == Injected::Slow {
            // Beyond the time-out of every test.
            self.write(engine, 4, 1000);
        }
        self.write(engine, 0, fault as u32);
    }

    /// Makes every operation take this much longer from now on.
    pub(crate) fn slow(&self, engine: Simulated, milliseconds: u32) {
        self.write(engine, 4, milliseconds);
        self.write(engine, 0, Injected::Slow as u32);
    }

    /// The device was reset: existing sessions are dead, new ones work.
    pub(crate) fn reset(&self, engine: Simulated) {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, Self::offset(engine) + 8).unwrap();
        self.write(engine, 8, u32::from_le_bytes(word) + 1);
    }

    pub(crate) fn operations(&self, engine: Simulated) -> u64 {
        self.read(engine, 24)
    }

    /// Calls of a child that use its parent's sessions.
    pub(crate) fn trespasses(&self, engine: Simulated) -> u32 {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, Self::offset(engine) + 12).unwrap();
        u32::from_le_bytes(word)
    }

    fn offset(engine: Simulated) -> u64 {
        8 + BLOCK * engine as u64
    }

    fn write(&self, engine: Simulated, at: u64, value: u32) {
        self.control.write_all_at(&value.to_le_bytes(), Self::offset(engine) + at).unwrap();
    }

    fn read(&self, engine: Simulated, at: u64) -> u64 {
        let mut word = [0; 8];
        self.control.read_exact_at(&mut word, Self::offset(engine) + at).unwrap();
        u64::from_le_bytes(word)
    }
}

fn libraries() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("devices");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/devices.sh");
    let output = Command::new(script).arg(&folder).output().expect("scripts/devices.sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// One QAT and one IAA, both in service.
fn sysfs(root: &Path) {
    let devices = root.join("sys/bus/pci/devices");
    let write = |path: &Path, name: &str, text: &str| {
        let path = path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (address, id, driver) in [("0000:6b:00.0", "0x4940", "4xxx"), ("0000:6a:02.0", "0x0cfe", "idxd")] {
        let path = devices.join(address);
        write(&path, "vendor", "0x8086\n");
        write(&path, "device", &format!("{id}\n"));
        write(&path, "numa_node", "0\n");
        fs::create_dir_all(root.join("sys/bus/pci/drivers").join(driver)).unwrap();
        symlink(format!("../../../../bus/pci/drivers/{driver}"), path.join("driver")).unwrap();
    }
    write(&devices.join("0000:6b:00.0"), "qat/state", "up\n");
    write(&devices.join("0000:6b:00.0"), "qat/cfg_services", "asym;dc\n");
    write(&devices.join("0000:6a:02.0"), "iax1/state", "enabled\n");
    write(&devices.join("0000:6a:02.0"), "iax1/wq1.0/state", "enabled\n");
}
