//! A possible value of a knob.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// The value without the knob, as shown.
    Stock(String),
    On,
    Off,
    Mib(u64),
    Count(u64),
    Word(String),
}

impl Value {
    pub(crate) fn stock(shown: impl Into<String>) -> Self {
        Self::Stock(shown.into())
    }

    pub(crate) fn word(word: impl Into<String>) -> Self {
        Self::Word(word.into())
    }

    /// The number, for knobs that have only numbers.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Mib(number) | Self::Count(number) => *number,
            Self::Stock(_) | Self::On | Self::Off | Self::Word(_) => 0,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stock(text) | Self::Word(text) => f.pad(text),
            Self::On => f.pad("on"),
            Self::Off => f.pad("off"),
            Self::Mib(size) => write!(f, "{size}M"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}
