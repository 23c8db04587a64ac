//! One thread of the driver: its connections, and epoll as its only wait.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::Outcome;
use super::failure::Failure;
use crate::affinity::Pinned;
use crate::cpu;

/// How often operations are checked against their time limit.
const SWEEP: Duration = Duration::from_millis(100);

/// When an unfinished operation wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// When the socket is readable.
    Read,
    /// When it is readable or writable: the kernel did not take everything.
    ReadOrWrite,
    /// Never: the connection is over.
    Done,
}

/// What a thread does with its connections.
pub(super) trait Exchange {
    type Connection: Connection;

    /// Starts connecting.
    fn open(&mut self) -> Result<(Self::Connection, Progress), Failure>;

    /// Continues when the socket is ready. `more` says whether a connection may begin another operation.
    fn advance(
        &mut self,
        connection: &mut Self::Connection,
        more: bool,
        outcome: &mut Outcome,
    ) -> Result<Progress, Failure>;

    /// Does the work deferred to the next turn of the loop.
    fn resume(&mut self, _connection: &mut Self::Connection) -> Result<Progress, Failure> {
        Ok(Progress::Read)
    }

    /// Recovers what the next connection can reuse.
    fn close(&mut self, _connection: Self::Connection) {}
}

pub(super) trait Connection {
    fn socket(&self) -> BorrowedFd<'_>;

    /// When its operation began.
    fn started(&self) -> Instant;

    /// What its operation is waiting for, in words.
    fn stage(&self) -> &'static str;

    /// Whether it must be resumed in the next turn of the loop.
    fn is_due(&self) -> bool {
        false
    }
}

/// How long a thread drives, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    pub(super) duration: Duration,
    pub(super) timeout: Duration,
    pub(super) cpu: Option<usize>,
}

impl Drive {
    /// Threads use the CPUs in turn.
    pub(super) fn new(duration: Duration, timeout: Duration, cpus: &[usize], thread: usize) -> Self {
        Self { duration, timeout, cpu: cpus.get(thread % cpus.len().max(1)).copied() }
    }
}

pub(super) struct EventLoop<X: Exchange> {
    exchange: X,
    drive: Drive,
    epoll: OwnedFd,
    slots: Vec<Option<Slot<X::Connection>>>,
    /// Connections to resume in the next turn.
    due: Vec<usize>,
    outcome: Outcome,
}

/// A connection and what epoll was told about it.
struct Slot<C> {
    connection: C,
    watched: Progress,
}

impl<X: Exchange> EventLoop<X> {
    pub(super) fn new(exchange: X, drive: Drive, connections: usize) -> io::Result<Self> {
        Ok(Self {
            exchange,
            drive,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            slots: (0..connections).map(|_| None).collect(),
            due: Vec::with_capacity(connections),
            outcome: Outcome::default(),
        })
    }

    /// Keeps every slot busy until the time is up, then lets started operations end.
    pub(super) fn run(mut self) -> io::Result<Outcome> {
        let _pinned = self.drive.cpu.map(Pinned::to).transpose()?;
        let cpu_before = cpu::of_this_thread();
        let started = Instant::now();
        let end = started + self.drive.duration;
        for index in 0..self.slots.len() {
            self.open(index)?;
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
            self.turn(end, &mut events)?;
        }
        self.outcome.driver_cpu = cpu::of_this_thread().saturating_sub(cpu_before);
        Ok(self.outcome)
    }

    fn turn(&mut self, end: Instant, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let due = std::mem::take(&mut self.due);
        wait(&self.epoll, events, if due.is_empty() { SWEEP } else { Duration::ZERO })?;
        let more = Instant::now() < end;
        for index in due {
            if let Some(slot) = self.slots[index].as_mut() {
                let progress = self.exchange.resume(&mut slot.connection);
                self.follow(index, progress, more)?;
            }
        }
        for event in events.drain(..) {
            let index = event.data.u64() as usize;
            if let Some(slot) = self.slots[index].as_mut() {
                let progress = self.exchange.advance(&mut slot.connection, more, &mut self.outcome);
                self.follow(index, progress, more)?;
            }
        }
        Ok(())
    }

    /// Arranges what an operation wants next.
    fn follow(&mut self, index: usize, progress: Result<Progress, Failure>, more: bool) -> io::Result<()> {
        match progress {
            Ok(Progress::Done) => {
                self.close(index);
                if more { self.open(index) } else { Ok(()) }
            }
            Ok(progress) => self.watch(index, progress),
            Err(failure) => {
                self.fail(index, &failure);
                Ok(())
            }
        }
    }

    fn watch(&mut self, index: usize, progress: Progress) -> io::Result<()> {
        let Some(slot) = self.slots[index].as_mut() else { return Ok(()) };
        if slot.connection.is_due() {
            self.due.push(index);
        }
        if progress == slot.watched {
            return Ok(());
        }
        slot.watched = progress;
        let data = EventData::new_u64(index as u64);
        Ok(epoll::modify(&self.epoll, slot.connection.socket(), data, interest(progress))?)
    }

    /// Ends operations that take too long and refills the slots of failed ones.
    ///
    /// A slot rests between a failure and the next sweep, so that a dead server is not hammered.
    fn sweep(&mut self, now: Instant, more: bool) -> io::Result<()> {
        for index in 0..self.slots.len() {
            match &self.slots[index] {
                Some(Slot { connection, .. })
                    if now.saturating_duration_since(connection.started()) > self.drive.timeout =>
                {
                    let stage = connection.stage();
                    self.fail(index, &Failure::Timeout(stage));
                }
                None if more => self.open(index)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        match self.exchange.open() {
            Ok((connection, watched)) => {
                let data = EventData::new_u64(index as u64);
                epoll::add(&self.epoll, connection.socket(), data, interest(watched))?;
                self.slots[index] = Some(Slot { connection, watched });
            }
            Err(failure) => self.outcome.failures.record(&failure),
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, failure: &Failure) {
        self.outcome.failures.record(failure);
        self.close(index);
    }

    fn close(&mut self, index: usize) {
        if let Some(slot) = self.slots[index].take() {
            self.exchange.close(slot.connection);
        }
    }
}

/// Waits for events, for no longer than `most`.
fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(most).expect("a short duration");
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn interest(progress: Progress) -> EventFlags {
    match progress {
        Progress::ReadOrWrite => EventFlags::IN | EventFlags::OUT,
        Progress::Read | Progress::Done => EventFlags::IN,
    }
}
