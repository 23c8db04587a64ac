use std::io;
use std::path::PathBuf;

use hasten_evidence::report::ReportError;

use crate::certificates::CertificateError;
use crate::gzip::LibraryError;
use crate::node::NodeError;
use crate::server::ServerError;
use crate::storage::LimitError;

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
    #[error("cannot slow the disk down: {0}")]
    Limit(#[from] LimitError),
    #[error("db_bench is not on PATH")]
    DbBench,
    #[error("cannot run db_bench: {0}")]
    DbBenchRun(io::Error),
    #[error("db_bench gave no result: {0}")]
    DbBenchOutput(String),
    #[error("`hasten run` did nothing for db_bench: the library for {0} was not in use")]
    NotAccelerated(&'static str),
    #[error("redis-server is not on PATH")]
    Redis,
    #[error("cannot run redis-server: {0}")]
    RedisRun(io::Error),
    #[error("redis-server answered wrongly: {0}")]
    RedisAnswer(String),
    #[error("`hasten run --tier` did nothing for redis-server")]
    NotTiered,
    #[error("{path}: {source}")]
    StorageDirectory { path: PathBuf, source: io::Error },
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

            Self::Limit(_) => "run it as root, or leave --limit out if the disk is slow by itself".to_owned(),
            Self::DbBench => "apt-get install rocksdb-tools".to_owned(),
            Self::DbBenchRun(_) | Self::DbBenchOutput(_) => {
                "see that `db_bench --version` works, and that both directories have room".to_owned()
            }
            Self::NotAccelerated(_) => {
                "see what `hasten run --dry-run` says with the same directory; the two must be on different devices".to_owned()
            }
            Self::Redis => "apt-get install redis-server".to_owned(),
            Self::RedisRun(_) | Self::RedisAnswer(_) => {
                "see that `redis-server --save ''` starts, and that there is memory for two".to_owned()
            }
            Self::NotTiered => {
                "see what `hasten run --dry-run --tier 0:0=1:3 -- redis-server` says: Redis needs jemalloc as a library of its own"
                    .to_owned()
            }
            Self::StorageDirectory { .. } => "name directories that you may write to".to_owned(),
            Self::Report(_) => "choose another directory with --out".to_owned(),
            Self::Driver(_) => "see that `ulimit -n` is above the number of connections".to_owned(),
            Self::Certificate(_) | Self::Directory(_) | Self::Bodies(_) => {
                "see that the directory for temporary files (TMPDIR) exists and has room".to_owned()
            }
        }
    }
}
