//! What the environment asks for, read once. No file is read: `hasten run`
//! turns hasten.toml into these variables, and a bare LD_PRELOAD needs none.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use hasten_deflate::devices::{self, DeviceEngine, Wish};
use hasten_deflate::engine::EngineKind;
use hasten_deflate::select;
use hasten_hook::Switch;

/// `1`: inflate again whatever an engine has deflated, and compare, before it leaves.
const VERIFY: &str = "HASTEN_GZIP_VERIFY";
/// The engines that may be used, such as `isal,libdeflate`; the original always may.
const ENGINES: &str = "HASTEN_GZIP_ENGINES";

/// `off` (the default: nobody has seen them work on hardware yet), `auto` for devices that are found and pay, or those that
/// are asked whether or not they pay, such as `qatzip,qpl`.
const DEVICES: &str = "HASTEN_DEVICES";
/// How long one operation of a device may take, in milliseconds, 1 to 10,000.
const DEVICE_TIMEOUT: &str = "HASTEN_DEVICE_TIMEOUT_MS";
/// From a fault to the first attempt to use a device again and the longest that this may become, in milliseconds, such as
/// `250-30000`.
const DEVICE_RETRY: &str = "HASTEN_DEVICE_RETRY_MS";
/// A folder with the libraries of devices, in place of where the loader looks.
const DEVICE_LIBRARIES: &str = "HASTEN_DEVICE_LIBRARIES";
/// Below which `sys` and `dev` are looked for, in place of `/`.
const DEVICE_ROOT: &str = "HASTEN_SYSFS_ROOT";

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) verify: bool,
    /// Whether any engine but the original may be used.
    pub(crate) engines: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();
static SWITCH: Switch = Switch::new("gzip");

pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(Config::from_environment)
}

/// Whether hooks do anything; false until the constructor has run.
#[inline]
pub(crate) fn is_enabled() -> bool {
    SWITCH.is_on()
}

/// Reads the environment; whether the library is to do anything.
pub(crate) fn init() -> bool {
    SWITCH.init(get().engines)
}

impl Config {
    fn from_environment() -> Self {
        let engines = engines(env::var(ENGINES).ok().as_deref());
        select::allow(&engines);
        devices::configure(device_config(|name| {
            env::var(name).ok().filter(|value| !value.trim().is_empty())
        }));
        Self {
            verify: env::var_os(VERIFY).is_some_and(|value| value == "1"),
            engines: engines.iter().any(|kind| *kind != EngineKind::Original),
        }
    }
}

fn device_config(value: impl Fn(&str) -> Option<String>) -> devices::Config {
    let default = devices::Config::default();
    let retry = value(DEVICE_RETRY).and_then(|text| {
        let (first, longest) = text.trim().split_once('-')?;
        Some((milliseconds(first, MOST_RETRY)?, milliseconds(longest, MOST_RETRY)?))
    });
    devices::Config {
        wish: match value(DEVICES).as_deref().map(str::trim) {
            None | Some("off" | "0") => Wish::Off,
            Some("auto") => Wish::Auto,
            Some(list) => {
                let named =
                    |engine: &DeviceEngine| list.split(',').any(|name| name.trim() == engine.as_str());
                Wish::Only(DeviceEngine::ALL.into_iter().filter(named).collect())
            }
        },
        timeout: value(DEVICE_TIMEOUT)
            .and_then(|text| milliseconds(&text, MOST_TIMEOUT))
            .unwrap_or(default.timeout),
        retry: retry.filter(|(first, longest)| first <= longest).unwrap_or(default.retry),
        libraries: value(DEVICE_LIBRARIES).map(PathBuf::from),
        root: value(DEVICE_ROOT).map_or(default.root, PathBuf::from),
    }
}

const MOST_TIMEOUT: u64 = 10_000;
const MOST_RETRY: u64 = 3_600_000;

fn milliseconds(text: &str, most: u64) -> Option<Duration> {
    let number = text.trim().parse().ok()?;
    (1..=most).contains(&number).then(|| Duration::from_millis(number))
}

/// All of them unless some are named. A name that nobody knows is ignored here, where nobody listens; `hasten run`
/// refuses it.
fn engines(list: Option<&str>) -> Vec<EngineKind> {
    let Some(list) = list.filter(|list| !list.trim().is_empty()) else { return EngineKind::ALL.to_vec() };
    let named = |kind: &EngineKind| list.split(',').any(|name| name.trim() == kind.as_str());
    EngineKind::ALL.into_iter().filter(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_asked_if_they_are_wished() {
        let of = |values: &[(&str, &str)]| {
            device_config(|name| {
                values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            })
        };
        assert_eq!(of(&[]).wish, Wish::Off);
        assert_eq!(of(&[(DEVICES, "auto")]).wish, Wish::Auto);
        assert_eq!(of(&[(DEVICES, " qpl , tape")]).wish, Wish::Only(vec![DeviceEngine::Qpl]));
        assert_eq!(of(&[(DEVICE_TIMEOUT, "7")]).timeout, Duration::from_millis(7));
        for odd in ["0", "10001", "soon", "-1"] {
            assert_eq!(of(&[(DEVICE_TIMEOUT, odd)]).timeout, of(&[]).timeout, "{odd}");
        }
        let second = Duration::from_secs(1);
        assert_eq!(of(&[(DEVICE_RETRY, "1000-5000")]).retry, (second, second * 5));
        for odd in ["1000", "5000-1000", "0-5", "-"] {
            assert_eq!(of(&[(DEVICE_RETRY, odd)]).retry, of(&[]).retry, "{odd}");
        }
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
