//! The environment's settings for devices, as far as they concern handshakes.

use std::path::PathBuf;
use std::time::Duration;

use hasten_device::Limits;
use hasten_device::settings::{self, Request};
use hasten_guard::breaker::Settings as BreakerSettings;

use super::ENGINE;

/// Settings for a device that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Use it whether or not it pays.
    pub(super) forced: bool,
    pub(super) timeout: Duration,
    pub(super) retry: (Duration, Duration),
    pub(super) libraries: Option<PathBuf>,
    pub(super) root: PathBuf,
}

impl Settings {
    /// `None` if no device is to be used.
    pub(super) fn of(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let settings = settings::Settings::of(value);
        let forced = settings.request.names(ENGINE.as_str());
        (forced || settings.request == Request::Auto).then(|| Self {
            forced,
            timeout: settings.timeout.unwrap_or(Limits::CRYPTO.operation),
            retry: settings
                .retry
                .unwrap_or((BreakerSettings::DEFAULT.first, BreakerSettings::DEFAULT.longest)),
            libraries: settings.libraries,
            root: settings.root.unwrap_or_else(|| PathBuf::from("/")),
        })
    }
}

#[cfg(test)]
mod tests {
    use hasten_device::settings::{DEVICES, TIMEOUT};

    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<Settings> {
        Settings::of(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_device_is_asked_only_if_it_is_requested() {
        for not in ["", "off", "0", "qatzip,qpl", "tape"] {
            assert_eq!(of(&[(DEVICES, not)]), None, "{not}");
        }
        assert_eq!(of(&[]), None);
        assert!(!of(&[(DEVICES, "auto")]).unwrap().forced);
        assert!(of(&[(DEVICES, " qpl , qat")]).unwrap().forced);
    }

    #[test]
    fn limits_are_those_of_cryptography_unless_others_are_set() {
        assert_eq!(of(&[(DEVICES, "auto")]).unwrap().timeout, Duration::from_millis(20));
        assert_eq!(of(&[(DEVICES, "auto")]).unwrap().retry.0, Duration::from_millis(250));
        assert_eq!(of(&[(DEVICES, "auto"), (TIMEOUT, "7")]).unwrap().timeout, Duration::from_millis(7));
    }
}
