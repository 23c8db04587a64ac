//! Handshakes that ended well, and how many of them were hybrid.

use super::Counters;
use crate::Event;

/// The finished handshakes of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    pub finished: u64,
    /// Those by a group that is secure against quantum computers, too, whoever did the exchange.
    pub hybrid: u64,
}

impl Handshakes {
    /// Those in which the process was the server.
    pub fn of_servers(counters: &Counters) -> Self {
        Self { finished: counters[Event::HandshakeFinished], hybrid: counters[Event::HybridHandshake] }
    }

    /// Those in which it was the client, as a proxy is of its upstream.
    pub fn of_clients(counters: &Counters) -> Self {
        Self { finished: counters[Event::ClientHandshake], hybrid: counters[Event::ClientHybridHandshake] }
    }

    /// Hybrid ones as a part of all; `None` if there are none.
    pub fn hybrid_share(&self) -> Option<f64> {
        (self.finished > 0).then(|| self.hybrid.min(self.finished) as f64 / self.finished as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_a_share_of_its_own() {
        let mut counters = Counters::default();
        counters[Event::HandshakeFinished] = 8;
        counters[Event::HybridHandshake] = 6;
        counters[Event::ClientHandshake] = 10;
        assert_eq!(Handshakes::of_servers(&counters).hybrid_share(), Some(0.75));
        assert_eq!(Handshakes::of_clients(&counters).hybrid_share(), Some(0.0));
        assert_eq!(Handshakes::default().hybrid_share(), None);
        // The counts of a running process are not read at one moment.
        assert_eq!(Handshakes { finished: 1, hybrid: 2 }.hybrid_share(), Some(1.0));
    }
}
