//! What one row compares.

use std::fmt::{self, Display};
use std::str::FromStr;

use hasten_evidence::report::Case;
use serde::{Serialize, Serializer};

use crate::certificates::KeyKind;
use crate::gzip::corpus::size_name;

/// What Envoy does in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It passes a page on.
    Plain,
    /// It passes a page on, compressed.
    Gzip,
    /// It passes on a page that it got compressed.
    Gunzip,
    /// It does a full handshake for a short answer of its own.
    Handshake,
    /// A client connects by a full handshake, fetches a page, which Envoy compresses, and sends it back, which Envoy
    /// decompresses. Behind Envoy is TLS, too.
    RoundTrip,
}

impl Work {
    pub const ALL: [Self; 5] = [Self::Plain, Self::Gzip, Self::Gunzip, Self::Handshake, Self::RoundTrip];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Gunzip => "gunzip",
            Self::Handshake => "handshake",
            Self::RoundTrip => "round-trip",
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown work {0:?}: use plain, gzip, gunzip, handshake or round-trip")]
pub struct UnknownWork(String);

impl FromStr for Work {
    type Err = UnknownWork;

    fn from_str(given: &str) -> Result<Self, UnknownWork> {
        let known = Self::ALL.into_iter().find(|work| work.as_str() == given);
        known.ok_or_else(|| UnknownWork(given.to_owned()))
    }
}

impl Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EnvoyCase {
    #[serde(serialize_with = "name")]
    pub work: Work,
    /// With TLS.
    #[serde(serialize_with = "optional_name")]
    pub cert: Option<KeyKind>,
    /// Of compression; Envoy's default unless given.
    pub level: Option<u8>,
    /// Whether the accelerated side may compress in a window of 32 KiB, larger than Envoy's default.
    #[serde(rename = "window", serialize_with = "window")]
    pub full_window: bool,
    /// The page's length in bytes.
    pub size: Option<usize>,
    pub concurrency: usize,
}

impl EnvoyCase {
    pub(super) fn of(work: Work, concurrency: usize) -> Self {
        Self { work, cert: None, level: None, full_window: false, size: None, concurrency }
    }

    /// Whether Envoy compresses in it.
    pub(super) fn compresses(&self) -> bool {
        matches!(self.work, Work::Gzip | Work::RoundTrip)
    }
}

impl Case for EnvoyCase {
    const COLUMNS: &'static [&'static str] = &["work", "certificate", "page", "level", "conn."];

    fn cells(&self) -> Vec<String> {
        let none = || "–".to_owned();
        let level = if self.compresses() { "default".to_owned() } else { none() };
        vec![
            self.work.to_string(),
            self.cert.map_or_else(none, |cert| cert.to_string()),
            self.size.map_or_else(none, size_name),
            self.level.map_or(level, |level| level.to_string())
                + if self.full_window { ", full window" } else { "" },
            self.concurrency.to_string(),
        ]
    }

    fn title(&self) -> String {
        let mut cells = self.cells();
        cells.retain(|cell| cell != "–");
        cells.join(" · ") + " conn."
    }
}

fn name<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn window<S: Serializer>(is_full: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    if *is_full { serializer.serialize_str("full") } else { serializer.serialize_none() }
}

fn optional_name<S: Serializer>(value: &Option<impl Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_has_the_names_of_the_data_format() {
        let case = EnvoyCase {
            cert: Some(KeyKind::P256),
            size: Some(100 << 10),
            ..EnvoyCase::of(Work::RoundTrip, 64)
        };
        assert_eq!(
            serde_json::to_value(case).unwrap(),
            serde_json::json!({
                "work": "round-trip", "cert": "p-256", "level": null, "window": null, "size": 102_400, "concurrency": 64
            })
        );
        assert_eq!(case.title(), "round-trip · p-256 · 100KB · default · 64 conn.");
        let full = EnvoyCase { full_window: true, ..case };
        assert_eq!(full.title(), "round-trip · p-256 · 100KB · default, full window · 64 conn.");
        assert_eq!(serde_json::to_value(full).unwrap()["window"], "full");
    }
}
