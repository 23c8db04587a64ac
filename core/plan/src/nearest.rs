//! "Did you mean …?"

/// The candidate that `word` most likely misspells, if any is close enough to be worth mentioning.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let closest = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate)).min()?;
    let tolerance = 1 + word.chars().count() / 4;
    (closest.0 <= tolerance).then_some(closest.1)
}

/// The advice for a user who wrote `word` where one of `valid` belongs.
pub fn suggestion(word: &str, valid: &[&str]) -> String {
    match nearest(word, valid.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("use one of {}", valid.join(", ")),
    }
}

/// Edit distance, ignoring case; swapping two neighbours counts as one edit.
fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("tls", "tls", 0),
            ("TLS", "tls", 0),
            ("tsl", "tls", 1),
            ("tl", "tls", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn suggests_only_what_is_close() {
        let keys = ["enabled", "break_even"];
        assert_eq!(nearest("breakeven", keys), Some("break_even"));
        assert_eq!(nearest("enable", keys), Some("enabled"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("x", []), None);
    }
}
