//! The last minute: counts since the start do not show whether anything is happening now.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hasten_telemetry::{Counters, Window};

use crate::totals::{Key, Programs};

/// How far back it goes, and the minimum distance between samples.
const SPAN: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_secs(5);

/// Counts up to some moments, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    past: VecDeque<(Instant, Vec<(Key, Counters)>)>,
}

impl Recent {
    pub(crate) fn record(&mut self, now: Instant, programs: &Programs) {
        if self.past.back().is_some_and(|(at, _)| now.duration_since(*at) < STEP) {
            return;
        }
        self.past.push_back((
            now,
            programs.iter().map(|(key, one)| (key.clone(), one.counters.clone())).collect(),
        ));
        // One that is older than the span stays: the window begins there.
        while self.past.get(1).is_some_and(|(at, _)| now.duration_since(*at) > SPAN) {
            self.past.pop_front();
        }
    }

    /// The program's counts since the window began. One that did not exist then has counted everything since.
    pub(crate) fn window(&self, now: Instant, key: &Key, counters: &Counters) -> Option<Window> {
        let (since, programs) = self.past.front()?;
        let elapsed = now.duration_since(*since);
        let before = programs.iter().find(|(one, _)| one == key).map(|(_, counters)| counters);
        let counted = before.map_or_else(|| counters.clone(), |before| counters.since(before));
        (!elapsed.is_zero()).then_some(Window { elapsed, counted })
    }
}

#[cfg(test)]
mod tests {
    use hasten_telemetry::Event;

    use super::*;
    use crate::totals::Program;

    fn key() -> Key {
        Key { program: "nginx".to_owned(), accelerator: "tls".to_owned(), container: String::new() }
    }

    fn after(handshakes: u64) -> Counters {
        let mut counters = Counters::default();
        counters[Event::HandshakeFinished] = handshakes;
        counters
    }

    #[test]
    fn a_window_goes_back_a_minute_and_no_further() {
        let start = Instant::now();
        let mut recent = Recent::default();
        for second in 0..200 {
            let program = Program { counters: after(second * 10), ..Program::default() };
            recent.record(start + Duration::from_secs(second), &[(key(), program)].into());
        }
        assert!(recent.past.len() <= 14, "{}", recent.past.len());
        let now = start + Duration::from_secs(199);
        let window = recent.window(now, &key(), &after(1990)).unwrap();
        assert!((60..=70).contains(&window.elapsed.as_secs()), "{:?}", window.elapsed);
        assert_eq!(window.counted[Event::HandshakeFinished], window.elapsed.as_secs() * 10);
    }

    #[test]
    fn a_first_look_has_no_window() {
        let now = Instant::now();
        let mut recent = Recent::default();
        assert!(recent.window(now, &key(), &after(5)).is_none());
        recent.record(now, &Programs::new());
        assert!(recent.window(now, &key(), &after(5)).is_none());
        let later = recent.window(now + Duration::from_secs(1), &key(), &after(5)).unwrap();
        assert_eq!(later.counted[Event::HandshakeFinished], 5);
    }
}
