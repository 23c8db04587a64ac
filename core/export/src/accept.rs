//! Which of the two formats a scraper prefers.

use crate::encode::Format;

/// The format that the request's `Accept` asks for. A client that asks for neither, or for nothing in particular,
/// gets the plain one, which anything can read: that helps more than an error.
#[must_use]
pub(crate) fn format(accept: &str) -> Format {
    let ranges = || accept.split(',').filter_map(Range::parse);
    let best = |suits: fn(&Range) -> bool| {
        ranges().filter(|range| suits(range)).map(|range| range.quality).max().unwrap_or(0)
    };
    let (open, plain) = (best(|range| range.is_open_metrics()), best(|range| range.is_prometheus()));
    if open > 0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
}

/// One element of the header.
struct Range<'a> {
    kind: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    quality: u32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self { kind: parts.next()?, version: None, quality: 1000 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                name if name.eq_ignore_ascii_case("version") => range.version = Some(value),
                // An invalid number counts as zero.
                name if name.eq_ignore_ascii_case("q") => range.quality = quality(value).unwrap_or(0),
                _ => {}
            }
        }
        Some(range)
    }

    fn is_open_metrics(&self) -> bool {
        let is_kind = self.kind.eq_ignore_ascii_case("application/openmetrics-text");
        is_kind && self.version.is_none_or(|version| version == "1.0.0")
    }

    fn is_prometheus(&self) -> bool {
        let is_kind = self.kind.eq_ignore_ascii_case("text/plain");
        is_kind && self.version.is_none_or(|version| version == "0.0.4")
    }
}

fn quality(text: &str) -> Option<u32> {
    let value: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&value).then_some((value * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_get_what_they_prefer() {
        use Format::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            // What Prometheus 2 and 3 send.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
                 text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Prometheus),
            ("text/plain, application/openmetrics-text;q=0.9", Prometheus),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", OpenMetrics),
            ("application/openmetrics-text", OpenMetrics),
            // A version that is not supported here.
            ("application/openmetrics-text;version=0.0.1", Prometheus),
            ("application/openmetrics-text;version=2.0.0,*/*;q=0.1", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            ("application/openmetrics-text;q=x", Prometheus),
            // Browsers, curl, no header at all.
            ("text/html,application/xhtml+xml,*/*;q=0.8", Prometheus),
            ("*/*", Prometheus),
            ("", Prometheus),
            (";;q,=,", Prometheus),
        ] {
            assert_eq!(format(accept), expected, "{accept}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_header_has_an_answer(accept in ".{0,200}") {
            let _ = format(&accept);
        }
    }
}
