//! Clients: each thread is one client, which comes back again and again in different ways.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustls::version::{TLS12, TLS13};

use super::connection::{Begun, Connection, Request};
use super::corpus::Corpus;
use super::ledger::{Loss, Nature};
use super::random::Random;
use super::station::{Clock, NAMES, Station};
use crate::client::Client;

/// How long a misbehaving client watches the server's reaction.
const LOOK: Duration = Duration::from_millis(500);

/// How many arrive together.
const CROWD: usize = 40;

/// How long a client that could not connect stays away.
const AWAY: Duration = Duration::from_millis(100);

pub struct Visitor<'run> {
    station: &'run Station,
    corpus: &'run Corpus,
    clock: Clock,
    random: Random,
    /// Each version with each certificate, with and without resumed sessions.
    clients: Vec<Client>,
}

impl<'run> Visitor<'run> {
    #[must_use]
    pub fn new(station: &'run Station, corpus: &'run Corpus, clock: Clock, seed: u64) -> Self {
        let mut clients = Vec::new();
        for (name, _) in NAMES {
            for version in [&TLS13, &TLS12] {
                let client = || Client::trusting(&station.root).only(version).named(name);
                clients.push(client().build());
                clients.push(client().resuming().build());
            }
        }
        Self { station, corpus, clock, random: Random::new(seed), clients }
    }

    pub fn stay_until(&mut self, stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            match self.random.below(100) {
                0..30 => self.several(stop),
                30..60 => self.one(),
                60..72 => self.many_at_once(),
                72..78 => self.slow(),
                78..86 => self.absent_minded(stop),
                86..91 => self.leave_in_handshake(),
                91..96 => self.leave_in_body(),
                _ => self.talk_nonsense(),
            }
        }
    }

    fn several(&mut self, stop: &AtomicBool) {
        let requests = self.random.between(2, 20);
        let pause = self.random.between(0, 40);
        self.keep_alive(requests, Duration::from_millis(pause), stop);
    }

    /// Holds a connection that is idle when reloads come.
    fn absent_minded(&mut self, stop: &AtomicBool) {
        let pause = self.random.between(500, 2500);
        self.keep_alive(3, Duration::from_millis(pause), stop);
    }

    fn keep_alive(&mut self, requests: u64, pause: Duration, stop: &AtomicBool) {
        let mut connection = self.open();
        for _ in 0..requests {
            if stop.load(Relaxed) {
                break;
            }
            let request = Request { packed: self.random.percent(60), ..Request::default() };
            match self.get(connection, request) {
                Some(same) => connection = Some(same),
                None => break,
            }
            thread::sleep(pause);
        }
    }

    fn one(&mut self) {
        let connection = self.open();
        let request = Request { packed: self.random.percent(60), last: true, slow: false };
        self.get(connection, request);
    }

    /// Simultaneous handshakes, as on a server with many clients. One client does this at a time: the server's maximum
    /// is reached soon, and any later growth is not due to more connections.
    fn many_at_once(&mut self) {
        let Ok(_token) = self.station.crowd.try_lock() else { return self.one() };
        let begin = |_| match Begun::new(self.station, self.random.one_of(&self.clients), self.clock) {
            Ok(begun) => Some(begun),
            Err(loss) => self.turned_away(loss),
        };
        let mut begun: Vec<_> = (0..CROWD).map_while(begin).collect();
        begun.iter_mut().for_each(Begun::say_hello);
        let request = Request { packed: self.random.percent(60), last: true, slow: false };
        for begun in begun {
            match begun.finish(self.station) {
                Ok(connection) => drop(self.get(Some(connection), request)),
                Err(loss) => self.station.lose(loss),
            }
        }
    }

    fn slow(&mut self) {
        let Some(mut connection) = self.open() else { return };
        let request = Request { packed: self.random.percent(30), last: true, slow: true };
        let (prefix, file) = (*self.random.one_of(self.station.prefixes()), self.corpus.largest());
        if let Err(loss) = connection.get(self.station, prefix, file, request) {
            self.station.lose(loss);
        }
    }

    /// An HTTP client: what an idle connection loses is requested once more, on a new one.
    fn get(&mut self, connection: Option<Connection>, request: Request) -> Option<Connection> {
        let mut connection = connection.filter(|connection| !connection.is_over()).or_else(|| self.open())?;
        let (prefix, file) =
            (*self.random.one_of(self.station.prefixes()), self.corpus.choose(&mut self.random));
        let Err(loss) = connection.get(self.station, prefix, file, request) else { return Some(connection) };
        let is_repeated = loss.nature == Nature::Unanswered;
        self.station.lose(loss);
        if !is_repeated {
            return None;
        }
        let mut connection = self.open()?;
        match connection.get(self.station, prefix, file, request) {
            Ok(()) => Some(connection),
            Err(loss) => {
                self.station.lose(loss);
                None
            }
        }
    }

    fn open(&mut self) -> Option<Connection> {
        let client = self.random.one_of(&self.clients);
        Connection::open(self.station, client, self.clock).map_or_else(|loss| self.turned_away(loss), Some)
    }

    /// A client that finds no server must not retry a thousand times a second.
    fn turned_away<T>(&self, loss: Loss) -> Option<T> {
        self.station.lose(loss);
        thread::sleep(AWAY);
        None
    }

    fn leave_in_handshake(&mut self) {
        let hello = self.random.one_of(&self.clients).hello();
        let sent = self.random.between(1, hello.len() as u64) as usize;
        let answered = self.random.below(3000);
        self.be_rude(&hello[..sent], if sent == hello.len() { answered } else { 0 });
    }

    fn leave_in_body(&mut self) {
        let Some(connection) = self.open() else { return };
        super::count(&self.station.tally.rude, 1);
        let prefix = *self.random.one_of(self.station.prefixes());
        let after = self.random.between(1, 200_000) as usize;
        // Its outcome does not matter.
        let _ = connection.leave_in_body(prefix, self.corpus.largest(), after);
    }

    fn talk_nonsense(&mut self) {
        let length = self.random.between(1, 4000);
        let mut nonsense: Vec<u8> = (0..length).map(|_| self.random.number() as u8).collect();
        if self.random.percent(50) {
            // A record header, so that OpenSSL continues reading.
            nonsense.splice(0..0, [22, 3, 1, 1, 0]);
        }
        self.be_rude(&nonsense, 1);
    }

    /// Sends something, waits for at most this many bytes, and leaves.
    fn be_rude(&self, said: &[u8], wait_for: usize) {
        super::count(&self.station.tally.rude, 1);
        let Ok(mut socket) = TcpStream::connect(self.station.address()) else { return };
        let _ = socket.set_read_timeout(Some(LOOK));
        let _ = socket.write_all(said);
        let _ = socket.read_exact(&mut vec![0; wait_for]);
    }
}
