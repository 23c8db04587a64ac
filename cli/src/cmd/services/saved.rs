//! What a running service has gained, by its counters.

use std::time::Duration;

use hasten_telemetry::{Counters, Event, pages_of};
use hasten_units::Unit;
use serde::Serialize;

/// Since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(in crate::cmd) struct Saved {
    pub(in crate::cmd) handshakes: u64,
    /// Streams compressed and decompressed.
    pub(in crate::cmd) streams: u64,
    /// An estimate: learned costs of the original library, less the time that the engines took.
    pub(in crate::cmd) cpu_saved_s: f64,
    /// What systemd counted for the whole service.
    pub(in crate::cmd) cpu_used_s: Option<f64>,
}

impl Saved {
    /// `None` if nothing is counted in its processes, or they may not be inspected.
    pub(in crate::cmd) fn of(unit: &Unit) -> Option<Self> {
        let pages = pages_of(unit.process()?).ok().filter(|pages| !pages.is_empty())?;
        let mut total = Counters::default();
        pages.iter().filter_map(|page| page.read().ok()).for_each(|snapshot| total += &snapshot.total());
        Some(Self::new(&total, unit.cpu))
    }

    fn new(total: &Counters, cpu: Option<Duration>) -> Self {
        Self {
            handshakes: total[Event::HandshakeFinished],
            streams: total[Event::DeflateStreams] + total[Event::InflateStreams],
            cpu_saved_s: total.saved_ns() as f64 / 1e9,
            cpu_used_s: cpu.map(|cpu| cpu.as_secs_f64()),
        }
    }

    /// The part of its CPU time that it did not have to spend.
    pub(in crate::cmd) fn share(&self) -> Option<f64> {
        let whole = self.cpu_saved_s + self.cpu_used_s?;
        (whole > 0.0).then(|| self.cpu_saved_s / whole)
    }

    /// `12.3 s (21 %)`.
    pub(in crate::cmd) fn in_short(&self) -> String {
        let share = self.share().map(|share| format!(" ({:.0} %)", share * 100.0));
        format!("{:.1} s{}", self.cpu_saved_s, share.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_what_it_would_have_used() {
        let saved = Saved { cpu_saved_s: 1.0, cpu_used_s: Some(3.0), ..Saved::default() };
        assert_eq!((saved.share(), saved.in_short().as_str()), (Some(0.25), "1.0 s (25 %)"));
        let unknown = Saved { cpu_used_s: None, ..saved };
        assert_eq!((unknown.share(), unknown.in_short().as_str()), (None, "1.0 s"));
        assert_eq!(Saved { cpu_used_s: Some(0.0), ..Saved::default() }.share(), None);
    }
}
