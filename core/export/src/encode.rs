//! Metric families as text: Prometheus 0.0.4 and OpenMetrics 1.0.
//!
//! Names and help come from the catalogue and are right by construction; label values come from other people's
//! processes and may be anything, so everything is escaped.

use std::fmt::Write as _;

use crate::catalogue::{Description, Kind};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text exposition, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// A metric with all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub about: &'static Description,
    pub samples: Vec<Sample>,
}

/// One series at this moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In the order of [`Description::labels`].
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Count(u64),
    Number(f64),
    Histogram {
        /// Each bucket's upper bound, and the number of observations in it.
        buckets: Vec<(f64, u64)>,
        sum: u64,
    },
}

impl Format {
    /// The answer's content type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The complete answer to a scrape.
#[must_use]
pub fn encode(families: &[Family], format: Format) -> String {
    let mut text = String::with_capacity(16 * 1024);
    for family in families {
        head(&mut text, family.about, format);
        family.samples.iter().for_each(|sample| series(&mut text, family.about, sample));
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn head(text: &mut String, about: &Description, format: Format) {
    // OpenMetrics names the family, Prometheus its samples.
    let (name, kind) = match (format, about.kind) {
        (Format::OpenMetrics, kind) => (about.name.to_owned(), kind.as_str()),
        (Format::Prometheus, Kind::Counter) => (about.name.to_owned() + "_total", "counter"),
        (Format::Prometheus, Kind::Info) => (about.name.to_owned() + "_info", "gauge"),
        (Format::Prometheus, kind) => (about.name.to_owned(), kind.as_str()),
    };
    let _ = writeln!(text, "# HELP {name} {}", escaped_help(about.help, format));
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let (Format::OpenMetrics, Some(unit)) = (format, about.unit) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

fn series(text: &mut String, about: &Description, sample: &Sample) {
    let suffix = match about.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    let mut line =
        |suffix, bound, value: &str| line(text, (about.name, suffix), &sample.labels, bound, value);
    match &sample.value {
        Value::Count(count) => line(suffix, None, &count.to_string()),
        Value::Number(value) => line(suffix, None, &number(*value)),
        Value::Histogram { buckets, sum } => {
            // Buckets are cumulative, and the last holds everything.
            let mut below = 0_u64;
            for (bound, count) in buckets.iter().chain(&[(f64::INFINITY, 0)]) {
                below = below.saturating_add(*count);
                line("_bucket", Some(*bound), &below.to_string());
            }
            line("_sum", None, &sum.to_string());
            line("_count", None, &below.to_string());
        }
    }
}

fn line(
    text: &mut String,
    (name, suffix): (&str, &str),
    labels: &[(&'static str, String)],
    bound: Option<f64>,
    value: &str,
) {
    // The same in both formats, so that a series keeps its identity whichever is requested.
    let bound = bound.map(|bound| ("le", number(bound)));
    let labels: Vec<String> =
        labels.iter().chain(&bound).map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(text, "{name}{suffix}{labels} {value}");
}

/// In the form that both formats want: a whole number keeps its point.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => format!("{value:?}"),
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn escaped_help(text: &str, format: Format) -> String {
    match format {
        Format::Prometheus => text.replace('\\', "\\\\").replace('\n', "\\n"),
        Format::OpenMetrics => escaped(text),
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
