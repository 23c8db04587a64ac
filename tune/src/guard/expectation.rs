//! The expected form of an answer, learnt from several answers of the baseline.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use hasten_bench::http::Response;

use super::body::Shape;

/// Those that say how to read the body, or where to go.
const HEADERS: [&str; 5] = ["content-type", "content-encoding", "location", "cache-control", "vary"];
/// A decompression bomb must not exhaust our memory.
const MAX_BODY: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Expectation {
    answers: usize,
    statuses: Vec<u16>,
    /// Values seen, by position in [`HEADERS`].
    headers: [Vec<Option<String>>; HEADERS.len()],
    /// Whether the body was in the encoding that it claims.
    decodes: bool,
    body: Shape,
}

impl Expectation {
    pub(super) fn learn(&mut self, answer: &Response) {
        let (body, decodes) = decoded(answer);
        self.decodes = decodes && (self.decodes || self.answers == 0);
        self.answers += 1;
        let status = answer.status();
        if !self.statuses.contains(&status) {
            self.statuses.push(status);
        }
        for (name, seen) in HEADERS.iter().zip(&mut self.headers) {
            let value = answer.field(name).map(str::to_owned);
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        self.body.learn(&body);
    }

    pub(super) fn check(&self, answer: &Response) -> Result<(), String> {
        let status = answer.status();
        if !self.statuses.contains(&status) {
            return Err(format!("status {status}, was {}", list(&self.statuses)));
        }
        for (name, seen) in HEADERS.iter().zip(&self.headers) {
            let value = answer.field(name);
            // A value that differs from answer to answer only has to be present.
            let fits = match seen.as_slice() {
                [only] => only.as_deref() == value,
                several => several.iter().any(|seen| seen.is_some() == value.is_some()),
            };
            if !fits {
                let was = seen.first().and_then(Option::as_deref);
                return Err(format!(
                    "{name} is {}, was {}",
                    value.unwrap_or("missing"),
                    was.unwrap_or("missing")
                ));
            }
        }
        let (body, decodes) = decoded(answer);
        if self.decodes && !decodes {
            return Err("the body is not in the encoding that it says it is in".to_owned());
        }
        self.body.check(&body)
    }

    pub(super) fn describe(&self) -> String {
        let kind = self.headers[0].first().and_then(Option::as_deref).unwrap_or("no type");
        format!("status {}, {kind}, {}", list(&self.statuses), self.body.describe())
    }
}

/// The body as its reader sees it, and whether it could be decoded; an unknown encoding is left as it is.
fn decoded(answer: &Response) -> (Vec<u8>, bool) {
    if answer.field("content-encoding") != Some("gzip") || answer.body().is_empty() {
        return (answer.body().to_vec(), true);
    }
    let mut body = Vec::new();
    match MultiGzDecoder::new(answer.body()).take(MAX_BODY).read_to_end(&mut body) {
        Ok(_) => (body, true),
        Err(_) => (answer.body().to_vec(), false),
    }
}

fn list(statuses: &[u16]) -> String {
    statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
}
