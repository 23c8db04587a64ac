//! Numbers for people: three digits and a unit.

pub(super) use hasten_telemetry::duration;

/// 0, 7.3, 42, 980, 12.4k, 3.1M: a rate, without its unit.
pub(in crate::cmd) fn rate(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = value;
    let mut unit = 0;
    // 999.5 would round to a fourth digit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(value > 0.0 && value < 99.95 && (unit > 0 || value < 9.95));
    format!("{value:.digits$}{}", UNITS[unit])
}

/// 0 B, 980 B, 12.4 kB, 3.1 MB.
pub(super) fn bytes(bytes: f64) -> String {
    let rate = rate(bytes);
    match rate.find(|c: char| c.is_ascii_alphabetic()) {
        Some(unit) => format!("{} {}B", &rate[..unit], &rate[unit..]),
        None => format!("{rate} B"),
    }
}

/// 0, 7, 980, 12.4k, 3.1M: a count.
pub(in crate::cmd) fn count(count: u64) -> String {
    if count < 1000 { count.to_string() } else { rate(count as f64) }
}

pub(in crate::cmd) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    // 0% and 100% are reserved for none and all.
    match percent {
        p if p > 0.0 && p <= 0.5 => "<1%".to_owned(),
        p if (99.5..100.0).contains(&p) => ">99%".to_owned(),
        p => format!("{p:.0}%"),
    }
}

/// Nanoseconds as microseconds.
pub(super) fn micros(ns: u64) -> String {
    let us = ns as f64 / 1000.0;
    if us < 99.95 { format!("{us:.1}") } else { format!("{us:.0}") }
}

/// Cores with two digits after the point, or three below a tenth.
pub(super) fn cores(cores: f64) -> String {
    if cores > 0.0 && cores < 0.0995 { format!("{cores:.3}") } else { format!("{cores:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_at_most() {
        let texts = [0.0, 0.04, 7.34, 9.96, 42.4, 999.4, 999.6, 12_400.0, 99_960.0, 3.14e6].map(rate);
        assert_eq!(texts, ["0", "0.0", "7.3", "10", "42", "999", "1.0k", "12.4k", "100k", "3.1M"]);
        assert!(rate(u64::MAX as f64).ends_with('T'));
    }

    #[test]
    fn bytes_have_a_unit_of_their_own() {
        let texts = [0.0, 980.0, 12_400.0, 3.14e6, 1e9].map(bytes);
        assert_eq!(texts, ["0 B", "980 B", "12.4 kB", "3.1 MB", "1.0 GB"]);
    }

    #[test]
    fn counts_are_exact_while_they_are_short() {
        assert_eq!([0, 3, 999, 1000, 12_345].map(count), ["0", "3", "999", "1.0k", "12.3k"]);
    }

    #[test]
    fn percent_keeps_none_and_all_apart_from_nearly() {
        let texts = [0.0, 0.001, 0.005, 0.5, 0.9999, 1.0].map(percent);
        assert_eq!(texts, ["0%", "<1%", "<1%", "50%", ">99%", "100%"]);
    }

    #[test]
    fn small_times_and_shares_of_a_core_keep_their_digits() {
        assert_eq!([micros(1500), micros(976_000)], ["1.5", "976"]);
        assert_eq!([cores(0.0), cores(0.0123), cores(0.83), cores(12.0)], ["0.00", "0.012", "0.83", "12.00"]);
    }
}
