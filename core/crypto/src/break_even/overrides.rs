//! Break-even figures fixed by the user: `rsa-2048-sign:3,p-256-sign:2`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use hasten_names::Algorithm;

use super::BreakEven;

/// Group sizes that measurement does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides([Option<usize>; Algorithm::COUNT]);

impl Overrides {
    /// The environment variable they come from.
    pub const VARIABLE: &'static str = "HASTEN_TLS_BREAK_EVEN";

    pub fn get(&self, algorithm: Algorithm) -> Option<usize> {
        self.0[algorithm.index()]
    }
}

impl FromStr for Overrides {
    type Err = OverridesError;

    /// Pairs `algorithm:lanes`, separated by commas, with lanes from 1 to 9, where 9 means never. Spaces around a pair
    /// are allowed, and so is an empty list.
    fn from_str(text: &str) -> Result<Self, OverridesError> {
        let mut overrides = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, lanes) =
                pair.split_once(':').ok_or_else(|| OverridesError::NoLanes { pair: pair.to_owned() })?;
            let algorithm = Algorithm::from_name(name).ok_or_else(|| OverridesError::UnknownAlgorithm {
                name: name.to_owned(),
                nearest: nearest(name),
            })?;
            let lanes = lanes.parse().ok().filter(|lanes| (1..=BreakEven::NEVER).contains(lanes));
            let lanes = lanes.ok_or_else(|| OverridesError::BadLanes { pair: pair.to_owned() })?;
            if overrides.0[algorithm.index()].replace(lanes).is_some() {
                return Err(OverridesError::Twice { algorithm });
            }
        }
        Ok(overrides)
    }
}

impl fmt::Display for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs =
            Algorithm::ALL.into_iter().filter_map(|algorithm| Some((algorithm, self.get(algorithm)?)));
        for (i, (algorithm, lanes)) in pairs.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{algorithm}:{lanes}")?;
        }
        Ok(())
    }
}

/// What is wrong with the variable, and how to write it correctly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverridesError {
    NoLanes { pair: String },
    UnknownAlgorithm { name: String, nearest: Algorithm },
    BadLanes { pair: String },
    Twice { algorithm: Algorithm },
}

impl fmt::Display for OverridesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Overrides::VARIABLE)?;
        match self {
            Self::NoLanes { pair } => {
                write!(f, "`{pair}` has no lanes: write `algorithm:lanes`, as in p-256-sign:2")
            }
            Self::UnknownAlgorithm { name, nearest } => {
                write!(f, "unknown algorithm `{name}`: did you mean `{nearest}`?")
            }
            Self::BadLanes { pair } => {
                write!(f, "`{pair}` asks for an impossible group: write a number from 1 to 8, or 9 for never")
            }
            Self::Twice { algorithm } => write!(f, "`{algorithm}` is given twice: keep one"),
        }
    }
}

impl Error for OverridesError {}

fn nearest(name: &str) -> Algorithm {
    let distance = |algorithm: &Algorithm| edit_distance(name.as_bytes(), algorithm.as_str().as_bytes());
    Algorithm::ALL.into_iter().min_by_key(distance).expect("there are algorithms")
}

/// The Levenshtein distance, with one row of memory.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Overrides>().unwrap_err().to_string()
    }

    #[test]
    fn pairs_are_read_and_written() {
        let overrides: Overrides = " rsa-2048-sign:3 ,p-384-derive:9,".parse().unwrap();
        assert_eq!(overrides.get(Algorithm::Rsa2048Sign), Some(3));
        assert_eq!(overrides.get(Algorithm::P384Derive), Some(9));
        assert_eq!(overrides.get(Algorithm::P256Sign), None);
        assert_eq!(overrides.to_string(), "rsa-2048-sign:3,p-384-derive:9");
        assert_eq!("".parse(), Ok(Overrides::default()));
    }

    #[test]
    fn errors_say_what_to_write() {
        assert_eq!(
            error("rsa2048:3"),
            "HASTEN_TLS_BREAK_EVEN: unknown algorithm `rsa2048`: did you mean `rsa-2048-sign`?"
        );
        assert_eq!(
            error("p-256-sign"),
            "HASTEN_TLS_BREAK_EVEN: `p-256-sign` has no lanes: write `algorithm:lanes`, as in p-256-sign:2"
        );
        for lanes in ["0", "10", "-1", "x", "", "3:4", "18446744073709551617"] {
            assert_eq!(
                error(&format!("p-256-sign:{lanes}")),
                format!(
                    "HASTEN_TLS_BREAK_EVEN: `p-256-sign:{lanes}` asks for an impossible group: write a number from 1 to 8, \
                     or 9 for never"
                )
            );
        }
        assert_eq!(
            error("p-256-sign:2,p-256-sign:3"),
            "HASTEN_TLS_BREAK_EVEN: `p-256-sign` is given twice: keep one"
        );
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, distance) in [("", "", 0), ("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2)] {
            assert_eq!(edit_distance(a.as_bytes(), b.as_bytes()), distance);
            assert_eq!(edit_distance(b.as_bytes(), a.as_bytes()), distance);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(lanes: [Option<u8>; Algorithm::COUNT]) {
            let overrides = Overrides(lanes.map(|lanes| lanes.map(|lanes| usize::from(lanes) % 9 + 1)));
            prop_assert_eq!(overrides.to_string().parse(), Ok(overrides));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([a-z0-9-]{0,14}[:,]?){0,6}|\\PC*") {
            if let Err(error) = text.parse::<Overrides>() {
                prop_assert!(error.to_string().starts_with("HASTEN_TLS_BREAK_EVEN: "));
            }
        }
    }
}
