//! All cases of a run in one sentence. The best alone would promise what most do not keep.

use serde::Serialize;

use crate::verdict::Verdict;

/// The outcome of every case.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Whole {
    cases: usize,
    faster: usize,
    no_difference: usize,
    slower: usize,
    failed: usize,
    /// The lowest and the highest ratio of those that did not fail.
    range: Option<(f64, f64)>,
}

/// The same as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub headline: String,
    pub cases: usize,
    pub faster: usize,
    pub no_difference: usize,
    pub slower: usize,
    pub failed: usize,
    /// CPU of stock / hasten, over all cases that did not fail.
    pub lowest_ratio: Option<f64>,
    pub highest_ratio: Option<f64>,
}

impl Whole {
    pub(super) fn of(cases: impl Iterator<Item = (Verdict, f64)>) -> Self {
        let mut whole = Self::default();
        for (verdict, ratio) in cases {
            whole.cases += 1;
            match verdict {
                Verdict::Faster => whole.faster += 1,
                Verdict::NoDifference => whole.no_difference += 1,
                Verdict::Slower => whole.slower += 1,
                Verdict::Failed => {
                    whole.failed += 1;
                    continue;
                }
            }
            let (low, high) = whole.range.unwrap_or((ratio, ratio));
            whole.range = Some((low.min(ratio), high.max(ratio)));
        }
        whole
    }

    /// `about` says what is measured: after `less ` or after nothing.
    pub(super) fn headline(&self, about: impl Fn(&str) -> String) -> String {
        let Self { cases, faster, failed, .. } = *self;
        match self.range {
            _ if cases == 0 => "Nothing was measured".to_owned(),
            _ if failed > 0 => format!("Failures in {failed} of {cases} cases"),
            Some(range) if faster == cases => {
                format!("{cases} of {cases} faster: {} {}", times(range), about("less "))
            }
            Some(_) if self.no_difference == cases => match cases {
                1 => format!("No difference in {}", about("")),
                _ => format!("No difference in {} in {cases} cases", about("")),
            },
            Some(range) => format!("{}: {}, stock / hasten {}", self.counts(), about(""), times(range)),
            None => "Nothing was measured".to_owned(),
        }
    }

    /// `4 of 6 faster, 1 no difference, 1 slower`
    pub(super) fn counts(&self) -> String {
        let others = [(self.no_difference, Verdict::NoDifference), (self.slower, Verdict::Slower)];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: String = others.map(|(count, verdict)| format!(", {count} {verdict}")).collect();
        format!("{} of {} faster{others}", self.faster, self.cases)
    }

    pub(super) fn summary(&self, headline: String) -> Summary {
        let Self { cases, faster, no_difference, slower, failed, range } = *self;
        let lowest_ratio = range.map(|(low, _)| low);
        let highest_ratio = range.map(|(_, high)| high);
        Summary { headline, cases, faster, no_difference, slower, failed, lowest_ratio, highest_ratio }
    }
}

/// `1.30× to 7.00×`
fn times((low, high): (f64, f64)) -> String {
    let (low, high) = (format!("{low:.2}×"), format!("{high:.2}×"));
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headline(cases: &[(Verdict, f64)]) -> String {
        Whole::of(cases.iter().copied()).headline(|what| format!("{what}CPU per request"))
    }

    #[test]
    fn the_headline_is_the_whole_and_not_the_best_case() {
        use Verdict::{Failed, Faster, NoDifference, Slower};
        let all = [1.3, 7.0, 2.0, 2.1, 4.0, 1.9].map(|ratio| (Faster, ratio));
        assert_eq!(headline(&all), "6 of 6 faster: 1.30× to 7.00× less CPU per request");
        assert_eq!(headline(&all[..1]), "1 of 1 faster: 1.30× less CPU per request");
        let mixed = [(Faster, 4.4), (NoDifference, 1.0), (Slower, 0.91)];
        let expected =
            "1 of 3 faster, 1 no difference, 1 slower: CPU per request, stock / hasten 0.91× to 4.40×";
        assert_eq!(headline(&mixed), expected);
        assert_eq!(headline(&mixed[2..]), "0 of 1 faster, 1 slower: CPU per request, stock / hasten 0.91×");
        assert_eq!(headline(&mixed[1..2]), "No difference in CPU per request");
        assert_eq!(headline(&[(NoDifference, 1.0); 3]), "No difference in CPU per request in 3 cases");
        assert_eq!(headline(&[(Faster, 9.0), (Failed, 1.0)]), "Failures in 1 of 2 cases");
        assert_eq!(headline(&[]), "Nothing was measured");
    }
}
