//! What happens to servers: reloads, kills, and engines out of service.

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hasten_bench::server::ServerKind;
use rustix::process::Signal;

use super::ledger::{Kill, Reload};
use super::schedule::{Action, Event, Schedule};
use super::station::{Clock, Station};
use crate::subject::send;
use crate::{Side, product, tools, wait};

const POLL: Duration = Duration::from_millis(50);

/// A newly started HAProxy master loses a reload signal, stock or not: it is sent again.
const RELOADS: u32 = 10;
const SOON: Duration = Duration::from_secs(5);

/// Applies the schedule to one server, until it ends or the run is stopped.
pub(super) fn act(station: &Station, schedule: &Schedule, clock: Clock, stop: &AtomicBool) {
    for Event { at, action, .. } in schedule.of(station.kind) {
        while clock.now() < *at {
            if stop.load(Relaxed) {
                return;
            }
            thread::sleep(POLL);
        }
        match action {
            Action::Reload => reload(station, clock),
            Action::Kill(number) => kill(station, *number, clock),
            Action::Disable(engine) => switch(station, "disable", engine),
            Action::Enable(engine) => switch(station, "enable", engine),
        }
    }
}

fn reload(station: &Station, clock: Clock) {
    if station.kind == ServerKind::Envoy {
        station.next_generation();
        let reload = Reload { at: clock.now(), old: Vec::new() };
        station.remember(|history| history.reloads.push(reload));
        return station.renew_secrets();
    }
    station.keep_counters();
    station.next_generation();
    for _ in 0..RELOADS {
        let old = station.workers();
        let reload = Reload { at: clock.now(), old: old.clone() };
        station.remember(|history| history.reloads.push(reload));
        let signal = match station.kind {
            ServerKind::Nginx => Signal::HUP,
            _ => Signal::USR2,
        };
        send(station.pid(), signal);
        if comes_true(|| station.workers().iter().any(|worker| !old.contains(worker))) {
            return;
        }
    }
    panic!("{} does not reload\n{}", station.name(), station.log());
}

/// Whether it becomes true soon.
fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

/// Stops a worker, so that it accepts nobody, records its clients, and kills it.
fn kill(station: &Station, number: usize, clock: Clock) {
    let workers = station.workers();
    let (victim, was_alone) = match station.kind {
        // An old worker that is only finishing after a reload would not be replaced.
        ServerKind::Nginx => {
            let old = station.before_reload();
            let young: Vec<_> = workers.iter().filter(|worker| !old.contains(worker)).collect();
            (*young[number % young.len()], false)
        }
        // The newest is the one that accepts; of Envoy it is the only one.
        ServerKind::Haproxy | ServerKind::HaproxyAwsLc | ServerKind::Envoy => {
            (workers[workers.len() - 1], true)
        }
    };
    station.keep_counters();
    send(victim, Signal::STOP);
    wait::until("a worker to stop", || is_stopped(victim));
    let at = clock.now();
    let lost = if was_alone { workers.clone() } else { vec![victim] };
    let ports = connections(station.address().port(), &lost, was_alone);
    send(victim, Signal::KILL);
    if was_alone {
        // HAProxy's master ends with its worker; a supervisor starts it again.
        wait::until("the master to end", || station.has_ended());
        station.restart();
    } else {
        let is_replaced = || station.workers().iter().any(|worker| !workers.contains(worker));
        wait::until("another worker", is_replaced);
    }
    let kill = Kill { at, until: clock.now(), workers: lost, ports, was_alone };
    station.remember(|history| history.kills.push(kill));
}

/// Waits as long as a busy machine may take. Even an engine that has not been used yet gets disabled.
fn switch(station: &Station, verb: &str, engine: &str) {
    if station.side != Side::Accelerated {
        return;
    }
    let command = || {
        let mut command = Command::new(product::hasten());
        command.args(["engine", verb, engine, &station.accelerated_pid().to_string(), "--wait", "30"]);
        command
    };
    // A process that is starting or being replaced has no library or no page for a moment.
    let done = || command().output().is_ok_and(|output| output.status.success());
    if !comes_true(done) {
        tools::run(&mut command());
    }
}

fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// The other ends of a port's connections that these processes hold, or that nobody has accepted yet.
fn connections(port: u16, processes: &[u32], with_unaccepted: bool) -> HashSet<u16> {
    let owned: HashSet<String> = processes.iter().flat_map(|process| sockets(*process)).collect();
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let is_ours = |inode: &str| owned.contains(inode) || with_unaccepted && inode == "0";
    other_ends(&table, port, is_ours)
}

/// From lines like `0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 4242 …`.
fn other_ends(table: &str, port: u16, is_ours: impl Fn(&str) -> bool) -> HashSet<u16> {
    let local = format!("0100007F:{port:04X}");
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = lines.filter(|fields| fields.len() > 9 && fields[1] == local && is_ours(fields[9]));
    let ends = ours.filter_map(|fields| u16::from_str_radix(fields[2].split_once(':')?.1, 16).ok());
    // The listening socket has no other end.
    ends.filter(|port| *port != 0).collect()
}

/// The inodes of a process's sockets.
fn sockets(process: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn whose_connections_are_whose() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _ours = listener.accept().unwrap();
        let waiting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let end = |stream: &TcpStream| stream.local_addr().unwrap().port();

        let this = std::process::id();
        assert_eq!(connections(port, &[this], false), [end(&accepted)].into());
        assert_eq!(connections(port, &[this], true), [end(&accepted), end(&waiting)].into());
        assert_eq!(connections(port, &[1], false), [].into(), "somebody else's");
        assert_eq!(connections(end(&accepted), &[this], false), [port].into(), "from the other side");
    }
}
