//! What the numbers of a report are in words.

use super::{Effect, Fate, Report, Verdict};
use crate::measure::Outcome;

impl Report {
    /// The verdict in a line.
    #[must_use]
    pub fn headline(&self) -> String {
        let name = &self.objective.name;
        match (self.verdict, &self.winner) {
            (Verdict::Better, Some(winner)) => {
                let Effect { change, .. } = winner.effect;
                format!("{} {} {name}", percent(change.abs()), if change < 0.0 { "less" } else { "more" })
            }
            (Verdict::Better | Verdict::NoDifference, _) => {
                format!("Nothing that was tried changes {name} for the better")
            }
            (Verdict::TooNoisy, _) => {
                format!("Too noisy to see a difference of {} in {name}", percent(self.noise.wanted_effect))
            }
            (Verdict::Unfinished, _) => "Stopped before anything could be proven".to_owned(),
        }
    }

    /// What stands behind the headline.
    #[must_use]
    pub fn support(&self) -> String {
        match (self.verdict, &self.winner) {
            (Verdict::Better, Some(winner)) => format!(
                "{}, from {} fresh pairs that were measured after the choice was made",
                interval(winner.effect),
                winner.pairs.len()
            ),
            _ => match self.noise.smallest_effect {
                Some(smallest) => {
                    format!("This session could see differences of {} and more", percent(smallest))
                }
                None => "The noise of this machine was not measured to the end".to_owned(),
            },
        }
    }

    /// What the service against itself says.
    pub(super) fn noise_line(&self) -> Option<String> {
        let (effect, smallest) = (self.noise.effect?, self.noise.smallest_effect?);
        Some(format!(
            "A/A {} ({}); effects from {} up can be seen, and {} was asked for",
            change(effect.change),
            interval(effect),
            percent(smallest),
            percent(self.noise.wanted_effect)
        ))
    }

    pub(super) fn failures(&self) -> usize {
        self.trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Disqualified(_))).count()
    }
}

impl Fate {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NotNeeded => "not needed",
            Self::NoGain => "no gain",
            Self::NotProven => "promising, not proven",
            Self::Undecided => "undecided",
            Self::Harmful => "harmful",
            Self::Disqualified => "disqualified",
            Self::Untried => "not tried",
        }
    }
}

/// `12.3 %`, without a sign.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share.abs() * 100.0)
}

/// `−12.3 %`
pub(super) fn change(share: f64) -> String {
    let sign = if share < -0.0005 {
        "−"
    } else if share >= 0.0005 {
        "+"
    } else {
        "±"
    };
    format!("{sign}{}", percent(share))
}

pub(super) fn interval(effect: Effect) -> String {
    format!("95 % interval {} to {}", change(effect.low), change(effect.high))
}

/// Four digits are all that a measurement is worth.
pub(super) fn value(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    match magnitude {
        -3..=3 => format!("{value:.*}", usize::try_from(3 - magnitude).unwrap_or(0)),
        4..=8 => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}

/// `4 min 05 s`
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match (whole / 60, whole % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds:02} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!([change(-0.1234), change(0.05), change(0.0)], ["−12.3 %", "+5.0 %", "±0.0 %"]);
        assert_eq!(
            [value(0.012_345), value(12.345), value(12345.6), value(0.0)],
            ["0.01235", "12.35", "12346", "0.000"]
        );
        assert_eq!([value(1.5e-7), value(2.5e12)], ["1.500e-7", "2.500e12"]);
        assert_eq!([duration(59.4), duration(245.0)], ["59 s", "4 min 05 s"]);
    }
}
