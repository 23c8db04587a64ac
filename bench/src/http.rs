//! HTTP/1 responses as they arrive: with a length, in chunks, or up to the end of the connection.

mod head;

use std::io;

pub use self::head::Head;

/// Longer than any chunk size with extensions, or trailer line.
const MAX_LINE: usize = 8 << 10;

/// Endless heads and bodies must not exhaust the reader's memory. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub head: usize,
    pub body: usize,
}

/// Why bytes are not a response, or not an acceptable one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("it begins with {0:?}, which is not HTTP/1")]
    NotHttp(String),
    #[error("its head has more than {0} bytes")]
    HeadTooLong(usize),
    #[error("its head has more fields than any server sends")]
    TooManyFields,
    #[error("its body has more than {0} bytes")]
    BodyTooLong(usize),
    #[error("its length is not a number")]
    Length,
    #[error("its chunks do not fit together")]
    Chunk,
    #[error("it is cut off")]
    CutOff,
}

impl From<HttpError> for io::Error {
    fn from(error: HttpError) -> Self {
        Self::other(format!("the answer is broken: {error}"))
    }
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// The whole body, with this much still to come.
    Body(usize),
    ToTheEnd,
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    Over,
}

/// One response, as far as it has arrived.
#[derive(Debug)]
pub struct Response {
    limits: Limits,
    part: Part,
    head: Head,
    /// A line between two chunks.
    line: Vec<u8>,
    body: Vec<u8>,
    received: u64,
}

impl Response {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let (part, head) = Default::default();
        Self { limits, part, head, line: Vec::new(), body: Vec::new(), received: 0 }
    }

    /// Resets for the next response, keeping the memory.
    pub fn clear(&mut self) {
        self.part = Part::Head;
        self.head.clear();
        self.line.clear();
        self.body.clear();
        self.received = 0;
    }

    /// Consumes bytes up to the end of the response; returns how many.
    ///
    /// # Errors
    /// If they are not an HTTP/1 response, or a limit is exceeded.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let mut rest = bytes;
        while !rest.is_empty() && self.part != Part::Over {
            let taken = match self.part {
                Part::Head => self.take_head(rest)?,
                Part::Body(left) => self.take_body(rest, left, Part::Over, Part::Body)?,
                Part::Chunk(left) => self.take_body(rest, left, Part::ChunkEnd, Part::Chunk)?,
                Part::ToTheEnd => self.take_body(rest, usize::MAX, Part::Over, |_| Part::ToTheEnd)?,
                Part::ChunkSize | Part::ChunkEnd | Part::Trailer | Part::Over => self.take_line(rest)?,
            };
            rest = &rest[taken..];
        }
        let taken = bytes.len() - rest.len();
        self.received += taken as u64;
        Ok(taken)
    }

    /// Reports that the server has closed the connection.
    ///
    /// # Errors
    /// If the response is incomplete at that point.
    pub fn end(&mut self) -> Result<(), HttpError> {
        if self.part == Part::ToTheEnd {
            self.part = Part::Over;
        }
        if self.is_complete() { Ok(()) } else { Err(HttpError::CutOff) }
    }

    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.part == Part::Over
    }

    /// Whether nothing has arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.received == 0
    }

    /// Status and fields, once they are complete.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        (self.part != Part::Head).then_some(&self.head)
    }

    /// The status of a complete response.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head().map_or(0, Head::status)
    }

    /// The value of a field of a complete response, if it has one of this name whose value is text.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head()?.field(name)
    }

    /// Without the chunks' frames.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes on the wire, head and frames included.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The beginning of the response, for people.
    #[must_use]
    pub fn first_line(&self) -> String {
        self.head.first_line()
    }

    /// Whether it states its own end.
    #[must_use]
    pub fn is_delimited(&self) -> bool {
        !matches!(self.framing(), Ok(Part::ToTheEnd))
    }

    /// Whether the server keeps the connection for another request.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.is_complete() && self.is_delimited() && self.head.keeps_alive()
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let before = self.head.len();
        let fitting = &bytes[..bytes.len().min(self.limits.head - before)];
        let Some(end) = self.head.push(fitting)? else {
            let is_full = self.head.len() == self.limits.head;
            return if is_full { Err(HttpError::HeadTooLong(self.limits.head)) } else { Ok(bytes.len()) };
        };
        self.part = self.framing()?;
        if self.part == Part::Head {
            self.head.clear();
        }
        Ok(end - before)
    }

    /// How the part after the head is framed.
    fn framing(&self) -> Result<Part, HttpError> {
        match self.head.status() {
            // Another head follows.
            100..=199 => return Ok(Part::Head),
            204 | 304 => return Ok(Part::Over),
            _ => {}
        }
        if self.head.has_token("transfer-encoding", "chunked") {
            return Ok(Part::ChunkSize);
        }
        match self.head.field("content-length").map(str::parse) {
            Some(Ok(0)) => Ok(Part::Over),
            Some(Ok(length)) => Ok(Part::Body(length)),
            Some(Err(_)) => Err(HttpError::Length),
            None => Ok(Part::ToTheEnd),
        }
    }

    fn take_body(
        &mut self,
        bytes: &[u8],
        left: usize,
        then: Part,
        more: fn(usize) -> Part,
    ) -> Result<usize, HttpError> {
        let taken = left.min(bytes.len());
        self.body.extend_from_slice(&bytes[..taken]);
        if self.body.len() > self.limits.body {
            return Err(HttpError::BodyTooLong(self.limits.body));
        }
        self.part = if taken == left { then } else { more(left - taken) };
        Ok(taken)
    }

    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let end = bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(bytes.len());
        self.line.extend_from_slice(&bytes[..taken]);
        if self.line.len() > MAX_LINE {
            return Err(HttpError::Chunk);
        }
        if end.is_some() {
            self.part = self.after_line()?;
            self.line.clear();
        }
        Ok(taken)
    }

    fn after_line(&self) -> Result<Part, HttpError> {
        let is_blank = matches!(&self.line[..], b"\n" | b"\r\n");
        match self.part {
            Part::ChunkSize => match chunk_size(&self.line)? {
                0 => Ok(Part::Trailer),
                size => Ok(Part::Chunk(size)),
            },
            Part::ChunkEnd if is_blank => Ok(Part::ChunkSize),
            Part::Trailer if is_blank => Ok(Part::Over),
            Part::Trailer => Ok(Part::Trailer),
            _ => Err(HttpError::Chunk),
        }
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, HttpError> {
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((_, size))) => usize::try_from(size).map_err(|_| HttpError::Chunk),
        _ => Err(HttpError::Chunk),
    }
}

#[cfg(test)]
mod tests;
