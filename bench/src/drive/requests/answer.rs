//! An HTTP/1.1 answer with a length or in chunks, as it arrives.

use super::content::Encoding;
use crate::drive::failure::Failure;

/// More than any fixture sends: an endless head must not eat the driver's memory.
const MAX_HEAD: usize = 16 * 1024;
/// Longer than a chunk's size with extensions ever is.
const MAX_LINE: usize = 256;

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// The whole body, of which this much is still to come.
    Body(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    End,
}

#[derive(Debug, Default)]
pub(super) struct Answer {
    encoding: Encoding,
    part: Part,
    /// The head, then each line between two chunks.
    line: Vec<u8>,
    body: Vec<u8>,
    received: u64,
}

impl Answer {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self { encoding, ..Self::default() }
    }

    /// Takes more bytes; returns whether the answer is complete.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<bool, Failure> {
        self.received += bytes.len() as u64;
        while !bytes.is_empty() {
            bytes = match self.part {
                Part::Head => self.head(bytes)?,
                Part::Body(left) => self.data(bytes, left, Part::Body, Part::End),
                Part::Chunk(left) => self.data(bytes, left, Part::Chunk, Part::ChunkEnd),
                Part::ChunkSize | Part::ChunkEnd | Part::Trailer => self.between_chunks(bytes)?,
                // Nobody asked for more.
                Part::End => return Err(Failure::Body),
            };
        }
        Ok(self.part == Part::End)
    }

    /// The body of a complete answer, without the chunks' frames.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes on the wire, head and frames included.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Ready for the next answer; the memory is kept.
    pub(super) fn clear(&mut self) {
        self.part = Part::Head;
        self.line.clear();
        self.body.clear();
        self.received = 0;
    }

    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Failure> {
        let before = self.line.len();
        let taken = bytes.len().min(MAX_HEAD - before);
        self.line.extend_from_slice(&bytes[..taken]);
        // The blank line may have begun with the bytes before.
        let from = before.saturating_sub(3);
        let Some(blank) = self.line[from..].windows(4).position(|window| window == b"\r\n\r\n") else {
            return if self.line.len() < MAX_HEAD { Ok(&[]) } else { Err(not_http(&self.line)) };
        };
        let end = from + blank;
        self.part = parse_head(&self.line[..end], self.encoding)?;
        self.line.clear();
        Ok(&bytes[end + 4 - before..])
    }

    fn data<'a>(&mut self, bytes: &'a [u8], left: usize, more: fn(usize) -> Part, then: Part) -> &'a [u8] {
        let (data, rest) = bytes.split_at(left.min(bytes.len()));
        self.body.extend_from_slice(data);
        self.part = if data.len() == left { then } else { more(left - data.len()) };
        rest
    }

    fn between_chunks<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Failure> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            self.line.extend_from_slice(bytes);
            return if self.line.len() <= MAX_LINE { Ok(&[]) } else { Err(Failure::Body) };
        };
        self.line.extend_from_slice(&bytes[..end]);
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        self.part = match self.part {
            Part::ChunkSize => match chunk_size(line)? {
                0 => Part::Trailer,
                size => Part::Chunk(size),
            },
            Part::ChunkEnd if line.is_empty() => Part::ChunkSize,
            Part::Trailer if line.is_empty() => Part::End,
            Part::Trailer => Part::Trailer,
            _ => return Err(Failure::Body),
        };
        self.line.clear();
        Ok(&bytes[end + 1..])
    }
}

fn parse_head(head: &[u8], encoding: Encoding) -> Result<Part, Failure> {
    let text = std::str::from_utf8(head).map_err(|_| not_http(head))?;
    let mut lines = text.split("\r\n");
    if !lines.next().is_some_and(|status| status.starts_with("HTTP/1.1 200")) {
        return Err(not_http(head));
    }
    let field = |wanted: &str| {
        let mut fields = lines.clone().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let found = field("content-encoding").unwrap_or(Encoding::Identity.as_str());
    if found != encoding.as_str() {
        return Err(Failure::Encoding { found: found.to_owned(), wanted: encoding.as_str() });
    }
    if field("transfer-encoding") == Some("chunked") {
        return Ok(Part::ChunkSize);
    }
    match field("content-length").and_then(|length| length.parse().ok()) {
        Some(length) if length > 0 => Ok(Part::Body(length)),
        _ => Err(Failure::Body),
    }
}

/// Hexadecimal digits, perhaps with an extension behind a semicolon.
fn chunk_size(line: &[u8]) -> Result<usize, Failure> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).map_err(|_| Failure::Body)?;
    usize::from_str_radix(text.trim(), 16).map_err(|_| Failure::Body)
}

fn not_http(bytes: &[u8]) -> Failure {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    Failure::Status(String::from_utf8_lossy(&line[..line.len().min(64)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n\
        3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
    const SIZED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-encoding:gzip\r\ncontent-length: 3\r\n\r\nabc";

    fn failure(answer: &[u8]) -> Failure {
        Answer::default().push(answer).expect_err("a wrong answer was taken")
    }

    #[test]
    fn complete_only_at_the_last_byte_however_it_is_cut() {
        for (whole, body) in [(CHUNKED, &b"abc0123456789"[..]), (SIZED, b"abc")] {
            for piece in 1..whole.len() {
                let mut answer = Answer::default();
                let mut arrived = 0;
                for bytes in whole.chunks(piece) {
                    arrived += bytes.len();
                    let complete = answer.push(bytes).unwrap();
                    assert_eq!(complete, arrived == whole.len(), "pieces of {piece}, {arrived} bytes");
                }
                assert_eq!(answer.body(), body);
                assert_eq!(answer.received(), whole.len() as u64);
            }
        }
    }

    #[test]
    fn the_next_answer_begins_anew() {
        let mut answer = Answer::default();
        assert!(answer.push(CHUNKED).unwrap());
        answer.clear();
        assert!(answer.push(SIZED).unwrap());
        assert_eq!((answer.body(), answer.received()), (&b"abc"[..], SIZED.len() as u64));
    }

    #[test]
    fn whatever_is_not_a_compressed_answer_is_named() {
        let plain = failure(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert!(matches!(plain, Failure::Encoding { found, wanted: "gzip" } if found == "identity"));
        let unwanted = Answer::new(Encoding::Identity).push(SIZED);
        assert!(matches!(unwanted, Err(Failure::Encoding { found, wanted: "identity" }) if found == "gzip"));
        let status = failure(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        assert!(matches!(status, Failure::Status(line) if line == "HTTP/1.1 502 Bad Gateway"));
        assert!(matches!(failure(&[b'x'; MAX_HEAD + 1]), Failure::Status(_)));
        assert!(matches!(failure(&[SIZED, b"x"].concat()), Failure::Body));
        for body in [&b"zz\r\n"[..], b"3\r\nabcd\r\n", &[b'1'; MAX_LINE + 1], b"-1\r\n"] {
            let head = &CHUNKED[..CHUNKED.len() - 44];
            assert!(head.ends_with(b"\r\n\r\n"));
            assert!(matches!(failure(&[head, body].concat()), Failure::Body), "{body:?}");
        }
    }
}
