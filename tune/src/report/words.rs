//! A report's numbers in words.

use super::{Bytes, Effect, Fate, Report};
use crate::measure::{Counter, Outcome};

impl Report {
    /// The size of an answer of the service as it is, and how much a setting may add.
    pub(super) fn bytes_line(&self) -> Option<String> {
        let Bytes { per_request, counted_by, limit } = self.bytes?;
        let counter = match counted_by {
            Counter::Load => "as the load received them",
            Counter::Pages => "as hasten received the load's pages, since the load does not count",
        };
        let limit = match limit {
            Some(limit) => format!("{} more is the most that a setting may add", percent(limit)),
            None => "a setting may add as many as it likes".to_owned(),
        };
        Some(format!("{per_request:.0} for each request of the service as it is, {counter}; {limit}"))
    }

    /// The result of the service against itself.
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

/// A measurement is worth four digits at most.
#[must_use]
pub fn value(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    match magnitude {
        -3..=3 => format!("{value:.*}", usize::try_from(3 - magnitude).unwrap_or(0)),
        4..=8 => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}

/// `4 min 05 s`
#[must_use]
pub fn duration(seconds: f64) -> String {
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
