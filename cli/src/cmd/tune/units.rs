//! Times, sizes and shares as people write them.

use std::time::Duration;

/// `90s`, `15m`, `1.5h`, `20ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];
    let seconds = number(text, &units, "a time such as 90s, 15m or 1h")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long"))
}

/// Like [`duration`], or `0s` for none.
pub(super) fn pause(text: &str) -> Result<Duration, String> {
    if ["0", "0s"].contains(&text) { Ok(Duration::ZERO) } else { duration(text) }
}

/// Milliseconds: `20ms`, `0.5s`.
pub(super) fn milliseconds(text: &str) -> Result<f64, String> {
    duration(text).map(|duration| duration.as_secs_f64() * 1000.0)
}

/// `512M`, `1.5GB`, `800MiB`; M is a million of bytes, as `rss_mb` is.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("K", 1e3),
        ("KB", 1e3),
        ("KiB", 1024.0),
        ("M", 1e6),
        ("MB", 1e6),
        ("MiB", 1024.0 * 1024.0),
        ("G", 1e9),
        ("GB", 1e9),
        ("GiB", 1024.0 * 1024.0 * 1024.0),
    ];
    number(text, &units, "a size such as 512M or 2G").map(|bytes| bytes as u64)
}

/// `3%`, `0.03`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    share_such_as(text, "a share such as 3%")
}

fn share_such_as(text: &str, what: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent, &[("", 0.01)], what)?,
        None => number(text, &[("", 1.0)], what)?,
    };
    if share < 1.0 { Ok(share) } else { Err(format!("`{text}` is more than everything; write {what}")) }
}

/// Like [`share`], or `any` for no limit.
pub(super) fn growth(text: &str) -> Result<f64, String> {
    if text == "any" { Ok(f64::INFINITY) } else { share_such_as(text, "a share such as 1%, or `any`") }
}

fn number(text: &str, units: &[(&str, f64)], what: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not {what}");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let (_, factor) = units.iter().find(|(known, _)| known.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor;
    if value > 0.0 { Ok(value) } else { Err(format!("`{text}` must be above 0")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        assert_eq!(duration("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(milliseconds("20ms"), Ok(20.0));
        assert_eq!(bytes("512M"), Ok(512_000_000));
        assert_eq!(bytes("2 GiB"), Ok(2 << 30));
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(share("0.05"), Ok(0.05));
        assert_eq!((growth("1%"), growth("any")), (Ok(0.01), Ok(f64::INFINITY)));
    }

    #[test]
    fn what_is_not_understood_is_said_with_an_example() {
        for (error, example) in [
            (duration("15").unwrap_err(), "15m"),
            (duration("m").unwrap_err(), "15m"),
            (duration("0s").unwrap_err(), "above 0"),
            (bytes("512").unwrap_err(), "512M"),
            (bytes("-1M").unwrap_err(), "512M"),
            (share("3").unwrap_err(), "3%"),
            (share("many").unwrap_err(), "3%"),
        ] {
            assert!(error.contains(example), "{error}");
        }
    }
}
