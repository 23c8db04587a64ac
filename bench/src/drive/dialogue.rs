//! What is said on a connection.

use std::borrow::Cow;

use super::failure::Failure;
use super::requests::{Content, Encoding};

/// The requests of a connection, one after the other, and what makes their answers right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dialogue<'a> {
    /// One request; its answer has exactly this body, if it is given.
    Question { body: Option<&'a [u8]> },
    /// A page is fetched, compressed, and sent back as it came. Whoever gets it there checks it.
    RoundTrip { path: &'a str, content: &'a Content },
}

const QUESTION: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

impl Dialogue<'_> {
    /// The request behind so many answers, the last of which has this body. `None` if there is no further one.
    pub(super) fn request(&self, step: usize, last: &[u8]) -> Option<Cow<'static, [u8]>> {
        match (self, step) {
            (Self::Question { .. }, 0) => Some(QUESTION.into()),
            (Self::RoundTrip { path, .. }, 0) => {
                let request =
                    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
                Some(request.into_bytes().into())
            }
            (Self::RoundTrip { path, .. }, 1) => {
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n",
                    last.len()
                );
                Some([head.as_bytes(), last].concat().into())
            }
            _ => None,
        }
    }

    /// How the answer to that request is to be encoded.
    pub(super) fn encoding(&self, step: usize) -> Encoding {
        match (self, step) {
            (Self::RoundTrip { .. }, 0) => Encoding::Gzip,
            _ => Encoding::Identity,
        }
    }

    /// Whether the body of that answer is right.
    pub(super) fn check(&self, step: usize, body: &[u8]) -> Result<(), Failure> {
        match (self, step) {
            (Self::Question { body: Some(expected) }, _) if *expected != body => Err(Failure::Body),
            (Self::RoundTrip { content, .. }, 0) => content.check(body),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_sent_back_as_it_came() {
        let content = Content::new(b"a page".to_vec());
        let trip = Dialogue::RoundTrip { path: "/page", content: &content };
        assert!(trip.request(0, b"").expect("a request").starts_with(b"GET /page "));
        let back = trip.request(1, b"packed").expect("a request");
        assert!(back.starts_with(b"POST /page ") && back.ends_with(b"\r\n\r\npacked"));
        assert!(trip.request(2, b"").is_none());
        assert!(trip.check(0, b"another page").is_err());
        assert_eq!((trip.encoding(0), trip.encoding(1)), (Encoding::Gzip, Encoding::Identity));
    }

    #[test]
    fn one_answer_is_compared() {
        let question = Dialogue::Question { body: Some(b"hello") };
        assert!(question.check(0, b"hello").is_ok() && question.check(0, b"hell").is_err());
        assert!(question.request(1, b"hello").is_none());
    }
}
