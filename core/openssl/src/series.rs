//! The series of OpenSSL whose libssl was read and is tested. A new series is an entry here and one in the TLS library's
//! `openssl/release.rs`.

/// Releases that share their major and minor number: within them OpenSSL keeps its ABI and fixes bugs only.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// As people write it.
    pub name: &'static str,
    major: u8,
    minor: u8,
}

/// In ascending order.
pub const SERIES: &[Series] = &[
    Series { name: "3.0", major: 3, minor: 0 },
    Series { name: "3.1", major: 3, minor: 1 },
    Series { name: "3.2", major: 3, minor: 2 },
    Series { name: "3.3", major: 3, minor: 3 },
    Series { name: "3.4", major: 3, minor: 4 },
    Series { name: "3.5", major: 3, minor: 5 },
    Series { name: "3.6", major: 3, minor: 6 },
    Series { name: "4.0", major: 4, minor: 0 },
];

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

    /// Whether its TLS has hybrids of ML-KEM and a classical group.
    pub const fn has_hybrids(&self) -> bool {
        self.major > 3 || self.minor >= 5
    }

    /// Whether it is of the same major version, and the next minor one.
    const fn follows(&self, other: &Self) -> bool {
        self.major == other.major && self.minor == other.minor + 1
    }
}

/// The names of all series, as a sentence has them: `3.0 to 3.6 or 4.0`.
pub fn series_names() -> String {
    let runs = SERIES.chunk_by(|earlier, later| later.follows(earlier));
    let name = |run: &[Series]| match run {
        [only] => only.name.to_owned(),
        [first, .., last] => format!("{} to {}", first.name, last.name),
        [] => String::new(),
    };
    runs.map(name).collect::<Vec<_>>().join(" or ")
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
            (0x3010_0000, "OpenSSL 3.1.0", Some("3.1")),
            (0x3050_0040, "OpenSSL 3.5.4", Some("3.5")),
            (0x1010_117f, "OpenSSL 1.1.1w", None),
            (0x3070_0000, "OpenSSL 3.7.0", None),
            (0x4000_0030, "OpenSSL 4.0.3", Some("4.0")),
            (0x4010_0000, "OpenSSL 4.1.0", None),
        ] {
            let name_of = |series: Option<&Series>| series.map(|series| series.name);
            assert_eq!(name_of(Series::of_number(number)), name, "{number:x}");
            assert_eq!(name_of(Series::of_text(text)), name, "{text}");
        }
        assert!(SERIES.iter().any(Series::has_hybrids) && !SERIES[0].has_hybrids());
        assert_eq!(Series::of_text("OpenSSL 3.01.2"), None);
        assert_eq!(Series::of_text("OpenSSL 3.0"), None);
    }

    #[test]
    fn sentence_has_runs_of_series() {
        assert_eq!(series_names(), "3.0 to 3.6 or 4.0");
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
