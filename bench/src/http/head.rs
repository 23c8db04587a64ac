//! Status line and fields of a response.

use std::ops::Range;

use super::HttpError;

/// More fields than any server sends.
const MAX_FIELDS: usize = 128;
/// How much of a non-HTTP response is shown to people. Bytes.
const SHOWN: usize = 64;

/// Status and fields, as received.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    status: u16,
    is_http_1_0: bool,
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl Head {
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of the first field of this name whose value is text.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let has_name = |at: &Range<usize>| self.bytes[at.clone()].eq_ignore_ascii_case(name.as_bytes());
        let (_, value) = self.fields.iter().find(|(at, _)| has_name(at))?;
        Some(std::str::from_utf8(&self.bytes[value.clone()]).ok()?.trim())
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Adds bytes; returns where the head ends, once it does.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Option<usize>, HttpError> {
        self.bytes.extend_from_slice(bytes);
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        // As browsers do: what a server gets away with elsewhere must not be rejected here.
        let parsed = httparse::ParserConfig::default()
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .parse_response(&mut response, &self.bytes);
        match parsed {
            Ok(httparse::Status::Complete(end)) => {
                let within = |part: &[u8]| {
                    let start = part.as_ptr().addr() - self.bytes.as_ptr().addr();
                    start..start + part.len()
                };
                let fields = response.headers.iter();
                self.fields.extend(fields.map(|field| (within(field.name.as_bytes()), within(field.value))));
                self.status = response.code.unwrap_or_default();
                self.is_http_1_0 = response.version == Some(0);
                self.bytes.truncate(end);
                Ok(Some(end))
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => Err(HttpError::TooManyFields),
            Err(_) => Err(HttpError::NotHttp(self.first_line())),
        }
    }

    /// Whether a list in a field has this member.
    pub(super) fn has_token(&self, name: &str, token: &str) -> bool {
        let list = self.field(name).unwrap_or_default();
        list.split(',').any(|member| member.trim().eq_ignore_ascii_case(token))
    }

    pub(super) fn keeps_alive(&self) -> bool {
        !self.has_token("connection", "close")
            && (!self.is_http_1_0 || self.has_token("connection", "keep-alive"))
    }

    pub(super) fn first_line(&self) -> String {
        let line = self.bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned()
    }
}
