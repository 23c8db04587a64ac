//! Quantities for people: as many digits as are significant, and a unit.
//!
//! Sizes are in powers of two, because V8's options are: `--max-semi-space-size=16` is 16 MiB.

/// 0.08 ms, 1.25 ms, 84.2 ms, 840 ms, 1.94 s, 3m 10s.
#[must_use]
pub fn pause(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9_995.0 => format!("{:.2} s", ms / 1e3),
        ms if ms < 59_950.0 => format!("{:.1} s", ms / 1e3),
        ms => span(ms),
    }
}

/// 840 ms, 12.3 s, 3m 10s, 2h 13m, 5d 1h: a stretch of time.
#[must_use]
pub fn span(ms: f64) -> String {
    let seconds = (ms / 1e3).round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if ms < 59_950.0 => format!("{:.1} s", ms / 1e3),
        0..3600 => format!("{minutes}m {}s", seconds % 60),
        3600..86_400 => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// 0.134 s, 12.345 s, 3m 10.2s, 2h 13m 5s: a place in a trace, exact enough to find it again.
#[must_use]
pub fn at(ms: f64) -> String {
    if ms < 59_999.5 {
        return format!("{:.3} s", ms / 1e3);
    }
    let tenths = (ms / 100.0).round() as u64;
    let (hours, minutes, seconds) = (tenths / 36_000, tenths / 600 % 60, tenths % 600);
    match hours {
        0 => format!("{minutes}m {}.{}s", seconds / 10, seconds % 10),
        _ => format!("{hours}h {minutes}m {}s", seconds / 10),
    }
}

/// 0 B, 980 B, 12.4 KiB, 3.1 MiB, 16 MiB, 1.2 GiB.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    // 1023.5 would round to a fourth digit.
    while value.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let whole = (value - value.round()).abs() < 0.005;
    let digits = usize::from(unit > 0 && value.abs() < 99.95 && !whole);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// As [`bytes`], per second.
#[must_use]
pub fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", bytes(bytes_per_second))
}

/// As [`bytes`], with a sign, per hour.
#[must_use]
pub fn trend(bytes_per_hour: f64) -> String {
    let sign = if bytes_per_hour < 0.0 { '−' } else { '+' };
    format!("{sign}{}/h", bytes(bytes_per_hour.abs()))
}

/// 0 %, <0.1 %, 3.2 %, 42 %: none and all are distinguished from nearly none and nearly all.
#[must_use]
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if (99.95..100.0).contains(&p) => ">99.9 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// 0.41×, 12.3×: times as much.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    match ratio {
        r if r < 9.995 => format!("{r:.2}×"),
        r if r < 99.95 => format!("{r:.1}×"),
        r => format!("{r:.0}×"),
    }
}

/// 7, 99999, 1.2M: exact as long as that is readable.
#[must_use]
pub fn count(count: u64) -> String {
    match count {
        0..100_000 => count.to_string(),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_three_digits() {
        let texts = [0.0, 0.084, 1.25, 9.996, 84.23, 840.4, 1944.0, 12_340.0, 190_000.0].map(pause);
        let expected = ["0.00 ms", "0.08 ms", "1.25 ms", "10.0 ms", "84.2 ms"];
        assert_eq!(texts[..5], expected);
        assert_eq!(texts[5..], ["840 ms", "1.94 s", "12.3 s", "3m 10s"]);
    }

    #[test]
    fn spans_show_two_units() {
        let texts = [840.0, 12_340.0, 59_960.0, 190_000.0, 7_980_000.0, 435_600_000.0].map(span);
        assert_eq!(texts, ["840 ms", "12.3 s", "1m 0s", "3m 10s", "2h 13m", "5d 1h"]);
    }

    #[test]
    fn places_can_be_found_again() {
        let texts = [134.0, 12_345.4, 59_999.6, 190_240.0, 7_985_000.0].map(at);
        assert_eq!(texts, ["0.134 s", "12.345 s", "1m 0.0s", "3m 10.2s", "2h 13m 5s"]);
    }

    #[test]
    fn sizes_are_powers_of_two() {
        let mib = f64::from(1 << 20);
        let texts = [0.0, 980.0, 12_698.0, 3.13 * mib, 16.0 * mib, 1023.9 * mib].map(bytes);
        assert_eq!(texts, ["0 B", "980 B", "12.4 KiB", "3.1 MiB", "16 MiB", "1 GiB"]);
        assert_eq!(rate(120.0 * mib), "120 MiB/s");
        assert_eq!([trend(3.0 * mib), trend(-3.0 * mib)], ["+3 MiB/h", "−3 MiB/h"]);
    }

    #[test]
    fn shares_keep_none_and_all_apart_from_nearly() {
        let texts = [0.0, 0.0004, 0.032, 0.42, 0.9997, 1.0].map(percent);
        assert_eq!(texts, ["0 %", "<0.1 %", "3.2 %", "42 %", ">99.9 %", "100 %"]);
    }

    #[test]
    fn ratios_and_counts_are_short() {
        assert_eq!([0.414, 12.34, 123.4].map(ratio), ["0.41×", "12.3×", "123×"]);
        assert_eq!([7, 99_999, 100_000, 1_234_567].map(count), ["7", "99999", "100k", "1.2M"]);
    }
}
