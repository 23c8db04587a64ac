//! Numbers in the notations of tools.

use super::Received;

/// `1,234`, `12.5`, `34k`, `1.2M`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('"').replace(',', "");
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'M' | 'm') => (&text[..at], 1e6),
        (at, 'G' | 'g') => (&text[..at], 1e9),
        _ => (text.as_str(), 1.0),
    };
    // Not `inf`, `nan` or a sign: nothing is counted in those.
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    digits.parse::<f64>().ok().map(|number| number * factor).filter(|number| number.is_finite())
}

/// A length of time in milliseconds: `188.00us`, `1.05ms`, `2s`, `1m2.5s`, `2 ms`.
pub(super) fn milliseconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut total = None;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let end =
            rest.find(|letter: char| letter.is_ascii_digit() || letter.is_whitespace()).unwrap_or(rest.len());
        let factor = match &rest[..end] {
            "ns" => 1e-6,
            "us" | "µs" | "μs" => 1e-3,
            "ms" => 1.0,
            "s" | "sec" | "secs" => 1e3,
            "m" | "min" => 60e3,
            "h" => 3600e3,
            _ => return None,
        };
        total = Some(total.unwrap_or(0.0) + value * factor);
        rest = rest[end..].trim_start();
    }
    total.filter(|total| total.is_finite())
}

/// A number of bytes: `8.28MB` as in wrk and `188.53 KiB`, both in steps of 1024, and `5.81 MB` or `21 kB` in steps of
/// 1000, as in tools written in JavaScript and Go.
pub(super) fn size(text: &str) -> Option<Received> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (digits, unit) = text.split_at(end);
    let step: f64 = if unit.contains('i') || !unit.starts_with(' ') { 1024.0 } else { 1000.0 };
    let power = match unit.trim().chars().next()? {
        'B' => 0,
        'k' | 'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        _ => return None,
    };
    let number: f64 = digits.parse().ok().filter(|number| *number > 0.0)?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let last_digit = 0.1_f64.powi(i32::try_from(decimals).ok()?);
    let rounding = if power == 0 { 0.0 } else { last_digit / 2.0 / number };
    Some(Received { bytes: number * step.powi(power), rounding })
}

/// The text after `label` on the first line that begins with it.
pub(super) fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}

/// The number in front of `word` in a line of words.
pub(super) fn before(line: &str, word: &str) -> Option<f64> {
    let words: Vec<_> = line.split_whitespace().map(|word| word.trim_end_matches([',', ';', '.'])).collect();
    let at = words.iter().position(|&other| other == word)?;
    number(words.get(at.checked_sub(1)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_separators_and_factors() {
        for (text, expected) in [
            ("1,234", Some(1234.0)),
            ("34k", Some(34e3)),
            ("1.2M", Some(1.2e6)),
            ("\"7\"", Some(7.0)),
            ("x", None),
            ("", None),
            ("-3", None),
            ("inf", None),
            ("nan", None),
            ("k", None),
            ("1e400", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn sizes_know_how_far_they_are_rounded() {
        for (text, bytes, rounding) in [
            ("8.28MB", 8.28 * 1024.0 * 1024.0, 0.005 / 8.28),
            ("188.53 KiB", 188.53 * 1024.0, 0.005 / 188.53),
            ("5.81 MB", 5.81e6, 0.005 / 5.81),
            ("21 kB", 21e3, 0.5 / 21.0),
            ("937 B", 937.0, 0.0),
            ("2.00GB", 2.0 * 1024.0_f64.powi(3), 0.0025),
        ] {
            let Received { bytes: found, rounding: by } = size(text).unwrap();
            assert!((found - bytes).abs() < 1e-3 && (by - rounding).abs() < 1e-9, "{text}: {found} ± {by}");
        }
        assert_eq!([size("x"), size("0 B"), size("7"), size("1.2.3 MB"), size("7 parsec")], [None; 5]);
    }

    #[test]
    fn lengths_of_time_in_all_units() {
        for (text, expected) in [
            ("188.00us", Some(0.188)),
            ("1.05ms", Some(1.05)),
            ("2s", Some(2000.0)),
            ("1m2.5s", Some(62_500.0)),
            ("2 ms", Some(2.0)),
            ("1.5µs", Some(0.0015)),
            ("500ns", Some(0.0005)),
            ("5", None),
            ("ms", None),
            ("", None),
            ("1parsec", None),
            ("1.2.3ms", None),
        ] {
            match (milliseconds(text), expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-9, "{text}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{text}"),
            }
        }
    }
}
