use std::io;
use std::process::ExitStatus;

/// Why a run of the load gave no numbers.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the load's command line is empty: give --load '…', or --url for the built-in driver")]
    Empty,
    #[error("the load's command line has a quote without an end: {0}")]
    Quote(String),
    #[error("--metric-regex {regex:?} cannot be used: {why}")]
    MetricRegex { regex: String, why: String },
    #[error("cannot use the URL {url:?}: {why}")]
    Url { url: String, why: String },
    #[error("cannot start the load tool {program:?}: {source}; install it, or give its full path")]
    Start { program: String, source: io::Error },
    #[error("the load tool `{program}` is not installed")]
    Missing { program: String, how: &'static str },
    #[error("the load tool cannot be watched: {0}")]
    Watch(#[source] io::Error),
    #[error("the load tool failed ({status}); it printed last:\n{printed}")]
    Failed { status: ExitStatus, printed: String },
    #[error(
        "the load did not end in time and was stopped: give it a shorter duration or fewer requests, or hasten a \
         larger --budget; it printed last:\n{printed}"
    )]
    Deadline { printed: String },
    #[error("the load was interrupted")]
    Stopped,
    #[error(
        "the load's output is not understood. Say how to read it with --metric-regex, such as \
         --metric-regex 'requests=(?<requests>[0-9]+)', or let it print a line such as \
         {{\"requests\": 1000, \"seconds\": 5.0, \"failed\": 0}}; it printed last:\n{printed}"
    )]
    NotUnderstood { printed: String },
    #[error("the built-in driver cannot run: {0}")]
    Driver(String),
}

impl LoadError {
    /// The remedy, if it depends on more than the command line.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Missing { how, .. } => (*how).to_owned(),
            _ => "run the load by hand against the running service, and see what it says".to_owned(),
        }
    }
}
