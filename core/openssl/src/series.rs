//! The series of OpenSSL whose libssl was read and is tested. A new series is an entry here and one in the TLS library's
//! `openssl/release.rs`.

/// Releases that share their major and minor number: within them OpenSSL keeps its ABI and fixes bugs only.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// As people write it.
    pub name: &'static str,
    major: u8,
    minor: u8,
    /// The newest patch release that the tests have run with.
    newest_tested: u8,
}

pub const SERIES: &[Series] = &[Series { name: "3.0", major: 3, minor: 0, newest_tested: 22 }];

impl Series {
    /// The series of an `OpenSSL_version_num()`, which is MNN00PPS: major, minor, patch, status.
    pub fn of_number(number: u64) -> Option<&'static Self> {
        SERIES.iter().find(|series| number >> 20 == u64::from(series.major) << 8 | u64::from(series.minor))
    }

    /// The series of a version's text, such as `OpenSSL 3.0.19` or `3.0.19`.
    pub fn of_text(text: &str) -> Option<&'static Self> {
        let number = text.strip_prefix("OpenSSL ").unwrap_or(text);
        SERIES
            .iter()
            .find(|series| number.strip_prefix(series.name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Whether `number`, of this series, is no newer than the tests. A newer libssl may call libcrypto in another order,
    /// so what relies on the order is left to OpenSSL.
    pub const fn has_tested(&self, number: u64) -> bool {
        number >> 4 & 0xff <= self.newest_tested as u64
    }
}

/// The names of all series, as a sentence has them.
pub fn series_names() -> String {
    SERIES.iter().map(|series| series.name).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_text_name_the_same_series() {
        for (number, text, name) in [
            (0x3000_0000, "OpenSSL 3.0.0", Some("3.0")),
            (0x3000_0130, "OpenSSL 3.0.19", Some("3.0")),
            (0x3000_00a0, "3.0.10", Some("3.0")),
            (0x3010_0000, "OpenSSL 3.1.0", None),
            (0x3050_0040, "OpenSSL 3.5.4", None),
            (0x1010_117f, "OpenSSL 1.1.1w", None),
            (0x4000_0000, "OpenSSL 4.0.0", None),
        ] {
            let name_of = |series: Option<&Series>| series.map(|series| series.name);
            assert_eq!(name_of(Series::of_number(number)), name, "{number:x}");
            assert_eq!(name_of(Series::of_text(text)), name, "{text}");
        }
        assert_eq!(Series::of_text("OpenSSL 3.01.2"), None);
        assert_eq!(Series::of_text("OpenSSL 3.0"), None);
    }

    #[test]
    fn release_newer_than_the_tests_is_not_tested() {
        let series = Series::of_number(0x3000_0130).unwrap();
        assert!(series.has_tested(0x3000_0130) && series.has_tested(0x3000_0160));
        assert!(!series.has_tested(0x3000_0170));
    }

    /// The text of a version is found by its series' name, the number by its fields.
    #[test]
    fn names_are_of_their_numbers_and_unique() {
        for (at, series) in SERIES.iter().enumerate() {
            assert_eq!(series.name, format!("{}.{}", series.major, series.minor));
            assert!(SERIES[..at].iter().all(|earlier| earlier.name != series.name));
        }
    }
}
