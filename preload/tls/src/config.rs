//! The settings from the environment, read once. No file is read: `hasten run` turns hasten.toml into these variables,
//! and a bare LD_PRELOAD needs none.

use std::env;
use std::sync::{Arc, OnceLock};

use hasten_batch::{Host, Settings};
use hasten_crypto::{LaneEngine, Overrides};
use hasten_hook::is_disabled;

use crate::host::OpenSsl;

/// `1`: suspend every operation but answer it with the original, to test the
/// machinery where the engine cannot run (valgrind, CPUs without IFMA).
const SUSPEND_ONLY: &str = "HASTEN_TLS_SUSPEND_ONLY";
/// `1`: suspend a handshake even if no other is in sight, so that tests reach the machinery with a single connection.
/// Costs a turn of the event loop each time.
const EAGER: &str = "HASTEN_TLS_EAGER";
/// `1`: leave OpenSSL's own frameworks (EVP_KDF, fetches, key objects) alone.
const NO_SHORTCUTS: &str = "HASTEN_TLS_NO_SHORTCUTS";

/// The engine for lanes.
pub(crate) type Lanes = <OpenSsl as Host>::Lanes;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) engine: Settings<Lanes>,
    pub(crate) eager: bool,
    pub(crate) shortcuts: bool,
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
        Config {
            engine: Settings {
                lane_engine: Lanes::detect(),
                // A list that does not parse is ignored here, where errors cannot be reported; `hasten run` rejects it.
                break_even: env::var(Overrides::VARIABLE)
                    .ok()
                    .and_then(|list| list.parse().ok())
                    .unwrap_or_default(),
                bypass: is_set(SUSPEND_ONLY),
                lanes: Arc::default(),
            },
            eager: is_set(EAGER),
            shortcuts: !is_set(NO_SHORTCUTS),
        }
    }
}
