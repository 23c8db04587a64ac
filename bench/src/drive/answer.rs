//! Whether an answer is complete and exactly as requested.

use super::failure::Failure;
use super::requests::Encoding;
use crate::http::{Head, HttpError, Limits, Response};

/// More than any fixture sends: an endless answer must not exhaust the driver's memory.
const LIMITS: Limits = Limits { head: 16 << 10, body: 64 << 20 };

#[derive(Debug)]
pub(super) struct Answer {
    encoding: Encoding,
    response: Response,
    /// The head has been looked at.
    is_checked: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self::new(Encoding::Identity)
    }
}

impl Answer {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self { encoding, response: Response::new(LIMITS), is_checked: false }
    }

    /// Adds bytes; returns whether the answer is complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        let taken = self.response.push(bytes).map_err(|error| self.failure(&error))?;
        if !self.is_checked
            && let Some(head) = self.response.head()
        {
            self.check(head)?;
            self.is_checked = true;
        }
        // The rest was not requested.
        if taken < bytes.len() { Err(Failure::Body) } else { Ok(self.response.is_complete()) }
    }

    /// The body of a complete answer, without the chunks' frames.
    pub(super) fn body(&self) -> &[u8] {
        self.response.body()
    }

    /// Bytes on the wire, head and frames included.
    pub(super) fn received(&self) -> u64 {
        self.response.received()
    }

    /// Resets for the next answer, which is to have this encoding.
    pub(super) fn expect(&mut self, encoding: Encoding) {
        self.encoding = encoding;
        self.clear();
    }

    /// Resets for the next answer, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.response.clear();
        self.is_checked = false;
    }

    fn check(&self, head: &Head) -> Result<(), Failure> {
        if head.status() != 200 {
            return Err(Failure::Status(self.response.first_line()));
        }
        let wanted = self.encoding.as_str();
        let found = head.field("content-encoding").unwrap_or(Encoding::Identity.as_str());
        if found != wanted {
            return Err(Failure::Encoding { found: found.to_owned(), wanted });
        }
        // An answer that ends with its connection may have been cut off.
        if self.response.is_delimited() { Ok(()) } else { Err(Failure::Body) }
    }

    fn failure(&self, error: &HttpError) -> Failure {
        match error {
            HttpError::NotHttp(_) | HttpError::HeadTooLong(_) | HttpError::TooManyFields => {
                Failure::Status(self.response.first_line())
            }
            _ => Failure::Body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n\
        3\r\nabc\r\n0\r\n\r\n";
    const SIZED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-encoding:gzip\r\ncontent-length: 3\r\n\r\nabc";

    fn failure(bytes: &[u8]) -> Failure {
        Answer::new(Encoding::Gzip).push(bytes).expect_err("a wrong answer was taken")
    }

    #[test]
    fn the_next_answer_begins_anew() {
        let mut answer = Answer::new(Encoding::Gzip);
        assert!(answer.push(CHUNKED).unwrap());
        answer.clear();
        assert!(!answer.push(&SIZED[..SIZED.len() - 1]).unwrap());
        assert!(answer.push(b"c").unwrap());
        assert_eq!((answer.body(), answer.received()), (&b"abc"[..], SIZED.len() as u64));
    }

    #[test]
    fn whatever_is_not_as_asked_is_named() {
        let plain = failure(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert!(matches!(plain, Failure::Encoding { found, wanted: "gzip" } if found == "identity"));
        let unwanted = Answer::default().push(SIZED);
        assert!(matches!(unwanted, Err(Failure::Encoding { found, wanted: "identity" }) if found == "gzip"));
        let status = failure(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        assert!(matches!(status, Failure::Status(line) if line == "HTTP/1.1 502 Bad Gateway"));
        for bytes in [&b"SSH-2.0-x\r\n"[..], &[b'x'; LIMITS.head + 1]] {
            assert!(matches!(failure(bytes), Failure::Status(_)));
        }
        assert!(matches!(failure(&[SIZED, b"x"].concat()), Failure::Body));
        let endless = Answer::default().push(b"HTTP/1.1 200 OK\r\n\r\n");
        assert!(matches!(endless, Err(Failure::Body)));
    }
}
