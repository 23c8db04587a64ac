//! What the environment says about devices.

use std::path::PathBuf;
use std::time::Duration;

use hasten_device::Limits;
use hasten_device::breaker::Settings as BreakerSettings;

/// `off` (the default: nobody has seen them work on hardware yet), `auto` for a device that is found and pays, or a list
/// with `qat` in it: it is asked whether or not it pays.
const DEVICES: &str = "HASTEN_DEVICES";
/// How long one operation of a device may take, in milliseconds, 1 to 10,000.
const TIMEOUT: &str = "HASTEN_DEVICE_TIMEOUT_MS";
/// From a fault to the first attempt to use a device again and the longest that this may become, in milliseconds, such as
/// `250-30000`.
const RETRY: &str = "HASTEN_DEVICE_RETRY_MS";
/// A folder with the libraries of devices, in place of where the loader looks.
const LIBRARIES: &str = "HASTEN_DEVICE_LIBRARIES";
/// Below which `sys` and `dev` are looked for, in place of `/`.
const ROOT: &str = "HASTEN_SYSFS_ROOT";

const MOST_TIMEOUT: u64 = 10_000;
const MOST_RETRY: u64 = 3_600_000;

/// A device that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// It is asked whether or not it pays.
    pub(super) forced: bool,
    pub(super) timeout: Duration,
    pub(super) retry: (Duration, Duration),
    pub(super) libraries: Option<PathBuf>,
    pub(super) root: PathBuf,
}

impl Settings {
    /// `None` if no device is to be asked. What does not parse is ignored here, where nobody listens; `hasten run` refuses
    /// it.
    pub(super) fn of(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = |name| value(name).filter(|text| !text.trim().is_empty());
        let wish = value(DEVICES)?;
        let forced = match wish.trim() {
            "auto" => false,
            list if list.split(',').any(|name| name.trim() == "qat") => true,
            _ => return None,
        };
        let retry = value(RETRY).and_then(|text| {
            let (first, longest) = text.trim().split_once('-')?;
            Some((milliseconds(first, MOST_RETRY)?, milliseconds(longest, MOST_RETRY)?))
        });
        let default = (BreakerSettings::DEFAULT.first, BreakerSettings::DEFAULT.longest);
        Some(Self {
            forced,
            timeout: value(TIMEOUT)
                .and_then(|text| milliseconds(&text, MOST_TIMEOUT))
                .unwrap_or(Limits::CRYPTO.operation),
            retry: retry.filter(|(first, longest)| first <= longest).unwrap_or(default),
            libraries: value(LIBRARIES).map(PathBuf::from),
            root: value(ROOT).map_or_else(|| PathBuf::from("/"), PathBuf::from),
        })
    }
}

fn milliseconds(text: &str, most: u64) -> Option<Duration> {
    let number = text.trim().parse().ok()?;
    (1..=most).contains(&number).then(|| Duration::from_millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<Settings> {
        Settings::of(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_device_is_asked_only_if_it_is_wished() {
        for not in ["", "off", "0", "qatzip,qpl", "tape"] {
            assert_eq!(of(&[(DEVICES, not)]), None, "{not}");
        }
        assert_eq!(of(&[]), None);
        assert!(!of(&[(DEVICES, "auto")]).unwrap().forced);
        assert!(of(&[(DEVICES, " qpl , qat")]).unwrap().forced);
    }

    #[test]
    fn limits_are_those_of_cryptography_unless_others_are_set() {
        let with = |name, value| of(&[(DEVICES, "auto"), (name, value)]).unwrap();
        assert_eq!(with(TIMEOUT, "").timeout, Duration::from_millis(20));
        assert_eq!(with(TIMEOUT, "7").timeout, Duration::from_millis(7));
        assert_eq!(with(RETRY, "10-20").retry, (Duration::from_millis(10), Duration::from_millis(20)));
        for odd in ["0", "-1", "10001", "soon"] {
            assert_eq!(with(TIMEOUT, odd).timeout, Duration::from_millis(20), "{odd}");
        }
        for odd in ["5", "20-10", "0-5", "a-b"] {
            assert_eq!(with(RETRY, odd).retry.0, Duration::from_millis(250), "{odd}");
        }
    }
}
