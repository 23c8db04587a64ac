//! An answer as it arrives: with a length, in chunks, or up to the end of the connection.

use std::io;

/// An endless head or body must not eat our memory.
const MAX_HEAD: usize = 256 << 10;
const MAX_BODY: usize = 256 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Body(usize),
    ToTheEnd,
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    Over,
}

#[derive(Debug, Default)]
pub(super) struct Parser {
    part: Part,
    pending: Vec<u8>,
    answer: Answer,
    closes: bool,
}

impl Parser {
    /// Whether nothing of an answer has come.
    pub(super) fn is_empty(&self) -> bool {
        self.part == Part::Head && self.pending.is_empty()
    }

    /// Whether the connection may be used again.
    pub(super) fn keeps_alive(&self) -> bool {
        !self.closes && self.pending.is_empty()
    }

    pub(super) fn answer(self) -> Answer {
        self.answer
    }

    /// Takes more bytes; whether the answer is complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.pending.extend(bytes);
        while self.step()? {}
        if self.answer.body.len() > MAX_BODY || (self.part == Part::Head && self.pending.len() > MAX_HEAD) {
            return Err(broken("it is too long"));
        }
        Ok(self.part == Part::Over)
    }

    /// The server closed the connection.
    pub(super) fn end(&mut self) -> io::Result<bool> {
        match self.part {
            Part::ToTheEnd | Part::Over => Ok(true),
            _ if self.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(broken("it is cut off")),
        }
    }

    /// Whether there may be more to do.
    fn step(&mut self) -> io::Result<bool> {
        match self.part {
            Part::Head => {
                let Some(end) = self.pending.windows(4).position(|window| window == b"\r\n\r\n") else {
                    return Ok(false);
                };
                let head = String::from_utf8_lossy(&self.pending[..end]).into_owned();
                self.pending.drain(..end + 4);
                self.part = self.head(&head)?;
            }
            Part::Body(left) => self.part = self.take(left, Part::Over, Part::Body),
            Part::Chunk(left) => self.part = self.take(left, Part::ChunkEnd, Part::Chunk),
            Part::ToTheEnd => {
                self.answer.body.append(&mut self.pending);
            }
            Part::ChunkSize | Part::ChunkEnd | Part::Trailer => {
                let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') else { return Ok(false) };
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                self.part = self.line(&line)?;
            }
            Part::Over => return Ok(false),
        }
        Ok(!self.pending.is_empty() || matches!(self.part, Part::Body(0)))
    }

    fn head(&mut self, head: &str) -> io::Result<Part> {
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let status: u16 = status.ok_or_else(|| broken("it is not HTTP/1"))?;
        self.answer.status = status;
        let fields = lines.filter_map(|line| line.split_once(':'));
        self.answer.headers =
            fields.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())).collect();
        let header = |name| self.answer.header(name).map(str::to_lowercase).unwrap_or_default();
        let connection = header("connection");
        self.closes = connection.contains("close")
            || (first.starts_with("HTTP/1.0") && !connection.contains("keep-alive"));
        Ok(match status {
            // More is to come.
            100..=199 => Part::Head,
            204 | 304 => Part::Over,
            _ if header("transfer-encoding").contains("chunked") => Part::ChunkSize,
            _ => match self.answer.header("content-length").map(str::parse) {
                Some(Ok(0)) => Part::Over,
                Some(Ok(length)) => Part::Body(length),
                Some(Err(_)) => return Err(broken("its length is not a number")),
                None => {
                    self.closes = true;
                    Part::ToTheEnd
                }
            },
        })
    }

    fn take(&mut self, left: usize, then: Part, more: fn(usize) -> Part) -> Part {
        let count = left.min(self.pending.len());
        self.answer.body.extend(self.pending.drain(..count));
        if count == left { then } else { more(left - count) }
    }

    fn line(&self, line: &str) -> io::Result<Part> {
        Ok(match self.part {
            Part::ChunkSize => {
                let digits = line.split(';').next().unwrap_or_default().trim();
                match usize::from_str_radix(digits, 16)
                    .map_err(|_| broken("the size of a chunk is not a number"))?
                {
                    0 => Part::Trailer,
                    size => Part::Chunk(size),
                }
            }
            Part::ChunkEnd => Part::ChunkSize,
            _ if line.is_empty() => Part::Over,
            _ => Part::Trailer,
        })
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::other(format!("the answer is broken: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\nT: x\r\n\r\n";
    const SIZED: &[u8] =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\ncontent-length: 3\r\nConnection: close\r\n\r\nabc";

    #[test]
    fn complete_only_at_the_last_byte_however_it_is_cut() {
        for (whole, status, body, keeps) in
            [(CHUNKED, 200, &b"abc0123456789"[..], true), (SIZED, 503, b"abc", false)]
        {
            for piece in 1..=whole.len() {
                let mut parser = Parser::default();
                let mut arrived = 0;
                for bytes in whole.chunks(piece) {
                    arrived += bytes.len();
                    assert_eq!(
                        parser.push(bytes).unwrap(),
                        arrived == whole.len(),
                        "pieces of {piece}, {arrived} bytes"
                    );
                }
                assert_eq!(parser.keeps_alive(), keeps);
                let answer = parser.answer();
                assert_eq!((answer.status, &answer.body[..]), (status, body));
            }
        }
    }

    #[test]
    fn what_is_not_an_answer_is_an_error() {
        for wrong in
            [&b"SSH-2.0\r\n\r\n"[..], b"HTTP/1.1 \r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
        {
            assert!(Parser::default().push(wrong).is_err(), "{wrong:?}");
        }
        let mut parser = Parser::default();
        assert!(!parser.push(&SIZED[..SIZED.len() - 1]).unwrap());
        assert!(parser.end().is_err());
    }
}
