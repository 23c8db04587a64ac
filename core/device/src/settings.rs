//! The environment's settings for devices, with one meaning for all libraries that use them.

use std::path::PathBuf;
use std::time::Duration;

/// `off` (the default: nobody has seen devices work on hardware yet), `auto` for those that are found and worth using,
/// or engines that are used regardless, such as `qatzip,qat`.
pub const DEVICES: &str = "HASTEN_DEVICES";
/// How long one operation may take, in milliseconds, 1 to 10,000.
pub const TIMEOUT: &str = "HASTEN_DEVICE_TIMEOUT_MS";
/// The initial and the longest delay between a fault and the next attempt to use the device, in milliseconds, such as
/// `250-30000`.
pub const RETRY: &str = "HASTEN_DEVICE_RETRY_MS";
/// A folder with the device libraries, in place of the loader's search path.
pub const LIBRARIES: &str = "HASTEN_DEVICE_LIBRARIES";
/// The root below which `sys` and `dev` are looked for, in place of `/`.
pub const ROOT: &str = "HASTEN_SYSFS_ROOT";

const MOST_TIMEOUT: u64 = 10_000;
const MOST_RETRY: u64 = 3_600_000;

/// A variable that is unset or does not parse is `None`: nobody would see a message here, and `hasten run` rejects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub request: Request,
    pub timeout: Option<Duration>,
    pub retry: Option<(Duration, Duration)>,
    pub libraries: Option<PathBuf>,
    pub root: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Off,
    Auto,
    /// Engines by name, including unknown names.
    Only(Vec<String>),
}

impl Settings {
    /// `value` is a variable's value, if it is set.
    pub fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name| value(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            request: match value(DEVICES).as_deref() {
                None | Some("off" | "0") => Request::Off,
                Some("auto") => Request::Auto,
                Some(list) => Request::Only(list.split(',').map(|name| name.trim().to_owned()).collect()),
            },
            timeout: value(TIMEOUT).and_then(|text| milliseconds(&text, MOST_TIMEOUT)),
            retry: value(RETRY).and_then(|text| range(&text)),
            libraries: value(LIBRARIES).map(PathBuf::from),
            root: value(ROOT).map(PathBuf::from),
        }
    }
}

impl Request {
    /// Whether an engine is requested by name.
    pub fn names(&self, engine: &str) -> bool {
        matches!(self, Self::Only(names) if names.iter().any(|name| name == engine))
    }
}

fn range(text: &str) -> Option<(Duration, Duration)> {
    let (first, longest) = text.split_once('-')?;
    let range = (milliseconds(first, MOST_RETRY)?, milliseconds(longest, MOST_RETRY)?);
    (range.0 <= range.1).then_some(range)
}

fn milliseconds(text: &str, most: u64) -> Option<Duration> {
    let number = text.trim().parse().ok()?;
    (1..=most).contains(&number).then(|| Duration::from_millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Settings {
        Settings::of(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn devices_are_asked_if_they_are_requested() {
        for off in ["", " ", "off", "0"] {
            assert_eq!(of(&[(DEVICES, off)]), of(&[]), "{off:?}");
        }
        assert_eq!(of(&[]).request, Request::Off);
        assert_eq!(of(&[(DEVICES, "auto")]).request, Request::Auto);
        let some = of(&[(DEVICES, " qpl , tape")]).request;
        assert!(some.names("qpl") && !some.names("qat") && !Request::Auto.names("qpl"));
    }

    #[test]
    fn limits_are_the_engines_own_unless_others_are_set() {
        assert_eq!(of(&[(TIMEOUT, "7")]).timeout, Some(Duration::from_millis(7)));
        assert_eq!(of(&[(TIMEOUT, "10000")]).timeout, Some(Duration::from_secs(10)));
        let second = Duration::from_secs(1);
        assert_eq!(of(&[(RETRY, "1000-5000")]).retry, Some((second, second * 5)));
        for odd in ["", "0", "-1", "10001", "soon"] {
            assert_eq!(of(&[(TIMEOUT, odd)]).timeout, None, "{odd}");
        }
        for odd in ["5", "1000", "5000-1000", "0-5", "-", "a-b", "1-3600001"] {
            assert_eq!(of(&[(RETRY, odd)]).retry, None, "{odd}");
        }
    }
}
