//! Errors in reading traces.

use std::io;
use std::path::PathBuf;

use hasten_v8::export::ExportError;
use hasten_v8::page::PageError;
use hasten_v8::parse::TraceError;

use super::TRACES;
use crate::failure::Failure;

/// How to get a trace.
const MAKE_ONE: &str = "make a trace with `node --trace-gc app.js > gc.log`, or record a running process with `hasten gc record PID`";

#[derive(Debug, thiserror::Error)]
pub(super) enum GcError {
    #[error("cannot read {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Trace { path: PathBuf, source: TraceError },
    #[error("{} is empty", path.display())]
    Empty { path: PathBuf },
    #[error("{} is no trace of garbage collection: {what}", path.display())]
    NoCollections { path: PathBuf, what: String },
    #[error("standard input is a terminal")]
    Terminal,
    #[error("standard input can be read only once")]
    StdinTwice,
    #[error("{count} traces are too many to compare")]
    TooMany { count: usize },
    #[error("no trace is named")]
    NoTrace,
    #[error("{} is no name for a page", path.display())]
    PageName { path: PathBuf },
    #[error("{} is a page, not a trace", path.display())]
    PageAsTrace { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot export the CPU profile of {}: {source}", path.display())]
    Profile { path: PathBuf, source: ExportError },
    #[error("the CPU profile of one file can be exported at a time")]
    SeveralProfiles,
    #[error("the CPU profile of standard input cannot be exported: it would have to be read twice")]
    ProfileOfStdin,
    #[error("cannot write {}: {source}", path.display())]
    WriteProfile { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Page(#[from] PageError),
    #[error("cannot make the data: {0}")]
    Data(#[from] serde_json::Error),
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl GcError {
    fn fix(&self) -> String {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "read it as its owner, or pipe it in: `sudo cat FILE | hasten gc -`".to_owned()
            }
            Self::Open { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                "name the file in it".to_owned()
            }
            Self::Open { .. } | Self::NoCollections { .. } | Self::NoTrace => MAKE_ONE.to_owned(),
            Self::Trace { .. } => "check the file and the device behind it".to_owned(),
            Self::Empty { .. } => {
                "V8 writes its trace to standard output: `node --trace-gc app.js > gc.log`, and let it run for a while"
                    .to_owned()
            }
            Self::Terminal => format!("pipe a trace in: `node --trace-gc app.js | hasten gc -`; or {MAKE_ONE}"),
            Self::StdinTwice => "name `-` once".to_owned(),
            Self::TooMany { .. } => {
                format!("compare {TRACES} at most; the traces of one cluster make one: `cat *.log | hasten gc -`")
            }
            Self::PageName { .. } => "let it end in .html: `--html=gc.html`".to_owned(),
            Self::PageAsTrace { .. } => "to write a page: `hasten gc gc.log --html=gc.html`".to_owned(),
            Self::Write { .. } => "name another place: `--html=/tmp/gc.html`".to_owned(),
            Self::Profile { source, .. } => profile_fix(source).to_owned(),
            Self::SeveralProfiles => "name one file: `hasten gc gc.jsonl --cpuprofile app.cpuprofile`".to_owned(),
            Self::ProfileOfStdin => "write it into a file first, and name that".to_owned(),
            Self::WriteProfile { .. } => "name another place: `--cpuprofile /tmp/app.cpuprofile`".to_owned(),
            Self::Page(_) | Self::Data(_) => "please report this, with the trace".to_owned(),
            Self::Output(_) => "check the file or the device behind it".to_owned(),
        }
    }
}

fn profile_fix(error: &ExportError) -> &'static str {
    match error {
        ExportError::None => "record one with `hasten gc record PID --cpu --out gc.jsonl`",
        ExportError::Several(_) => "export one recording at a time, not several in one file",
        ExportError::Long => "record for a shorter time, or with a longer --cpu-interval",
        ExportError::Trace(_) | ExportError::Damaged { .. } => "check the file and the device behind it",
        ExportError::Data(_) => "please report this, with the trace",
    }
}

impl From<GcError> for Failure {
    fn from(error: GcError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}
