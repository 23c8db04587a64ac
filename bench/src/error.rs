use std::io;

use hasten_evidence::report::ReportError;

use crate::certificates::CertificateError;
use crate::gzip::LibraryError;
use crate::node::NodeError;
use crate::server::ServerError;

/// Why a benchmark cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("the load driver cannot run: {0}")]
    Driver(io::Error),
    #[error("cannot make a directory for the certificates: {0}")]
    Directory(io::Error),
    #[error("cannot write the bodies that the server is to send: {0}")]
    Bodies(io::Error),
}

impl BenchError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Server(error) => error.fix(),
            Self::Library(error) => error.fix(),
            Self::Node(error) => error.fix(),
            Self::Report(_) => "choose another directory with --out".to_owned(),
            Self::Driver(_) => "see that `ulimit -n` is above the number of connections".to_owned(),
            Self::Certificate(_) | Self::Directory(_) | Self::Bodies(_) => {
                "see that the directory for temporary files (TMPDIR) exists and has room".to_owned()
            }
        }
    }
}
