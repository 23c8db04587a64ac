//! The settings from the environment, read once. No file is read: `hasten run` turns hasten.toml into these variables,
//! and a bare LD_PRELOAD needs none.

use std::env;
use std::sync::OnceLock;

use hasten_batch::{Host, Settings};
use hasten_hook::is_disabled;

use crate::host::OpenSsl;

/// `1`: suspend a handshake even if no other is in sight, so that tests reach the machinery with a single connection.
/// Costs a turn of the event loop each time.
const EAGER: &str = "HASTEN_TLS_EAGER";
/// The number of the handshake that the trial of the shortcuts comes before, at least 1, so that tests need not make sixteen.
const TRIAL: &str = "HASTEN_TLS_TRIAL";
/// `1`: leave OpenSSL's own frameworks (EVP_KDF, fetches, key objects) alone.
const NO_SHORTCUTS: &str = "HASTEN_TLS_NO_SHORTCUTS";

/// The engine for lanes.
pub(crate) type Lanes = <OpenSsl as Host>::Lanes;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) engine: Settings<Lanes>,
    pub(crate) eager: bool,
    pub(crate) shortcuts: bool,
    pub(crate) trial: Option<u32>,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(Config::from_environment)
}

/// Reads the environment; returns whether the library has anything to do.
pub(crate) fn init() -> bool {
    get();
    !is_disabled("tls")
}

impl Config {
    fn from_environment() -> Config {
        let is_set = |name| env::var_os(name).is_some_and(|value| value == "1");
        let eager = is_set(EAGER);
        Config {
            engine: Settings::from_environment(eager),
            eager,
            shortcuts: !is_set(NO_SHORTCUTS),
            trial: env::var(TRIAL).ok().and_then(|number| number.parse().ok()).filter(|number| *number > 0),
        }
    }
}
