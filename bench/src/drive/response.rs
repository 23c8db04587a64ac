//! Just enough HTTP/1.1 to know that an answer is complete and exactly the expected one.

use super::failure::Failure;

/// More than any fixture sends: an endless answer must not eat the driver's memory.
const MAX_HEAD: usize = 16 * 1024;

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Response {
    bytes: Vec<u8>,
    /// Where the body begins and ends, once the head is complete.
    body: Option<(usize, usize)>,
}

impl Response {
    /// Takes more bytes; returns whether the answer is complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        self.bytes.extend_from_slice(bytes);
        if self.body.is_none() {
            self.body = parse_head(&self.bytes)?;
        }
        match self.body {
            Some((_, end)) if self.bytes.len() > end => Err(Failure::Body),
            Some((_, end)) => Ok(self.bytes.len() == end),
            None if self.bytes.len() > MAX_HEAD => Err(not_http(&self.bytes)),
            None => Ok(false),
        }
    }

    /// The body of a complete answer.
    pub(super) fn body(&self) -> &[u8] {
        self.body.map_or(&[], |(start, end)| self.bytes.get(start..end).unwrap_or_default())
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.body = None;
    }
}

/// Start and end of the body, or `None` while the head is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(usize, usize)>, Failure> {
    let Some(blank) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..blank]).map_err(|_| not_http(bytes))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !(status.starts_with("HTTP/1.1 200") || status.starts_with("HTTP/1.0 200")) {
        return Err(not_http(bytes));
    }
    let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())
    });
    let length = length.flatten().ok_or(Failure::Body)?;
    let start = blank + 4;
    Ok(Some((start, start.saturating_add(length))))
}

fn not_http(bytes: &[u8]) -> Failure {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    Failure::Status(String::from_utf8_lossy(&line[..line.len().min(64)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_only_at_the_last_byte() {
        let answer = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 3\r\n\r\nabc";
        let mut response = Response::default();
        for (index, byte) in answer.iter().enumerate() {
            let complete = response.push(&[*byte]).unwrap();
            assert_eq!(complete, index + 1 == answer.len(), "after byte {index}");
        }
        assert_eq!(response.body(), b"abc");
    }

    #[test]
    fn other_status_is_a_failure() {
        let failure = Response::default().push(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").unwrap_err();
        assert!(matches!(failure, Failure::Status(line) if line == "HTTP/1.1 502 Bad Gateway"));
    }

    #[test]
    fn bytes_after_the_end_are_a_failure() {
        let failure = Response::default().push(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab");
        assert!(matches!(failure, Err(Failure::Body)));
    }

    #[test]
    fn an_answer_without_length_or_end_is_a_failure() {
        assert!(matches!(Response::default().push(b"HTTP/1.1 200 OK\r\n\r\n"), Err(Failure::Body)));
        assert!(matches!(Response::default().push(&[b'x'; MAX_HEAD + 1]), Err(Failure::Status(_))));
    }

    #[test]
    fn a_length_near_the_maximum_does_not_overflow() {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", usize::MAX);
        assert!(!Response::default().push(answer.as_bytes()).unwrap());
    }
}
