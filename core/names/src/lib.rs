//! The names used in more than one crate, defined once: the vocabulary of the counter page, of settings, reports and
//! metrics.
//!
//! The position of a name in its list is its index on the page: append new names at the end, never reorder, never reuse.

#![forbid(unsafe_code)]

mod algorithm;
mod breaker;
mod engine;
mod event;
mod feature;
mod group;
mod reason;
mod suspension;
mod vocabulary;

pub use algorithm::{Algorithm, LANES, NEVER};
pub use breaker::{BreakerState, Fault};
pub use engine::{Engine, EngineClass, ORIGINAL};
pub use event::Event;
pub use feature::Feature;
pub use group::{Curve, Group};
pub use reason::Reason;
pub use suspension::{Doubt, Suspension};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Applies a macro to every vocabulary.
    macro_rules! with_each {
        ($do:ident) => {
            $do!(Algorithm Curve Group Feature Reason Event Engine EngineClass BreakerState Fault Suspension Doubt)
        };
    }

    #[test]
    fn a_name_is_where_its_index_says() {
        macro_rules! check {
            ($($Name:ident)*) => { $(
                for (at, one) in $Name::ALL.into_iter().enumerate() {
                    assert_eq!((one.index(), $Name::from_index(at)), (at, Some(one)), "{one}");
                    assert_eq!((usize::from(one.number()), $Name::from_number(at + 1)), (at + 1, Some(one)), "{one}");
                    assert_eq!(($Name::NAMES[at], $Name::from_name(one.as_str())), (one.as_str(), Some(one)));
                }
                assert_eq!(($Name::from_index($Name::COUNT), $Name::from_number($Name::COUNT + 1)), (None, None));
                assert_eq!(($Name::from_number(0), $Name::from_name("")), (None, None));
            )* };
        }
        with_each!(check);
    }

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        fn check(names: &[&str]) {
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
            for name in names {
                // Feature names are the kernel's.
                let joint = if Feature::from_name(name).is_some() { '_' } else { '-' };
                let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == joint;
                assert!(
                    name.chars().all(kebab) && !name.starts_with(joint) && !name.ends_with(joint),
                    "{name}"
                );
            }
        }
        macro_rules! check {
            ($($Name:ident)*) => { $(check(&$Name::NAMES);)* };
        }
        with_each!(check);
    }

    /// The order is the page's ABI: readers from other builds rely on it.
    #[test]
    fn the_first_and_last_names_stay_where_version_1_put_them() {
        assert_eq!((Algorithm::Rsa2048Sign.index(), Algorithm::P384Derive.index()), (0, 10));
        assert_eq!((Reason::Disabled.index(), Reason::UnknownLibrary.index()), (0, 12));
        assert_eq!((Event::HandshakeStarted.index(), Event::TurnsBatched.index()), (0, 15));
        assert_eq!((Engine::Multibuffer.index(), Engine::ZlibRs.index(), Engine::Dlb.index()), (0, 3, 8));
        assert_eq!((BreakerState::Closed.index(), BreakerState::Disabled.index()), (0, 3));
        assert_eq!((Fault::Error.index(), Fault::Crashed.index()), (0, 7));
        assert_eq!((Reason::NotNativeStack.index(), Reason::SuspensionOff.index()), (19, 22));
        assert_eq!((Event::CalledIn.index(), Event::ForeignCall.index()), (35, 37));
        assert_eq!((Suspension::Proven.index(), Suspension::Off.index()), (0, 3));
        assert_eq!((Doubt::ForeignThread.index(), Doubt::ReconfiguredOpenssl.index()), (0, 4));
    }

    #[test]
    fn the_manual_lists_every_name_at_its_place() {
        let manual = include_str!("../../../docs/telemetry.md");
        let row = |index: usize, name: &str| format!("| {index} | `{name}` |");
        let reasons = Reason::ALL.iter().map(|r| row(r.index(), r.as_str()));
        let events = Event::ALL.iter().map(|e| row(e.index(), e.as_str()));
        let engines = Engine::ALL.iter().map(|e| row(e.index(), e.as_str()));
        let faults = Fault::ALL.iter().map(|f| row(f.number().into(), f.as_str()));
        let states =
            BreakerState::ALL.iter().map(|s| format!("| {} | `{s}` | {} |", s.index(), s.in_words()));
        let suspensions = Suspension::ALL.iter().map(|s| row(s.number().into(), s.as_str()));
        let doubts = Doubt::ALL.iter().map(|d| row(d.number().into(), d.as_str()));
        let rows = reasons.chain(events).chain(engines).chain(faults).chain(states);
        for row in rows.chain(suspensions).chain(doubts) {
            assert!(manual.contains(&row), "{row}");
        }
        let algorithms = Algorithm::ALL.map(|a| format!("`{a}`")).join(", ");
        assert!(manual.replace('\n', " ").contains(&algorithms), "{algorithms}");
    }

    #[test]
    fn every_reason_fault_and_doubt_has_a_sentence_of_help() {
        let reasons = Reason::ALL.map(|reason| (reason.as_str(), reason.help()));
        let faults = Fault::ALL.map(|fault| (fault.as_str(), fault.help()));
        let doubts = Doubt::ALL.map(|doubt| (doubt.as_str(), doubt.help()));
        for (name, help) in reasons.into_iter().chain(faults).chain(doubts) {
            assert!(help.len() > 40 && help.ends_with('.') && !help.contains("  "), "{name}: {help}");
        }
    }
}
