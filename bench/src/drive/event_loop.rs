//! One thread of the driver: its connections, and epoll as the only thing it waits for.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::client::ClientTls;
use super::connection::{Connection, Progress};
use super::failure::Failure;
use super::response::Response;
use super::{Load, Outcome, Target};
use crate::affinity::Pinned;
use crate::cpu;

/// How often operations are checked against their time limit.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

pub(super) struct EventLoop<'a> {
    target: &'a Target,
    load: &'a Load,
    cpu: Option<usize>,
    tls: ClientTls,
    epoll: OwnedFd,
    slots: Vec<Option<Slot>>,
    /// Those that send their requests in the next turn.
    due: Vec<usize>,
    outcome: Outcome,
}

/// A connection and what epoll was told about it.
struct Slot {
    connection: Connection,
    watched: Progress,
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(
        target: &'a Target,
        load: &'a Load,
        tls: &ClientTls,
        index: usize,
        connections: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            target,
            load,
            cpu: load.cpus.get(index % load.cpus.len().max(1)).copied(),
            tls: tls.clone(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            slots: (0..connections).map(|_| None).collect(),
            due: Vec::with_capacity(connections),
            outcome: Outcome::default(),
        })
    }

    /// Keeps every slot busy until the time is up, then lets what was started end.
    pub(super) fn run(mut self) -> io::Result<Outcome> {
        let _pinned = self.cpu.map(Pinned::to).transpose()?;
        let cpu_before = cpu::of_this_thread();
        let started = Instant::now();
        let end = started + self.load.duration;
        for index in 0..self.slots.len() {
            self.open(index, Response::default())?;
        }
        let mut events = Vec::with_capacity(256);
        let mut next_sweep = started + SWEEP;
        loop {
            let now = Instant::now();
            let more = now < end;
            if !more && self.slots.iter().all(Option::is_none) {
                break;
            }
            if now >= next_sweep {
                next_sweep = now + SWEEP;
                self.sweep(now, more)?;
            }
            let due = std::mem::take(&mut self.due);
            wait(&self.epoll, &mut events, if due.is_empty() { SWEEP } else { Duration::ZERO })?;
            let more = Instant::now() < end;
            for index in due {
                self.advance(index, more, Connection::send_request)?;
            }
            let body = self.target.body.as_deref();
            for event in events.drain(..) {
                self.advance(event.data.u64() as usize, more, |connection| connection.advance(body))?;
            }
        }
        self.outcome.driver_cpu = cpu::of_this_thread().saturating_sub(cpu_before);
        Ok(self.outcome)
    }

    fn advance(
        &mut self,
        index: usize,
        more: bool,
        step: impl FnOnce(&mut Connection) -> Result<Progress, Failure>,
    ) -> io::Result<()> {
        let Some(slot) = self.slots[index].as_mut() else { return Ok(()) };
        let progress = step(&mut slot.connection);
        if slot.connection.is_due() {
            self.due.push(index);
        }
        match progress {
            Ok(Progress::Done) => {
                let response = self.finish(index, None);
                if more { self.open(index, response) } else { Ok(()) }
            }
            Ok(progress) if progress == slot.watched => Ok(()),
            Ok(progress) => {
                slot.watched = progress;
                let data = EventData::new_u64(index as u64);
                Ok(epoll::modify(&self.epoll, slot.connection.socket(), data, interest(progress))?)
            }
            Err(failure) => {
                self.finish(index, Some(failure));
                Ok(())
            }
        }
    }

    /// Ends the operations that take too long and refills the slots of failed ones.
    ///
    /// A slot rests between a failure and the next sweep, so that a dead server is not hammered.
    fn sweep(&mut self, now: Instant, more: bool) -> io::Result<()> {
        for index in 0..self.slots.len() {
            match &self.slots[index] {
                Some(slot) if slot.connection.age(now) > self.load.timeout => {
                    let stage = slot.connection.stage();
                    self.finish(index, Some(Failure::Timeout(stage)));
                }
                None if more => self.open(index, Response::default())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Books an operation and empties its slot.
    fn finish(&mut self, index: usize, failure: Option<Failure>) -> Response {
        let Some(slot) = self.slots[index].take() else { return Response::default() };
        let (latency, response) = slot.connection.finish();
        match (failure, latency) {
            (None, Some(latency)) => {
                self.outcome.ops += 1;
                let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
                self.outcome.latency.saturating_record(micros);
            }
            (failure, _) => self.outcome.failures.record(&failure.unwrap_or(Failure::ClosedEarly)),
        }
        response
    }

    fn open(&mut self, index: usize, response: Response) -> io::Result<()> {
        let opened = Connection::open(self.target.address, &self.tls, response).and_then(|mut connection| {
            let watched = connection.write()?;
            Ok(Slot { connection, watched })
        });
        match opened {
            Ok(slot) => {
                let data = EventData::new_u64(index as u64);
                epoll::add(&self.epoll, slot.connection.socket(), data, interest(slot.watched))?;
                self.slots[index] = Some(slot);
            }
            Err(failure) => self.outcome.failures.record(&failure),
        }
        Ok(())
    }
}

/// Waits for events, for no longer than `most`.
pub(super) fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(most).expect("a short duration");
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn interest(progress: Progress) -> EventFlags {
    match progress {
        Progress::ReadOrWrite => EventFlags::IN | EventFlags::OUT,
        Progress::Read | Progress::Done => EventFlags::IN,
    }
}
