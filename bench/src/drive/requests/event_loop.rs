//! One thread of the driver: its connections, and epoll as the only thing it waits for.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData};

use super::channel::Channel;
use super::content::Encoding;
use super::{Load, Target};
use crate::affinity::Pinned;
use crate::cpu;
use crate::drive::Outcome;
use crate::drive::connection::Progress;
use crate::drive::event_loop::{SWEEP, interest, wait};
use crate::drive::failure::Failure;

pub(super) struct EventLoop<'a> {
    target: &'a Target<'a>,
    load: &'a Load,
    request: &'a [u8],
    cpu: Option<usize>,
    epoll: OwnedFd,
    slots: Vec<Option<Slot>>,
    buffer: Vec<u8>,
    outcome: Outcome,
}

/// A connection and what epoll was told about it.
struct Slot {
    channel: Channel,
    watched: Progress,
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(
        target: &'a Target<'a>,
        load: &'a Load,
        request: &'a [u8],
        index: usize,
        connections: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            target,
            load,
            request,
            cpu: load.cpus.get(index % load.cpus.len().max(1)).copied(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            slots: (0..connections).map(|_| None).collect(),
            buffer: vec![0; 64 * 1024],
            outcome: Outcome::default(),
        })
    }

    /// Keeps every connection busy until the time is up, then lets what was asked be answered.
    pub(super) fn run(mut self) -> io::Result<Outcome> {
        let _pinned = self.cpu.map(Pinned::to).transpose()?;
        let cpu_before = cpu::of_this_thread();
        let started = Instant::now();
        let end = started + self.load.duration;
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
            wait(&self.epoll, &mut events, SWEEP)?;
            let more = Instant::now() < end;
            for event in events.drain(..) {
                self.handle(event.data.u64() as usize, more)?;
            }
        }
        self.outcome.driver_cpu = cpu::of_this_thread().saturating_sub(cpu_before);
        Ok(self.outcome)
    }

    fn handle(&mut self, index: usize, more: bool) -> io::Result<()> {
        let Some(slot) = self.slots[index].as_mut() else { return Ok(()) };
        let mut progress = slot.channel.advance(self.request, &mut self.buffer);
        if matches!(progress, Ok(Progress::Done)) {
            progress = self.complete(index, more);
        }
        match progress {
            Ok(progress) => self.watch(index, progress),
            Err(failure) => {
                self.outcome.failures.record(&failure);
                self.slots[index] = None;
                Ok(())
            }
        }
    }

    /// Checks and books an answer, and sends the next request if there is to be one.
    fn complete(&mut self, index: usize, more: bool) -> Result<Progress, Failure> {
        let Some(Slot { channel, .. }) = self.slots[index].as_mut() else { return Ok(Progress::Done) };
        let latency = channel.age(Instant::now());
        let content = self.target.content;
        content.check(channel.answer.body())?;
        let outcome = &mut self.outcome;
        outcome.ops += 1;
        if content.encoding() != Encoding::Identity {
            outcome.received += channel.answer.received();
            outcome.content += content.body().len() as u64;
        }
        outcome.latency.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
        if more {
            channel.renew();
            return channel.write(self.request);
        }
        self.slots[index] = None;
        Ok(Progress::Done)
    }

    fn watch(&mut self, index: usize, progress: Progress) -> io::Result<()> {
        let Some(slot) = self.slots[index].as_mut() else { return Ok(()) };
        if progress == slot.watched {
            return Ok(());
        }
        slot.watched = progress;
        let data = EventData::new_u64(index as u64);
        Ok(epoll::modify(&self.epoll, slot.channel.socket(), data, interest(progress))?)
    }

    /// Ends the requests that take too long and refills the slots of failed ones.
    ///
    /// A slot rests between a failure and the next sweep, so that a dead server is not hammered.
    fn sweep(&mut self, now: Instant, more: bool) -> io::Result<()> {
        for index in 0..self.slots.len() {
            match &self.slots[index] {
                Some(slot) if slot.channel.age(now) > self.load.timeout => {
                    self.outcome.failures.record(&Failure::Timeout(slot.channel.stage()));
                    self.slots[index] = None;
                }
                None if more => self.open(index)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        let opened =
            Channel::open(self.target.address, self.target.content.encoding()).and_then(|mut channel| {
                let watched = channel.write(self.request)?;
                Ok(Slot { channel, watched })
            });
        match opened {
            Ok(slot) => {
                let data = EventData::new_u64(index as u64);
                epoll::add(&self.epoll, slot.channel.socket(), data, interest(slot.watched))?;
                self.slots[index] = Some(slot);
            }
            Err(failure) => self.outcome.failures.record(&failure),
        }
        Ok(())
    }
}
