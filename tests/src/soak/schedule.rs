//! What happens to the servers and when: derived from a seed before the run, the same for stock and accelerated ones.

use std::time::Duration;

use hasten_bench::server::ServerKind;

use super::random::Random;
use crate::lanes;

/// The servers under endurance.
pub const SERVERS: [ServerKind; 3] = ServerKind::ACCELERATED;

const RELOAD_EVERY: Duration = Duration::from_secs(10);

/// Seconds between two kills.
const KILLS: (u64, u64) = (15, 40);

/// Seconds between two switches, and how long an engine is out of service.
const SWITCHES: (u64, u64) = (15, 45);
const DISABLED: (u64, u64) = (2, 8);

/// The engines that a server is expected to use.
#[derive(Clone, Copy, Debug)]
pub struct Engines {
    pub handshakes: Option<&'static str>,
    pub bodies: &'static [&'static str],
}

impl Engines {
    /// On a CPU without lanes, no process has the engine that needs them; Envoy's plugin then has none for handshakes.
    #[must_use]
    pub fn of(server: ServerKind) -> Self {
        let handshakes = match server {
            _ if lanes::exist() => Some("multibuffer"),
            ServerKind::Envoy => None,
            _ => Some("graviola"),
        };
        let bodies: &[_] = match server {
            ServerKind::Nginx | ServerKind::Envoy => &["isal", "libdeflate", "bucket", "zlib-rs"],
            // Their own compression calls no zlib.
            ServerKind::Haproxy | ServerKind::HaproxyAwsLc => &[],
        };
        Self { handshakes, bodies }
    }

    fn switchable(self) -> Vec<&'static str> {
        self.handshakes.iter().chain(self.bodies).copied().chain(["all"]).collect()
    }
}

/// The parts of a run, given by their end times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Only load.
    pub warm: Duration,
    /// Reloads and kills.
    pub reloads: Duration,
    /// Load, and engines switched occasionally: the same workers throughout.
    pub steady: Duration,
}

/// Something that happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// New workers; for Envoy, new certificates.
    Reload,
    /// `kill -9` of the worker with this number, modulo their count.
    Kill(usize),
    Disable(&'static str),
    Enable(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Duration,
    pub server: ServerKind,
    pub action: Action,
}

/// Everything that happens, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub seed: u64,
    pub phases: Phases,
    pub events: Vec<Event>,
}

impl Phases {
    /// A tenth to warm up, but no more than a minute; the rest in halves.
    #[must_use]
    pub fn of(length: Duration) -> Self {
        let warm = (length / 10).min(Duration::from_secs(60));
        Self { warm, reloads: warm + (length - warm) / 2, steady: length }
    }
}

impl Schedule {
    #[must_use]
    pub fn new(seed: u64, length: Duration) -> Self {
        let phases = Phases::of(length);
        let mut random = Random::new(seed);
        let mut events = Vec::new();
        for server in SERVERS {
            reloads(server, phases, &mut events);
            switches(server, phases, &mut random, &mut events);
        }
        kills(phases, &mut random, &mut events);
        events.sort_by_key(|event| event.at);
        Self { seed, phases, events }
    }

    /// What happens to one kind of server.
    pub fn of(&self, server: ServerKind) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.server == server)
    }
}

fn reloads(server: ServerKind, phases: Phases, events: &mut Vec<Event>) {
    let mut at = phases.warm;
    while at < phases.reloads {
        events.push(Event { at, server, action: Action::Reload });
        at += RELOAD_EVERY;
    }
}

fn kills(phases: Phases, random: &mut Random, events: &mut Vec<Event>) {
    let mut at = phases.warm + seconds(random, KILLS);
    while at < phases.reloads {
        let server = *random.one_of(&SERVERS);
        events.push(Event { at, server, action: Action::Kill(random.below(16)) });
        at += seconds(random, KILLS);
    }
}

/// In the steady part, too; everything disabled is enabled again before the end.
fn switches(server: ServerKind, phases: Phases, random: &mut Random, events: &mut Vec<Event>) {
    let mut at = phases.warm + seconds(random, SWITCHES);
    loop {
        let until = at + seconds(random, DISABLED);
        if until >= phases.steady {
            break;
        }
        let engine = *random.one_of(&Engines::of(server).switchable());
        events.push(Event { at, server, action: Action::Disable(engine) });
        events.push(Event { at: until, server, action: Action::Enable(engine) });
        at = until + seconds(random, SWITCHES);
    }
}

fn seconds(random: &mut Random, (low, high): (u64, u64)) -> Duration {
    Duration::from_millis(random.between(low * 1000, high * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE_MINUTES: Duration = Duration::from_secs(300);

    #[test]
    fn a_seed_makes_one_schedule() {
        assert_eq!(Schedule::new(7, FIVE_MINUTES), Schedule::new(7, FIVE_MINUTES));
        assert_ne!(Schedule::new(7, FIVE_MINUTES).events, Schedule::new(8, FIVE_MINUTES).events);
    }

    #[test]
    fn all_servers_are_reloaded_every_ten_seconds_and_left_alone_after() {
        for seed in 0..50 {
            let schedule = Schedule::new(seed, FIVE_MINUTES);
            let Phases { warm, reloads, .. } = schedule.phases;
            for server in SERVERS {
                let times: Vec<_> = of(&schedule, server, |action| action == Action::Reload);
                assert_eq!(times.len(), 14);
                assert!(times.windows(2).all(|pair| pair[1] - pair[0] == RELOAD_EVERY));
            }
            let disturbs = |event: &&Event| matches!(event.action, Action::Reload | Action::Kill(_));
            let disturbances: Vec<_> = schedule.events.iter().filter(disturbs).collect();
            assert!(disturbances.iter().all(|event| event.at >= warm && event.at < reloads));
            assert!(schedule.events.iter().any(|event| matches!(event.action, Action::Kill(_))));
            assert!(schedule.events.is_sorted_by_key(|event| event.at));
        }
    }

    #[test]
    fn every_engine_is_enabled_again_before_another_is_disabled() {
        for seed in 0..50 {
            let schedule = Schedule::new(seed, FIVE_MINUTES);
            for server in SERVERS {
                let mut disabled = None;
                for event in schedule.of(server) {
                    match event.action {
                        Action::Disable(engine) => assert_eq!(disabled.replace(engine), None),
                        Action::Enable(engine) => assert_eq!(disabled.take(), Some(engine)),
                        Action::Reload | Action::Kill(_) => {}
                    }
                    assert!(event.at < FIVE_MINUTES);
                }
                assert_eq!(disabled, None);
            }
        }
    }

    fn of(schedule: &Schedule, server: ServerKind, is_wanted: fn(Action) -> bool) -> Vec<Duration> {
        schedule.of(server).filter(|event| is_wanted(event.action)).map(|event| event.at).collect()
    }
}
