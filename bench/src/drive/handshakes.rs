//! Handshakes one after another: each connection has one dialogue.

use super::answer::Answer;
use super::client::ClientTls;
use super::dialogue::Dialogue;
use super::event_loop::{Exchange, Progress};
use super::failure::Failure;
use super::handshake::Handshake;
use super::{Outcome, Target};

pub(super) struct Handshakes<'a> {
    target: &'a Target,
    dialogue: Dialogue<'a>,
    tls: ClientTls,
    /// Memory of answers already checked.
    spare: Vec<Answer>,
}

impl<'a> Handshakes<'a> {
    pub(super) fn new(target: &'a Target, dialogue: Dialogue<'a>, tls: &ClientTls) -> Self {
        Self { target, dialogue, tls: tls.clone(), spare: Vec::new() }
    }
}

impl Exchange for Handshakes<'_> {
    type Connection = Handshake;

    fn open(&mut self) -> Result<(Handshake, Progress), Failure> {
        let answer = self.spare.pop().unwrap_or_default();
        let mut connection = Handshake::open(self.target.address, &self.tls, answer)?;
        let progress = connection.write()?;
        Ok((connection, progress))
    }

    fn advance(
        &mut self,
        connection: &mut Handshake,
        _more: bool,
        outcome: &mut Outcome,
    ) -> Result<Progress, Failure> {
        let progress = connection.advance(&self.dialogue)?;
        if progress == Progress::Done {
            outcome.book(connection.latency().ok_or(Failure::ClosedEarly)?);
        }
        Ok(progress)
    }

    fn resume(&mut self, connection: &mut Handshake) -> Result<Progress, Failure> {
        connection.send_request(&self.dialogue)
    }

    fn close(&mut self, connection: Handshake) {
        self.spare.push(connection.into_answer());
    }
}
