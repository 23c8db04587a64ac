//! The other side of `tests/devices/layout.h`: which faults the simulated libraries have, and how often they are used.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock};

#[path = "../../../../tests/devices/injected.rs"]
mod injected;

pub(crate) use self::injected::Injected;

const MAGIC: u32 = 0x6d69_7368;
const BLOCK: u64 = 40;
const ENGINES: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Simulated {
    QatZip = 0,
    Qpl = 1,
    #[cfg(feature = "unused-engines")]
    Dml = 2,
    Qat = 3,
    #[cfg(feature = "unused-engines")]
    Dlb = 4,
}

/// One engine's part of the control file. Tests of the same engine run in turn.
pub(crate) struct Control {
    file: &'static File,
    offset: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Control {
    pub(crate) fn of(engine: Simulated) -> Self {
        static TURNS: [Mutex<()>; ENGINES as usize] = [const { Mutex::new(()) }; ENGINES as usize];
        let turn = TURNS[engine as usize].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let control = Self { file: file(), offset: 8 + BLOCK * engine as u64, _turn: turn };
        control.inject(Injected::None);
        control
    }

    pub(crate) fn inject(&self, fault: Injected) {
        self.write(0, fault as u32);
    }

    pub(crate) fn slow(&self, milliseconds: u32) {
        self.write(4, milliseconds);
        self.inject(Injected::Slow);
    }

    /// The device was reset: sessions are dead, new ones work.
    pub(crate) fn reset(&self) {
        let mut word = [0; 4];
        self.file.read_exact_at(&mut word, self.offset + 8).unwrap();
        self.write(8, u32::from_le_bytes(word) + 1);
    }

    pub(crate) fn opened(&self) -> u64 {
        self.read(16)
    }

    pub(crate) fn operations(&self) -> u64 {
        self.read(24)
    }

    pub(crate) fn faulted(&self) -> u64 {
        self.read(32)
    }

    fn write(&self, at: u64, value: u32) {
        self.file.write_all_at(&value.to_le_bytes(), self.offset + at).unwrap();
    }

    fn read(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, self.offset + at).unwrap();
        u64::from_le_bytes(word)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.inject(Injected::None);
    }
}

/// The simulated libraries, built once.
pub(crate) fn libraries() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("devices");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/devices.sh");
        let output = Command::new(script).arg(&folder).output().expect("scripts/devices.sh runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    };
    FOLDER.get_or_init(build).clone()
}

fn file() -> &'static File {
    static FILE: OnceLock<(tempfile::TempDir, File)> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let mut bytes = vec![0; (8 + BLOCK * ENGINES) as usize];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        // SAFETY: no C code reads the environment before a library is first called, which happens later; Rust's own
        // readers share a lock with it.
        unsafe { std::env::set_var("HASTEN_SIMULATED_DEVICES", &path) };
        (folder, File::options().read(true).write(true).open(path).unwrap())
    };
    &FILE.get_or_init(make).1
}
