//! "Did you mean …?"

/// The candidate that `word` is most likely a misspelling of, if any is close enough to be worth a mention.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let closest = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate)).min()?;
    let tolerance = 1 + word.chars().count() / 4;
    (closest.0 <= tolerance).then_some(closest.1)
}

/// What to tell somebody who wrote `word` where one of `valid` belongs.
pub fn suggestion(word: &str, valid: &[&str]) -> String {
    match nearest(word, valid.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("use one of {}", valid.join(", ")),
    }
}

/// Edit distance in which swapping two neighbours is one edit (optimal string alignment), case ignored.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
