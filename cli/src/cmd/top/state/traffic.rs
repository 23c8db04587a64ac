//! The traffic through a compression library, and which engine handled it.

use hasten_names::{Engine, ORIGINAL};
use hasten_telemetry::{Counters, Event};

/// The engines by their names in `HASTEN_GZIP_ENGINES`, fastest first; `hasten` is our own inflate.
pub(in crate::cmd::top) const ENGINES: [&str; 6] = [
    Engine::Isal.as_str(),
    Engine::Bucket.as_str(),
    Engine::Libdeflate.as_str(),
    "hasten",
    Engine::ZlibRs.as_str(),
    ORIGINAL,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd::top) enum Direction {
    Deflate,
    Inflate,
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cmd::top) struct Traffic {
    pub(in crate::cmd::top) streams: u64,
    pub(in crate::cmd::top) bytes_in: u64,
    pub(in crate::cmd::top) bytes_out: u64,
    /// Uncompressed bytes in the order of [`ENGINES`].
    pub(in crate::cmd::top) by_engine: [u64; ENGINES.len()],
    pub(in crate::cmd::top) verified: u64,
    pub(in crate::cmd::top) saved_ns: u64,
}

impl Direction {
    pub(in crate::cmd::top) const ALL: [Self; 2] = [Self::Deflate, Self::Inflate];

    pub(in crate::cmd::top) const fn as_str(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Inflate => "inflate",
        }
    }

    pub(in crate::cmd::top) fn of(self, counters: &Counters) -> Traffic {
        match self {
            Self::Deflate => Traffic {
                streams: counters[Event::DeflateStreams],
                bytes_in: counters[Event::DeflateBytesIn],
                bytes_out: counters[Event::DeflateBytesOut],
                by_engine: [
                    counters[Event::DeflateIsal],
                    counters[Event::DeflateBucket],
                    counters[Event::DeflateLibdeflate],
                    counters[Event::DeflateHasten],
                    counters[Event::DeflateZlibRs],
                    counters[Event::DeflateOriginal],
                ],
                verified: counters[Event::DeflateVerified],
                saved_ns: counters[Event::DeflateSavedNs],
            },
            Self::Inflate => Traffic {
                streams: counters[Event::InflateStreams],
                bytes_in: counters[Event::InflateBytesIn],
                bytes_out: counters[Event::InflateBytesOut],
                by_engine: inflated(counters),
                // There is nothing to verify.
                verified: 0,
                saved_ns: counters[Event::InflateSavedNs],
            },
        }
    }
}

/// Only two engines decompress: the library's own inflate, and the original.
fn inflated(counters: &Counters) -> [u64; ENGINES.len()] {
    [0, 0, 0, counters[Event::InflateHasten], 0, counters[Event::InflateOriginal]]
}

impl Traffic {
    pub(in crate::cmd::top) fn is_empty(&self) -> bool {
        self.streams == 0 && self.bytes_in == 0 && self.bytes_out == 0
    }

    /// Compressed size as a part of the uncompressed one, if there was anything to compress.
    pub(in crate::cmd::top) fn ratio(&self, direction: Direction) -> Option<f64> {
        let (small, large) = match direction {
            Direction::Deflate => (self.bytes_out, self.bytes_in),
            Direction::Inflate => (self.bytes_in, self.bytes_out),
        };
        (large > 0).then(|| small as f64 / large as f64)
    }

    /// An engine's share of all bytes, by its position in [`ENGINES`].
    pub(in crate::cmd::top) fn share(&self, engine: usize) -> Option<f64> {
        let all = self.by_engines();
        (all > 0).then(|| self.by_engine[engine] as f64 / all as f64)
    }

    /// Bytes that any engine has worked on.
    fn by_engines(&self) -> u64 {
        self.by_engine.iter().fold(0, |sum, bytes| bytes.saturating_add(sum))
    }
}

/// The share of all bytes, in either direction, that the original did not have to handle.
pub(in crate::cmd::top) fn accelerated(counters: &Counters) -> Option<f64> {
    let traffic = Direction::ALL.map(|direction| direction.of(counters));
    let all = traffic.iter().fold(0_u64, |sum, one| one.by_engines().saturating_add(sum));
    let original =
        traffic.iter().fold(0_u64, |sum, one| one.by_engine[ENGINES.len() - 1].saturating_add(sum));
    (all > 0).then(|| 1.0 - original as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        let mut counters = Counters::default();
        for (event, count) in [
            (Event::DeflateStreams, 10),
            (Event::DeflateBytesIn, 1000),
            (Event::DeflateBytesOut, 250),
            (Event::DeflateIsal, 600),
            (Event::DeflateOriginal, 200),
            (Event::InflateBytesIn, 100),
            (Event::InflateBytesOut, 400),
            (Event::InflateHasten, 400),
        ] {
            counters[event] = count;
        }
        counters
    }

    #[test]
    fn a_ratio_is_compressed_over_plain_whichever_way_it_goes() {
        for direction in Direction::ALL {
            assert_eq!(direction.of(&counters()).ratio(direction), Some(0.25), "{direction:?}");
            assert_eq!(direction.of(&Counters::default()).ratio(direction), None);
        }
    }

    #[test]
    fn shares_are_of_what_engines_did_not_of_what_is_still_gathered() {
        let deflate = Direction::Deflate.of(&counters());
        assert_eq!((deflate.share(0), deflate.share(5)), (Some(0.75), Some(0.25)));
        let inflate = Direction::Inflate.of(&counters());
        assert_eq!(inflate.by_engine, [0, 0, 0, 400, 0, 0]);
        assert_eq!(Direction::Inflate.of(&Counters::default()).share(1), None);
        assert_eq!(accelerated(&counters()), Some(1000.0 / 1200.0));
        assert_eq!(accelerated(&Counters::default()), None);
    }

    #[test]
    fn numbers_of_a_damaged_page_do_not_overflow() {
        let mut damaged = Counters::default();
        for event in Event::ALL {
            damaged[event] = u64::MAX;
        }
        assert_eq!(Direction::Deflate.of(&damaged).share(0), Some(1.0));
        assert_eq!(accelerated(&damaged), Some(0.0));
    }
}
