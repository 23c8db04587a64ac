//! What differs between the series of OpenSSL: the numbers of libssl's state machine, which no header promises. A series
//! that [`hasten_openssl::SERIES`] knows has an entry here.

use core::ffi::c_int;
use std::sync::OnceLock;

use hasten_openssl::Series;

use super::abi::OpenSSL_version_num;

/// What libssl's source says of some series.
struct Release {
    series: &'static [&'static str],
    /// `TLS_ST_OK`: no handshake is under way.
    done: c_int,
    /// `TLS_ST_SW_SESSION_TICKET`: the server sends a ticket.
    sends_ticket: c_int,
}

const RELEASES: &[Release] = &[
    Release { series: &["3.0", "3.1"], done: 1, sends_ticket: 33 },
    // Compressed certificates have states of their own.
    Release { series: &["3.2", "3.3", "3.4", "3.5", "3.6", "4.0"], done: 1, sends_ticket: 37 },
];

static DETECTED: OnceLock<Option<&'static Release>> = OnceLock::new();

/// Whether the process has an OpenSSL of a series that is known.
pub(crate) fn detect() -> bool {
    detected().is_some()
}

/// Whether a server's handshake in this state, of `SSL_get_state`, sends a ticket.
pub(crate) fn sends_ticket(state: c_int) -> bool {
    detected().is_some_and(|release| state == release.sends_ticket)
}

/// Whether a server's handshake in this state has yet to send its tickets.
pub(crate) fn is_before_tickets(state: c_int) -> bool {
    detected().is_some_and(|release| state != release.done && state != release.sends_ticket)
}

fn detected() -> Option<&'static Release> {
    *DETECTED.get_or_init(|| {
        // SAFETY: no argument, no precondition.
        let series = Series::of_number(unsafe { OpenSSL_version_num.get()() })?;
        RELEASES.iter().find(|release| release.series.contains(&series.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_series_has_its_entry() {
        for series in hasten_openssl::SERIES {
            let entries = RELEASES.iter().filter(|release| release.series.contains(&series.name)).count();
            assert_eq!(entries, 1, "OpenSSL {}", series.name);
        }
    }
}
