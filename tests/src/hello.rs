//! Bytes on the wire, right or wrong, and a server's reaction to them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server's reaction to bytes that are not a good client's handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// A handshake record: it continued.
    Handshake,
    /// A fatal alert with this description.
    Alert(u8),
    /// An answer in plain HTTP.
    Plain,
    /// The end of the stream, without a message.
    Closed,
    /// Nothing within the time limit.
    Silence,
}

/// Sends `bytes`, closes its direction, and waits for the first reaction.
///
/// A server that would wait for more sees the end instead, so nothing depends on the length of a wait.
#[must_use]
pub fn react(address: SocketAddr, bytes: &[u8]) -> Reaction {
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    // The server may have hung up already, leaving an alert to be read.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    reaction(&mut socket)
}

/// The first thing that a server says.
#[must_use]
pub fn reaction(socket: &mut TcpStream) -> Reaction {
    const ALERT: u8 = 21;
    const HANDSHAKE: u8 = 22;
    const CHANGE_CIPHER_SPEC: u8 = 20;
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut record = [0; 7];
    match socket.read_exact(&mut record) {
        Ok(()) if record[0] == ALERT => Reaction::Alert(record[6]),
        Ok(()) if matches!(record[0], HANDSHAKE | CHANGE_CIPHER_SPEC) => Reaction::Handshake,
        Ok(()) => Reaction::Plain,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Reaction::Silence
        }
        Err(_) => Reaction::Closed,
    }
}

/// How a client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// In order: FIN.
    Close,
    /// At once: RST.
    Reset,
}

impl Farewell {
    pub fn to(self, socket: TcpStream) {
        if self == Self::Reset {
            set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
        }
        drop(socket);
    }
}

/// A transport that sends every byte in a separate segment.
#[derive(Debug)]
pub struct Dripping(pub TcpStream);

impl Read for Dripping {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Dripping {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        for byte in buffer {
            self.0.write_all(std::slice::from_ref(byte))?;
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Splits a handshake record into many, `size` bytes of the message in each.
#[must_use]
pub fn fragmented(record: &[u8], size: usize) -> Vec<u8> {
    let (header, message) = record.split_at(5);
    let fragment = |part: &[u8]| {
        let length = u16::try_from(part.len()).expect("a fragment is short").to_be_bytes();
        [&header[..3], &length, part].concat()
    };
    message.chunks(size).flat_map(fragment).collect()
}

/// A hello with another share in place of its only one, which has this group and length.
#[must_use]
pub fn with_key_share(hello: &[u8], group: u16, length: usize, share: &[u8]) -> Vec<u8> {
    let two = |number: usize| u16::try_from(number).unwrap().to_be_bytes();
    let header = [group.to_be_bytes(), two(length)].concat();
    let at = hello.windows(4).position(|window| window == header);
    let at = at.expect("the hello has a share of this group") + header.len();
    let mut patched = [&hello[..at], share, &hello[at + length..]].concat();
    // Of the share, the list of shares and its extension; of all extensions, which follow version, random, session,
    // ciphers and compression; and of the record. That of the message has three bytes.
    let session = 5 + 4 + 2 + 32;
    let ciphers = session + 1 + usize::from(hello[session]);
    let compression = ciphers + 2 + usize::from(u16::from_be_bytes([hello[ciphers], hello[ciphers + 1]]));
    let extensions = compression + 1 + usize::from(hello[compression]);
    for place in [at - 2, at - 6, at - 8, extensions, 5 + 2, 3] {
        let old = usize::from(u16::from_be_bytes([hello[place], hello[place + 1]]));
        patched[place..place + 2].copy_from_slice(&two(old + share.len() - length));
    }
    patched
}
