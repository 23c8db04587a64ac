use std::fmt;
use std::io;

/// Why an operation was not perfect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No connection: refused, reset or unreachable.
    Connect,
    /// The certificate is not the pinned one.
    Certificate,
    /// The handshake's signature does not verify.
    Signature,
    /// Any other TLS error or alert, before or after the handshake.
    Tls,
    /// The server closed the connection before the answer was complete.
    ClosedEarly,
    /// A status other than 200, or something that is not HTTP.
    Status,
    /// The answer is not compressed as asked.
    Encoding,
    /// The answer's body is not the expected one.
    Body,
    /// The operation took longer than the limit.
    Timeout,
}

impl FailureKind {
    pub const ALL: [Self; 9] = [
        Self::Connect,
        Self::Certificate,
        Self::Signature,
        Self::Tls,
        Self::ClosedEarly,
        Self::Status,
        Self::Encoding,
        Self::Body,
        Self::Timeout,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Certificate => "certificate",
            Self::Signature => "signature",
            Self::Tls => "tls",
            Self::ClosedEarly => "closed-early",
            Self::Status => "status",
            Self::Encoding => "encoding",
            Self::Body => "body",
            Self::Timeout => "timeout",
        }
    }
}

/// Failures by kind, with the first message of each as an example.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    counts: [u64; FailureKind::ALL.len()],
    examples: [Option<String>; FailureKind::ALL.len()],
}

impl Failures {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    #[must_use]
    pub fn count(&self, kind: FailureKind) -> u64 {
        self.counts[kind as usize]
    }

    /// In words: how often each kind occurred, with its first message.
    pub fn details(&self) -> impl Iterator<Item = String> {
        self.iter().map(|(kind, count, example)| format!("{count} × {} ({example})", kind.as_str()))
    }

    /// The kinds that occurred: the count, and the first message.
    pub fn iter(&self) -> impl Iterator<Item = (FailureKind, u64, &str)> {
        FailureKind::ALL
            .into_iter()
            .filter(|&kind| self.count(kind) > 0)
            .map(|kind| (kind, self.count(kind), self.examples[kind as usize].as_deref().unwrap_or_default()))
    }

    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.counts.iter().enumerate() {
            self.counts[index] += count;
            if self.examples[index].is_none() {
                self.examples[index].clone_from(&other.examples[index]);
            }
        }
    }

    /// For work that is not done over a connection.
    pub(crate) fn wrong_content(&mut self, why: String) {
        self.record(&Failure::Content(why));
    }

    pub(super) fn record(&mut self, failure: &Failure) {
        let index = failure.kind() as usize;
        self.counts[index] += 1;
        if self.examples[index].is_none() {
            self.examples[index] = Some(failure.to_string());
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.total() == 0 {
            return f.write_str("none");
        }
        f.write_str(&self.details().collect::<Vec<_>>().join("; "))
    }
}

/// One operation that went wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    #[error("the connection broke before the answer was complete: {0}")]
    Broken(io::Error),
    #[error("the server closed the connection before the answer was complete")]
    ClosedEarly,
    #[error("the answer begins with {0:?} instead of status 200")]
    Status(String),
    #[error("the answer's content encoding is {found} instead of {wanted}")]
    Encoding { found: String, wanted: &'static str },
    #[error("the answer's body differs from the expected one")]
    Body,
    #[error("{0}")]
    Content(String),
    #[error("no answer within the time limit ({0})")]
    Timeout(&'static str),
}

impl Failure {
    fn kind(&self) -> FailureKind {
        use rustls::CertificateError;
        use rustls::Error as Tls;
        match self {
            Self::Connect(_) => FailureKind::Connect,
            Self::Tls(Tls::InvalidCertificate(CertificateError::BadSignature)) => FailureKind::Signature,
            Self::Tls(Tls::InvalidCertificate(_)) => FailureKind::Certificate,
            Self::Tls(_) => FailureKind::Tls,
            Self::Broken(_) | Self::ClosedEarly => FailureKind::ClosedEarly,
            Self::Status(_) => FailureKind::Status,
            Self::Encoding { .. } => FailureKind::Encoding,
            Self::Body | Self::Content(_) => FailureKind::Body,
            Self::Timeout(_) => FailureKind::Timeout,
        }
    }
}
