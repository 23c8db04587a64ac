//! What running processes of the program have counted.

use hasten_probe::Program;
use hasten_telemetry::{Counters, Handshakes, discover};
use serde::Serialize;

use crate::cmd::top::format::{count, percent};

/// The handshakes of all accelerated processes with the program's name, since their start.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Running {
    processes: usize,
    server: Side,
    client: Side,
}

#[derive(Debug, PartialEq, Serialize)]
struct Side {
    handshakes: u64,
    hybrid: u64,
    hybrid_share: Option<f64>,
}

impl Running {
    /// `None` if no such process has finished a handshake.
    pub(super) fn of(program: &Program) -> Option<Self> {
        let name = program.executable.file_name()?.to_string_lossy().into_owned();
        let mut total = Counters::default();
        let mut processes = 0;
        for page in discover().iter().filter(|page| page.program == name) {
            if let Ok(snapshot) = page.read() {
                processes += page.processes.len();
                total += &snapshot.total();
            }
        }
        Self::new(processes, &total)
    }

    fn new(processes: usize, total: &Counters) -> Option<Self> {
        let (servers, clients) = (Handshakes::of_servers(total), Handshakes::of_clients(total));
        (servers.finished + clients.finished > 0).then(|| Self {
            processes,
            server: Side::new(servers),
            client: Side::new(clients),
        })
    }

    pub(super) fn text(&self) -> String {
        let sides = [(&self.server, "as a server"), (&self.client, "as a client")];
        let sides = sides.into_iter().filter(|(side, _)| side.handshakes > 0);
        let sides: Vec<_> = sides.map(|(side, whose)| side.text(whose)).collect();
        let noun = if self.processes == 1 { "process" } else { "processes" };
        format!("\nRunning: {} {noun}. Of the handshakes {}\n", self.processes, sides.join("; of those "))
    }
}

impl Side {
    fn new(handshakes: Handshakes) -> Self {
        Self {
            handshakes: handshakes.finished,
            hybrid: handshakes.hybrid,
            hybrid_share: handshakes.hybrid_share(),
        }
    }

    fn text(&self, whose: &str) -> String {
        let share = percent(self.hybrid_share.unwrap_or_default());
        format!("{whose}, {} since the start, {share} were hybrid (post-quantum)", count(self.handshakes))
    }
}

#[cfg(test)]
mod tests {
    use hasten_telemetry::Event;

    use super::*;

    #[test]
    fn shares_are_told_for_each_side_that_there_is() {
        let mut total = Counters::default();
        assert_eq!(Running::new(1, &total), None);
        total[Event::HandshakeFinished] = 200;
        total[Event::HybridHandshake] = 126;
        let text = |total: &Counters| Running::new(2, total).unwrap().text();
        let server = "\nRunning: 2 processes. Of the handshakes as a server, 200 since the start, 63% were hybrid (post-quantum)";
        assert_eq!(text(&total), format!("{server}\n"));
        total[Event::ClientHandshake] = 10;
        let client = "; of those as a client, 10 since the start, 0% were hybrid (post-quantum)";
        assert_eq!(text(&total), format!("{server}{client}\n"));
    }
}
