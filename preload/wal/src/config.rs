//! The settings from the environment, read once.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hasten_logs::place;

/// The directory on the fast device.
const WAL: &str = "HASTEN_WAL";
/// `1`: what is synced there may be lost with the machine.
const EPHEMERAL: &str = "HASTEN_WAL_EPHEMERAL";

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) named: PathBuf,
    /// Where the logs are, below it.
    pub(crate) directory: PathBuf,
    pub(crate) may_be_lost: bool,
}

/// `None`: logs are made where the program wants them.
pub(crate) fn get() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    let read = || {
        let named = PathBuf::from(std::env::var_os(WAL)?);
        let is_path = named.is_absolute() && !named.as_os_str().as_bytes().contains(&0);
        let directory = place::directory(Path::new(&named));
        let may_be_lost = std::env::var_os(EPHEMERAL).is_some_and(|value| value == "1");
        is_path.then_some(Config { named, directory, may_be_lost })
    };
    CONFIG.get_or_init(read).as_ref()
}
