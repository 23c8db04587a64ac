//! The settings from the environment, read once. No file is read: `hasten run` turns hasten.toml into these variables,
//! and a bare LD_PRELOAD needs none.

use std::env;
use std::sync::OnceLock;

use hasten_deflate::devices::{self, DeviceEngine, Request};
use hasten_deflate::engine::EngineKind;
use hasten_device::settings::Settings;

/// `1`: inflate everything that an engine has deflated, and compare, before it is output.
const VERIFY: &str = "HASTEN_GZIP_VERIFY";
/// The engines that may be used, such as `isal,libdeflate`; the original is always allowed.
const ENGINES: &str = "HASTEN_GZIP_ENGINES";

/// `full`: matches may reach back 32 KiB where the program's configuration says less.
const WINDOW: &str = "HASTEN_GZIP_WINDOW";

#[derive(Debug)]
pub struct Config {
    /// Whether everything that an engine has deflated is inflated again and compared.
    pub verify: bool,
    /// Whether any engine other than the original may be used.
    pub engines: bool,
    /// Whether a window smaller than 32 KiB may be exceeded, where the owner of the stream is not told how large it is.
    pub full_window: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

pub fn get() -> &'static Config {
    CONFIG.get_or_init(Config::from_environment)
}

impl Config {
    fn from_environment() -> Self {
        let engines = engines(env::var(ENGINES).ok().as_deref());
        let ours = &crate::engines::ENGINES;
        ours.allow(&engines);
        ours.devices.configure(device_config(Settings::of(|name| env::var(name).ok())));
        Self {
            verify: env::var_os(VERIFY).is_some_and(|value| value == "1"),
            full_window: env::var_os(WINDOW).is_some_and(|value| value == "full"),
            engines: engines.iter().any(|kind| *kind != EngineKind::Original),
        }
    }
}

fn device_config(settings: Settings) -> devices::Config {
    let default = devices::Config::default();
    devices::Config {
        request: match settings.request {
            hasten_device::settings::Request::Off => Request::Off,
            hasten_device::settings::Request::Auto => Request::Auto,
            list => Request::Only(
                DeviceEngine::ALL.into_iter().filter(|engine| list.names(engine.as_str())).collect(),
            ),
        },
        timeout: settings.timeout.unwrap_or(default.timeout),
        retry: settings.retry.unwrap_or(default.retry),
        libraries: settings.libraries,
        root: settings.root.unwrap_or(default.root),
    }
}

/// All engines, unless some are named. An unknown name is ignored here, where errors cannot be reported; `hasten run`
/// rejects it.
fn engines(list: Option<&str>) -> Vec<EngineKind> {
    let Some(list) = list.filter(|list| !list.trim().is_empty()) else { return EngineKind::ALL.to_vec() };
    let named = |kind: &EngineKind| list.split(',').any(|name| name.trim() == kind.as_str());
    EngineKind::ALL.into_iter().filter(named).collect()
}

#[cfg(test)]
mod tests {
    use hasten_device::settings::DEVICES;

    use super::*;

    #[test]
    fn devices_are_those_that_compress() {
        let of = |list: &str| device_config(Settings::of(|name| (name == DEVICES).then(|| list.to_owned())));
        assert_eq!(of("").request, Request::Off);
        assert_eq!(of("auto").request, Request::Auto);
        assert_eq!(of(" qpl , qat").request, Request::Only(vec![DeviceEngine::Qpl]));
        assert_eq!(of("auto").timeout, devices::Config::default().timeout);
    }

    #[test]
    fn engines_are_chosen_by_name() {
        assert_eq!(engines(None), EngineKind::ALL);
        assert_eq!(engines(Some(" ")), EngineKind::ALL);
        assert_eq!(engines(Some("isal, zlib-rs")), [EngineKind::Isal, EngineKind::ZlibRs]);
        assert_eq!(engines(Some("original")), [EngineKind::Original]);
        assert_eq!(engines(Some("brotli")), []);
    }
}
