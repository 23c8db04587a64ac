//! Requests on open connections.

use super::Target;
use super::channel::Channel;
use super::content::Encoding;
use crate::drive::Outcome;
use crate::drive::event_loop::{Connection, Exchange, Progress};
use crate::drive::failure::Failure;

pub(super) struct Stream<'a> {
    target: &'a Target<'a>,
    request: &'a [u8],
    buffer: Vec<u8>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(target: &'a Target<'a>, request: &'a [u8]) -> Self {
        Self { target, request, buffer: vec![0; 64 * 1024] }
    }

    /// Checks and records an answer.
    fn complete(&self, channel: &Channel, outcome: &mut Outcome) -> Result<(), Failure> {
        let latency = channel.started().elapsed();
        let content = self.target.content;
        content.check(channel.answer.body())?;
        outcome.book(latency);
        if content.encoding() != Encoding::Identity {
            outcome.received += channel.answer.received();
            outcome.content += content.body().len() as u64;
        }
        Ok(())
    }
}

impl Exchange for Stream<'_> {
    type Connection = Channel;

    fn open(&mut self) -> Result<(Channel, Progress), Failure> {
        let mut channel = Channel::open(self.target.address, self.target.content.encoding())?;
        let progress = channel.write(self.request)?;
        Ok((channel, progress))
    }

    fn advance(
        &mut self,
        channel: &mut Channel,
        more: bool,
        outcome: &mut Outcome,
    ) -> Result<Progress, Failure> {
        let progress = channel.advance(self.request, &mut self.buffer)?;
        if progress != Progress::Done {
            return Ok(progress);
        }
        self.complete(channel, outcome)?;
        if !more {
            return Ok(Progress::Done);
        }
        channel.renew();
        channel.write(self.request)
    }
}
