//! Numbers as tools print them.

/// `1,234`, `12.5`, `34k`, `1.2M`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('"').replace(',', "");
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'M' | 'm') => (&text[..at], 1e6),
        (at, 'G' | 'g') => (&text[..at], 1e9),
        _ => (text.as_str(), 1.0),
    };
    // Not `inf`, `nan` or a sign: nobody counts with those.
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

/// What stands behind `label` on the first line that begins with it.
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
